//! Links with an emulator in between: what its counts say is what the nodes see.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plimsoll_lab::{Conditions, DirectionStatistics, Lab, LabConfig, LinkDelay, Node};
use plimsoll_testkit::uninterrupted;

use crate::common::{PATIENCE, eventually, exchange, lab};

const MS: Duration = Duration::from_millis(1);
/// The largest frame of a link with the usual MTU.
const FRAME: u64 = 1514;

/// A lab whose client has a link with these conditions.
fn with_client(conditions: &Conditions) -> Lab {
    let lab = lab(1);
    lab.link(Node::Client).unwrap().set(conditions).unwrap();
    lab
}

/// What was counted of the client's frames.
fn sent_by_client(lab: &Lab) -> DirectionStatistics {
    lab.link(Node::Client).unwrap().statistics().unwrap().unwrap().from_node
}

/// The front-end's addresses.
fn front_end(lab: &Lab) -> [IpAddr; 2] {
    let node = lab.node(Node::FrontEnd).unwrap();
    [node.address().into(), node.address_v6().into()]
}

/// Times of round trips of datagrams from the client to this address of the front-end.
fn round_trips(lab: &Lab, address: IpAddr, count: usize) -> Vec<Duration> {
    let to = lab.node(Node::FrontEnd).unwrap().run(|| UdpSocket::bind((address, 0))).unwrap().unwrap();
    let unspecified: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let from = lab.node(Node::Client).unwrap().run(|| UdpSocket::bind((unspecified, 0))).unwrap().unwrap();
    from.connect(to.local_addr().unwrap()).unwrap();
    for socket in [&to, &from] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let mut bytes = [0; 8];
    let round_trip = |number: usize| {
        let began = Instant::now();
        from.send(&number.to_le_bytes()).unwrap();
        let (length, peer) = uninterrupted(|| to.recv_from(&mut bytes)).unwrap();
        to.send_to(&bytes[..length], peer).unwrap();
        uninterrupted(|| from.recv(&mut bytes)).unwrap();
        assert_eq!(bytes, number.to_le_bytes());
        began.elapsed()
    };
    (0..count).map(round_trip).collect()
}

#[test]
fn a_round_trip_takes_both_delays_at_least() {
    // Before anything else: requests for MAC addresses pass, too.
    let lab = with_client(&Conditions::delayed(10 * MS));
    for address in front_end(&lab) {
        let times = round_trips(&lab, address, 10);
        assert!(times.iter().all(|time| *time >= 20 * MS), "{times:?}");
        exchange(&lab, Node::Client, Node::FrontEnd, address).unwrap();
    }
    let statistics = lab.link(Node::Client).unwrap().statistics().unwrap().unwrap();
    for direction in [statistics.from_node, statistics.to_node] {
        assert!(direction.frames >= 20 && direction.delay.median >= 10 * MS * 99 / 100, "{direction:?}");
        assert_eq!((direction.lost, direction.reordered, direction.duplicated), (0, 0, 0));
    }
    // Other nodes are as near as ever.
    assert!(lab.link(Node::FrontEnd).unwrap().statistics().unwrap().is_none());
}

#[test]
fn each_direction_has_conditions_of_its_own() {
    let links = Conditions::delayed(5 * MS);
    let lab = Lab::build(&LabConfig { backends: 1, links, ..LabConfig::default() }).unwrap();
    let address = front_end(&lab)[0];
    assert!(round_trips(&lab, address, 5).iter().all(|time| *time >= 20 * MS));
    let link = lab.link(Node::Client).unwrap();
    assert_eq!(link.conditions(), [links; 2]);
    let far = Conditions { delay: Some(LinkDelay::Uniform { mean: 20 * MS, jitter: 5 * MS }), ..links };
    link.set_each(&far, &Conditions::default()).unwrap();
    assert_eq!(link.conditions(), [far, Conditions::default()]);
    assert!(round_trips(&lab, address, 5).iter().all(|time| *time >= 25 * MS));
    let error = link.set_each(&far, &Conditions { loss: 2.0, ..far }).unwrap_err().to_string();
    assert_eq!(error, "loss is a share of frames from 0 to 1, not 2");
    assert_eq!(link.conditions(), [far, Conditions::default()]);
}

/// Counts what arrives at a socket, in a thread of its own.
struct Receiver {
    socket: UdpSocket,
    count: AtomicU64,
    over: AtomicBool,
}

impl Receiver {
    fn new(lab: &Lab) -> Self {
        let node = lab.node(Node::FrontEnd).unwrap();
        let socket = node.run(|| UdpSocket::bind((node.address(), 0))).unwrap().unwrap();
        socket.set_read_timeout(Some(10 * MS)).unwrap();
        Self { socket, count: AtomicU64::new(0), over: AtomicBool::new(false) }
    }

    fn run(&self) {
        while !self.over.load(Ordering::Relaxed) {
            if self.socket.recv(&mut [0; 64]).is_ok() {
                self.count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn received(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// As many are counted: not fewer, as this waits for them, and not more.
    fn assert_received(&self, at_least: u64, at_most: u64) {
        eventually("datagrams", || self.received() >= at_least);
        let count = self.received();
        assert!(count <= at_most, "{count} arrived, {at_least} to {at_most} left the emulator");
    }
}

/// Sends datagrams from the client under these conditions, and compares what arrives with what was counted, which this
/// returns.
fn count_datagrams(conditions: &Conditions, count: u64) -> DirectionStatistics {
    let lab = lab(1);
    // MAC addresses are known from then on.
    round_trips(&lab, front_end(&lab)[0], 1);
    lab.link(Node::Client).unwrap().set_each(conditions, &Conditions::default()).unwrap();
    let receiver = Receiver::new(&lab);
    let sender = lab.node(Node::Client).unwrap().run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    let to = receiver.socket.local_addr().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| receiver.run());
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _over = Over(&receiver.over);
        for number in 0..count {
            sender.send_to(b"x", to).unwrap();
            if number % 100 == 99 {
                // Interfaces and sockets hold some hundred of them.
                eventually("frames at the emulator", || sent_by_client(&lab).frames > number);
                eventually("room at the receiver", || {
                    receiver.received() + 100 >= sent_by_client(&lab).delivered
                });
            }
        }
        eventually("an empty link", || {
            let now = sent_by_client(&lab);
            now.frames >= count && now.held_frames == 0
        });
        let counted = sent_by_client(&lab);
        let DirectionStatistics { frames, duplicated, lost, overflowed, delivered, .. } = counted;
        assert_eq!(frames + duplicated, delivered + lost + overflowed, "{counted:?}");
        assert_eq!((counted.missed, counted.undeliverable), (0, 0));
        // A node may send something of its own accord, such as a request for a MAC address.
        let others = frames - count;
        receiver.assert_received(delivered.saturating_sub(2 * others), delivered);
        counted
    })
}

#[test]
fn what_is_lost_does_not_arrive() {
    let lossy = Conditions { loss: 0.1, ..Conditions::default() };
    let counted = count_datagrams(&lossy, 2000);
    assert!((100..350).contains(&counted.lost), "{counted:?}");
    let counted = count_datagrams(&Conditions { loss_burst: Some(5.0), ..lossy }, 2000);
    assert!((50..400).contains(&counted.lost), "{counted:?}");
    let counted = count_datagrams(&Conditions { loss: 1.0, ..lossy }, 10);
    assert_eq!((counted.delivered, counted.lost), (0, counted.frames));
}

#[test]
fn copies_arrive_and_what_is_too_much_does_not() {
    let twice = Conditions { duplicate: 0.2, late: 0.2, late_by: 5 * MS, ..Conditions::delayed(MS) };
    let counted = count_datagrams(&twice, 1000);
    assert!((100..400).contains(&counted.duplicated) && counted.reordered > 0, "{counted:?}");
    let counted = count_datagrams(&Conditions { most_held_frames: 10, ..Conditions::delayed(200 * MS) }, 100);
    assert!(counted.overflowed > 0, "{counted:?}");
}

/// Sends so many bytes from the client to this address of the front-end, and checks each.
fn transfer(lab: &Lab, address: IpAddr, length: usize) {
    let to = lab.node(Node::FrontEnd).unwrap();
    let listener = to.run(|| TcpListener::bind((address, 0))).unwrap().unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let content: Vec<u8> = (0..length as u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    let mut sender = lab.node(Node::Client).unwrap().run(|| TcpStream::connect(address)).unwrap().unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    accepted.set_read_timeout(Some(PATIENCE)).unwrap();
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            sender.write_all(&content).unwrap();
            sender.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut all = Vec::new();
        accepted.read_to_end(&mut all).unwrap();
        all
    });
    assert!(received == content, "{} of {length} bytes, or wrong ones", received.len());
}

#[test]
fn a_transfer_over_a_bad_link_is_whole() {
    let bad = Conditions { loss: 0.01, reorder: 0.01, duplicate: 0.01, ..Conditions::delayed(2 * MS) };
    let lab = with_client(&bad);
    for address in front_end(&lab) {
        transfer(&lab, address, 3_000_000);
    }
    let counted = sent_by_client(&lab);
    assert!(counted.lost > 0 && counted.reordered > 0 && counted.duplicated > 0, "{counted:?}");
    // The kernel segments what programs write in large pieces.
    assert!(
        counted.frames >= 2 * 3_000_000 / FRAME && counted.bytes <= counted.frames * FRAME,
        "{counted:?}"
    );
}

#[test]
fn large_frames_pass_where_the_nodes_allow_them() {
    let lab = with_client(&Conditions::delayed(MS));
    let set_mtu = |node: Node, interface: &str| {
        let mut command = lab.node(node).unwrap().command("ip");
        assert!(command.args(["link", "set", interface, "mtu", "9000"]).status().unwrap().success());
    };
    for node in [Node::Client, Node::FrontEnd] {
        set_mtu(node, "eth0");
    }
    // The ports of the switch; the emulator's interfaces let everything pass.
    set_mtu(Node::Switch, "client.w");
    set_mtu(Node::Switch, "front-end");
    transfer(&lab, front_end(&lab)[0], 1_000_000);
    let counted = sent_by_client(&lab);
    assert!(counted.bytes > counted.frames * 4 * FRAME, "{counted:?}");
}

/// The interfaces in the switch.
fn interfaces(lab: &Lab) -> Vec<String> {
    let directory = lab.node(Node::Switch).unwrap().root().join("sys/class/net");
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn conditions_change_while_connections_last() {
    let lab = lab(1);
    let before = interfaces(&lab);
    let link = lab.link(Node::Client).unwrap();
    let address = front_end(&lab)[0];
    let listener =
        lab.node(Node::FrontEnd).unwrap().run(|| TcpListener::bind((address, 0))).unwrap().unwrap();
    let at = listener.local_addr().unwrap();
    let mut client = lab.node(Node::Client).unwrap().run(|| TcpStream::connect(at)).unwrap().unwrap();
    let (mut server, _) = listener.accept().unwrap();
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let mut talk = || {
        let mut bytes = [0; 4];
        let began = Instant::now();
        client.write_all(b"ping").unwrap();
        server.read_exact(&mut bytes).unwrap();
        server.write_all(&bytes).unwrap();
        client.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"ping");
        began.elapsed()
    };
    for round in 0..3 {
        talk();
        link.set(&Conditions { rate: "100mbit".parse().ok(), ..Conditions::default() }).unwrap();
        talk();
        link.set(&Conditions { rate: "100mbit".parse().ok(), ..Conditions::delayed(10 * MS) }).unwrap();
        assert!(talk() >= 20 * MS);
        assert_eq!(
            interfaces(&lab),
            ["br0", "b0", "client", "client.b", "client.t", "client.w", "front-end", "lo"].sorted()
        );
        link.set(&Conditions { loss: 0.2, ..Conditions::delayed(20 * MS) }).unwrap();
        assert!(talk() >= 40 * MS, "round {round}");
        link.clear().unwrap();
        assert_eq!(interfaces(&lab), before);
        assert_eq!(link.statistics().unwrap(), None);
    }
    transfer(&lab, address, 100_000);
}

/// So that lists are compared whatever their order.
trait Sorted {
    fn sorted(self) -> Vec<String>;
}

impl<const N: usize> Sorted for [&str; N] {
    fn sorted(mut self) -> Vec<String> {
        self.sort_unstable();
        self.map(str::to_owned).to_vec()
    }
}

#[test]
fn a_cable_with_an_emulator_is_pulled_and_put_back() {
    let lab = with_client(&Conditions::delayed(MS));
    let link = lab.link(Node::Client).unwrap();
    let carrier =
        || fs::read_to_string(lab.node(Node::Client).unwrap().root().join("sys/class/net/eth0/carrier"));
    let address = front_end(&lab)[0];
    exchange(&lab, Node::Client, Node::FrontEnd, address).unwrap();
    link.down().unwrap();
    eventually("no carrier", || carrier().unwrap() == "0\n");
    link.up().unwrap();
    eventually("an answer", || exchange(&lab, Node::Client, Node::FrontEnd, address).is_ok());
    // The name of the port of the switch is the node's.
    lab.block(Node::Client, Node::FrontEnd).unwrap();
    lab.pass_frames().unwrap();
    lab.count_traffic().unwrap();
    exchange(&lab, Node::Client, Node::FrontEnd, address).unwrap();
    let traffic = lab.traffic().unwrap();
    assert!(traffic.iter().any(|t| t.from == Node::Client && t.to == Node::FrontEnd), "{traffic:?}");
}
