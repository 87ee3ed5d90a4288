//! Packets that a stranger sends in a client's name. He knows addresses and ports, but not the sequence numbers (RFC 5961).

use std::io::{ErrorKind, Read as _};
use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_lab::Node;
use plimsoll_testkit::{PATIENCE, Why, eventually, pace};

use super::bed::{Bed, Options};
use super::http::{Client, content};
use super::raw::{ACK, FIN, RST, SYN, Shape, packets, segment, sender};

const LARGE: usize = 60 << 20;
const BODY: usize = 50_000;
/// Sends packets with these sequence and acknowledgment numbers.
fn forge(from: SocketAddr, to: SocketAddr, flags: u8, numbers: impl Iterator<Item = (u32, u32)>) {
    let socket = sender(to);
    let address = SocketAddr::new(to.ip(), 0).into();
    for numbers in numbers {
        let packets = packets(from, to, Shape::Plain, 0, &segment(from, to, flags, numbers, b""));
        socket.send_to(&packets[0], &address).unwrap();
    }
}

/// Numbers all over the sequence space, this far apart.
fn all_over(step: usize) -> impl Iterator<Item = (u32, u32)> {
    (0..=u32::MAX).step_by(step).map(|sequence| (sequence, 0))
}

/// How often this back-end's kernel has answered such packets by telling the numbers that it expects.
fn challenges(bed: &Bed, index: usize) -> u64 {
    bed.kernel_counter(Node::Backend(index), "TCPChallengeACK")
}

#[test]
fn forged_packets_end_no_connection() {
    let files = [("large", content(9, LARGE)), ("body", content(7, BODY))];
    let bed = Bed::new(Options { is_quiet: true, ..Options::default() }, &files);
    let vip = bed.vip();
    let mut client = bed.client(|| Client::connect(vip).unwrap());
    let from = client.stream.local_addr().unwrap();
    client.send("/large").unwrap();
    eventually("handoff", || bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}") == Some(1.0));
    // The answer waits in the kernels for its reader meanwhile. The window is wider than the steps of RST: some are within.
    // Then all that the front-end could take for the client's: numbers that lead it astray, an end at these, a beginning.
    for (flags, step) in
        [(SYN, 1 << 22), (RST, 30_000), (SYN, 1 << 22), (ACK, 1 << 30), (RST, 1 << 30), (SYN, 1 << 31)]
    {
        bed.client(|| forge(from, vip, flags, all_over(step)));
        eprintln!("{:?}", (challenges(&bed, 0), challenges(&bed, 1)));
    }
    let answer = client.answer().unwrap();
    assert!(answer.body == content(9, LARGE), "the answer was spoiled");
    let holder = usize::from(answer.backend() == "b1");
    assert!(challenges(&bed, holder) > 0, "nothing came near");
    for _ in 0..4 {
        assert!(client.get("/body").unwrap().body == content(7, BODY));
    }
    assert_eq!(bed.metric("plimsoll_connections_lost_total"), Some(0.0));
    assert_eq!(bed.metric("plimsoll_connections_reset_total"), Some(0.0));
    drop(client);
    bed.assert_quiet();
    bed.stop();
}

/// What the front-end believes that this client has acknowledged, and what was forwarded of it.
fn seen(bed: &Bed, client: SocketAddr) -> (u64, u64) {
    let text = bed.admin(&format!("/flows?client={}", client.ip())).unwrap();
    let flows: serde_json::Value = serde_json::from_str(&text).unwrap();
    let flow = &flows["flows"][0];
    assert_eq!((flow["client"].as_str(), &flow["phase"]), (Some(&*client.to_string()), &"held".into()));
    (flow["acknowledged_bytes"].as_u64().unwrap(), flow["forwarded_packets"].as_u64().unwrap())
}

#[test]
fn forged_numbers_are_not_believed() {
    const FORGED: u32 = 64;
    let bed = Bed::new(Options { backends: 1, ..Options::default() }, &[("large", content(9, LARGE))]);
    let vip = bed.vip();
    let mut client = bed.client(|| Client::connect(vip).unwrap());
    let from = client.stream.local_addr().unwrap();
    client.send("/large").unwrap();
    eventually("handoff", || bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}") == Some(1.0));
    // Its reader rests; so do the kernels, once the windows are full.
    let mut before = seen(&bed, from);
    eventually("rest", || {
        pace(Duration::from_millis(300), Why::SlowPeer);
        let last = std::mem::replace(&mut before, seen(&bed, from));
        before.0 > 0 && last == before
    });
    // All over both spaces. Before windows were looked at, one in four acknowledgments was believed.
    let numbers = |n: u32| (n * 0x0400_0000 + 77, n.wrapping_mul(0x9e37_79b9));
    for flags in [ACK, ACK | FIN, ACK | RST] {
        bed.client(|| forge(from, vip, flags, (0..FORGED).map(numbers)));
    }
    eventually("the forged packets", || seen(&bed, from).1 >= before.1 + 3 * u64::from(FORGED));
    assert_eq!(seen(&bed, from).0, before.0);
    // The end of the back-end is told with the right numbers.
    bed.lab.link(Node::Backend(0)).unwrap().down().unwrap();
    client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let error = client.stream.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    bed.lab.link(Node::Backend(0)).unwrap().up().unwrap();
    bed.wait_for_links(1);
    bed.assert_quiet();
    bed.stop();
}
