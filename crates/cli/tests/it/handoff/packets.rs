//! Packets of unusual shape reach back-ends as they reach a server that clients talk to directly.

use std::net::SocketAddr;

use plimsoll_lab::Node;
use plimsoll_testkit::eventually;

use super::bed::{Bed, Options};
use super::http::content;
use super::raw::{ACK, RawClient, Shape, packets, segment, sender};

const BODY: usize = 50_000;

/// Gets a file over several back-ends by requests that are longer than a fragment.
pub(super) fn served(options: Options, shape: Shape, counted: &str) {
    // A client that drops what comes too early gets a long answer from afar slowly.
    let body = content(7, if options.is_far { 15_000 } else { BODY });
    let bed = Bed::new(options, &[("body", body.clone())]);
    for (port, vip) in [(20_000, bed.vip()), (20_001, bed.vip_v6())] {
        let mut client = RawClient::connect(&bed, vip, port, shape);
        for _ in 0..4 {
            let request = format!("GET /body HTTP/1.1\r\nHost: lab\r\nX-Long: {}\r\n\r\n", "x".repeat(300));
            let answer = bed.client(|| client.request(&request, &body));
            assert!(answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(&body));
        }
        bed.client(|| client.close());
    }
    assert!(bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}") >= Some(2.0));
    assert_eq!(bed.metric("plimsoll_connections_reset_total"), Some(0.0));
    let packets = || bed.metric(&format!("plimsoll_packets_total{{action=\"{counted}\"}}"));
    eventually("packets of this shape", || packets() > Some(20.0));
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn ip_options_and_extension_headers() {
    served(Options { is_quiet: true, ..Options::default() }, Shape::Options, "forwarded");
}

#[test]
fn what_agents_count_is_shown_while_they_run() {
    const FORGED: u32 = 8;
    let bed = Bed::new(Options { is_quiet: true, ..Options::default() }, &[]);
    let vip = bed.vip();
    let (client, backend) = (bed.lab.node(Node::Client).unwrap(), bed.lab.node(Node::Backend(0)).unwrap());
    let from = SocketAddr::new(client.address().into(), 20_000);
    let forge = |from: SocketAddr, to: SocketAddr| {
        let packets = packets(from, to, Shape::Plain, 0, &segment(from, to, ACK, (1, 1), b""));
        for _ in 0..FORGED {
            sender(to).send_to(&packets[0], &SocketAddr::new(to.ip(), 0).into()).unwrap();
        }
    };
    // The back-end speaks in the front-end's name on a connection that it does not have.
    backend.run(|| forge(vip, from)).unwrap();
    let metric = |name: &str| bed.metric(&format!("plimsoll_agent_{name}{{backend=\"b0\"}}"));
    eventually("fenced packets", || metric("fenced_packets_total") >= Some(FORGED.into()));
    assert_eq!(metric("strays_total"), Some(0.0));
    // Packets of another such connection are led there.
    let mac = std::fs::read_to_string(backend.root().join("sys/class/net/eth0/address")).unwrap();
    let neighbor = ["neigh", "replace", &vip.ip().to_string(), "lladdr", mac.trim(), "dev", "eth0"];
    assert!(client.command("ip").args(neighbor).status().unwrap().success());
    bed.client(|| forge(from, vip));
    eventually("a stray", || metric("strays_total") == Some(1.0));
    let shown: serde_json::Value = serde_json::from_str(&bed.admin("/backends/b0").unwrap()).unwrap();
    assert_eq!(
        (&shown["agent"]["strays"], &shown["agent"]["connections"]),
        (&1.into(), &0.into()),
        "{shown}"
    );
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn fragments() {
    served(Options { is_quiet: true, ..Options::default() }, Shape::Fragments, "fragment");
}
