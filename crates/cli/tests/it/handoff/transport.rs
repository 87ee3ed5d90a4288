//! Every kind of TCP client is served.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_lab::{Conditions, Node};
use plimsoll_testkit::{PATIENCE, Why, pace, uninterrupted, wait_for};
use socket2::{Domain, Protocol, Socket, Type};

use super::bed::{Bed, Options};
use super::http::{Client, content};

const BODY: usize = 300_000;

fn bed(options: Options) -> Bed {
    bed_with(options, BODY)
}

/// The same with a larger file of this many bytes.
fn bed_with(options: Options, length: usize) -> Bed {
    Bed::new(options, &[("body", content(7, length)), ("small", content(8, 500))])
}

/// How many bytes the larger file has. A small window takes a round trip to the client to pass.
fn length(options: &Options) -> usize {
    if options.is_far { 30_000 } else { BODY }
}

/// Gets both files some times over one connection.
fn alternate(client: &mut Client, rounds: usize) {
    alternate_with(client, rounds, BODY);
}

fn alternate_with(client: &mut Client, rounds: usize, length: usize) {
    for _ in 0..rounds {
        assert!(client.get("/body").unwrap().body == content(7, length));
        assert!(client.get("/small").unwrap().body == content(8, 500));
    }
}

#[test]
fn options_that_a_client_lacks() {
    lacking_options(Options { is_quiet: true, ..Options::default() });
}

pub(super) fn lacking_options(options: Options) {
    let length = length(&options);
    // Where clients ask all at once, a request may go to the back-end of the one before by chance.
    let moves = if options.is_far { 10.0 } else { 5.0 * 2.0 * 5.0 };
    let at_once = if options.is_far { 10 } else { 1 };
    let bed = bed_with(options, length);
    let vips = [bed.vip(), bed.vip_v6()];
    let mut clients = Vec::new();
    // Each as timestamps, selective acknowledgments and window scaling.
    for options in [[0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] {
        bed.client(|| {
            for (name, on) in ["tcp_timestamps", "tcp_sack", "tcp_window_scaling"].iter().zip(options) {
                std::fs::write(format!("/proc/sys/net/ipv4/{name}"), format!("{on}")).unwrap();
            }
            clients.extend(vips.map(|vip| Client::connect(vip).unwrap()));
        });
    }
    for some in clients.chunks_mut(at_once) {
        std::thread::scope(|scope| {
            some.iter_mut().for_each(|client| drop(scope.spawn(|| alternate_with(client, 3, length))));
        });
    }
    assert!(bed.metric("plimsoll_handoffs_on_total") >= Some(moves));
    drop(clients);
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn a_small_window_and_a_slow_reader() {
    let bed = bed(Options { is_quiet: true, ..Options::default() });
    let vip = bed.vip();
    bed.client(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.connect(&vip.into()).unwrap();
        let mut stream: TcpStream = socket.into();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        for _ in 0..3 {
            stream.write_all(b"GET /body HTTP/1.1\r\nHost: lab\r\n\r\n").unwrap();
            pace(Duration::from_millis(300), Why::SlowPeer);
            let mut client = Client::over(stream.try_clone().unwrap()).unwrap();
            assert!(client.answer().unwrap().body == content(7, BODY));
        }
    });
    bed.assert_quiet();
    bed.stop();
}

/// A segment that is larger than the client's window would wait for a timer, and so would each one after it.
#[test]
fn a_window_smaller_than_a_segment() {
    small_window(Options { is_quiet: true, ..Options::default() });
}

pub(super) fn small_window(options: Options) {
    let length = length(&options);
    let bed = bed_with(options, length);
    let vips = [bed.vip(), bed.vip_v6()];
    let get = |vip: SocketAddr| {
        let socket = Socket::new(Domain::for_address(vip), Type::STREAM, Some(Protocol::TCP)).unwrap();
        // The least that the kernel allows.
        socket.set_recv_buffer_size(0).unwrap();
        socket.connect(&vip.into()).unwrap();
        let mut client = Client::over(socket.into()).unwrap();
        assert!(client.get("/body").unwrap().body == content(7, length));
    };
    bed.client(|| std::thread::scope(|scope| vips.map(|vip| drop(scope.spawn(move || get(vip))))));
    assert_eq!(bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}"), Some(2.0));
    let probes: u64 = (0..2).map(|n| bed.kernel_counter(Node::Backend(n), "TCPWinProbe")).sum();
    assert!(probes < 50, "{probes} for some 500 windows");
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn pipelined_requests_keep_their_order() {
    let bed = bed(Options { is_quiet: true, ..Options::default() });
    let vip = bed.vip();
    bed.client(|| {
        let mut client = Client::connect(vip).unwrap();
        for _ in 0..5 {
            for path in ["/small", "/body", "/small", "/missing", "/body"] {
                client.send(path).unwrap();
            }
            let answers: Vec<_> = (0..5).map(|_| client.answer().unwrap()).collect();
            let statuses: Vec<u16> = answers.iter().map(|a| a.status).collect();
            assert_eq!(statuses, [200, 200, 200, 404, 200]);
            let lengths: Vec<usize> = answers.iter().map(|a| a.body.len()).collect();
            assert_eq!((lengths[0], lengths[1], lengths[2], lengths[4]), (500, BODY, 500, BODY));
            assert!(answers[1].body == content(7, BODY) && answers[4].body == content(7, BODY));
        }
    });
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn a_client_that_ends_its_side_gets_its_answer() {
    let bed = bed(Options { is_quiet: true, ..Options::default() });
    let vip = bed.vip();
    bed.client(|| {
        // With its first request, and with a later one.
        for before in [0, 1, 2] {
            let mut client = Client::connect(vip).unwrap();
            for _ in 0..before {
                client.get("/small").unwrap();
            }
            client.send("/body").unwrap();
            client.stream.shutdown(Shutdown::Write).unwrap();
            assert!(client.answer().unwrap().body == content(7, BODY));
            assert!(client.is_closed());
        }
    });
    bed.assert_quiet();
    bed.stop();
}

/// Opens a connection from this port and ends it with a reset, or in good order.
fn from_port(vip: SocketAddr, port: u16, reset: bool, length: usize) {
    let connected = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.bind(&SocketAddr::from(([0, 0, 0, 0], port)).into()).unwrap();
        match socket.connect_timeout(&vip.into(), PATIENCE) {
            // The connection before this one waits for the last acknowledgement.
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => None,
            result => Some(result.map(|()| socket).unwrap()),
        }
    };
    let stream: TcpStream = wait_for("the port is free again", connected).into();
    let mut client = Client::over(stream).unwrap();
    assert!(client.get("/small").unwrap().body == content(8, 500));
    assert!(client.get("/body").unwrap().body == content(7, length));
    if reset {
        socket2::SockRef::from(&client.stream).set_linger(Some(Duration::ZERO)).unwrap();
    } else {
        // The side that closes first keeps the port: let that be the other one.
        client.stream.write_all(b"GET /small HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n").unwrap();
        client.answer().unwrap();
        assert!(matches!(uninterrupted(|| client.stream.read(&mut [0])), Ok(0)));
    }
}

#[test]
fn the_same_port_again_and_again() {
    let again = same_port(Options { is_quiet: true, ..Options::default() }, 1, 40);
    // A SYN that meets what is left of the connection before it is not sent again after a second.
    assert!(again < 5, "{again} SYNs were sent again");
}

/// How often a SYN was sent again when each of these ports has this many connections in a row.
pub(super) fn same_port(options: Options, ports: u16, rounds: usize) -> u64 {
    let length = length(&options);
    let bed = bed_with(options, length);
    let vip = bed.vip();
    let rounds_from = |port| (0..rounds).for_each(|round| from_port(vip, port, round % 2 == 0, length));
    bed.client(|| {
        std::thread::scope(|scope| {
            (20_000..20_000 + ports).for_each(|port| drop(scope.spawn(move || rounds_from(port))));
        });
    });
    let again = bed.kernel_counter(Node::Client, "TCPSynRetrans");
    bed.assert_quiet();
    bed.stop();
    again
}

#[test]
fn loss_in_both_directions() {
    let bed = bed(Options::default());
    let vip = bed.vip();
    bed.lab.link(Node::Client).unwrap().set(&Conditions { loss: 0.02, ..Conditions::default() }).unwrap();
    bed.client(|| {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(move || {
                    for _ in 0..4 {
                        alternate(&mut Client::connect(vip).unwrap(), 3);
                    }
                });
            }
        });
    });
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn packets_that_overtake_others() {
    let bed = bed(Options::default());
    let vip = bed.vip();
    // One frame in twenty is held up, so that later ones overtake it.
    let overtaken = Conditions { late: 0.05, late_by: Duration::from_millis(2), ..Conditions::default() };
    for node in [Node::Client, Node::FrontEnd] {
        bed.lab.link(node).unwrap().set(&overtaken).unwrap();
    }
    bed.client(|| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(move || {
                    for _ in 0..4 {
                        alternate(&mut Client::connect(vip).unwrap(), 3);
                    }
                });
            }
        });
    });
    let statistics = bed.lab.link(Node::Client).unwrap().statistics().unwrap().unwrap();
    assert!(statistics.to_node.reordered > 0, "nothing was held up: {statistics:?}");
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn requests_that_back_ends_must_not_read() {
    let bed = bed(Options { is_quiet: true, policy: "uri_hash", ..Options::default() });
    let vip = bed.vip();
    let ask = |requests: &[&str]| {
        bed.client(|| {
            let mut client = Client::connect(vip).unwrap();
            let mut statuses = Vec::new();
            for request in requests {
                client.stream.write_all(request.as_bytes()).unwrap();
                statuses.push(client.answer().map_or(0, |answer| answer.status));
            }
            statuses
        })
    };
    const GOOD: &str = "GET /small HTTP/1.1\r\nHost: lab\r\n\r\n";
    // Each as a connection's first request, and as a further one.
    for (request, status) in [
        ("GET /small HTTP/1.1\r\nHost: lab\r\nContent-Length: 00\r\n\r\n", 200),
        ("GET /small HTTP/1.1\r\nHost: lab\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n", 200),
        ("GET /small HTTP/1.1\r\nHost: lab\r\nUpgrade: h2c\r\n\r\n", 200),
        ("POST /small HTTP/1.1\r\nHost: lab\r\nContent-Length: 3\r\n\r\nabc", 405),
        ("GET /small HTTP/1.1\nHost: lab\n\n", 400),
        ("GET /small HTTP/1.1\r\nHost: lab\r\nHost: other\r\n\r\n", 400),
    ] {
        assert_eq!(ask(&[request]), [status], "first: {request}");
        assert_eq!(ask(&[GOOD, request]), [200, status], "further: {request}");
    }
    bed.assert_quiet();
    let log = bed.access_log(6 * 3);
    let handed_off = log.iter().filter(|line| line["mechanism"] == "handoff").count();
    assert_eq!(handed_off, 6, "the good ones alone: {log:#?}");
    bed.stop();
}
