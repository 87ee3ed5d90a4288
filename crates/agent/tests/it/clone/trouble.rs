//! Nodes and links that fail, clients that leave, and strangers.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use plimsoll_datapath::Flow;
use plimsoll_datapath::tcp::{Frozen, QueueLimits, fast_forward};
use plimsoll_lab::{Conditions, Node};
use plimsoll_testkit::{PATIENCE, eventually, kernel_counter, uninterrupted};
use plimsoll_wire::Key;
use plimsoll_wire::cloning::ToClone;
use plimsoll_wire::session::FrameWriter;

use super::client::{Client, get, is_document, is_part};
use super::{NODES, PORT, World};
use crate::links;

/// Reads the head and this many bytes of an answer.
pub(super) fn begin(client: &mut Client, path: &str, bytes: usize) -> Vec<u8> {
    client.send(&get(path));
    let mut found = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let count = uninterrupted(|| client.stream.read(&mut buffer)).unwrap();
        assert!(count > 0, "an end");
        found.extend_from_slice(&buffer[..count]);
        let body = found.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        if let Some(body) = body
            && found.len() - body >= bytes
        {
            return found.split_off(body);
        }
    }
}

#[test]
fn a_node_that_is_cut_off_ends_its_answers_visibly() {
    let world = World::new();
    world.lead_to(0);
    let path = world.document_at(1, 30_000_000);
    let mut client = world.connect();
    let mut body = begin(&mut client, &path, 100_000);
    world.lab.link(Node::Backend(1)).unwrap().down().unwrap();
    let (rest, end) = client.rest();
    body.extend(rest);
    assert!(is_part(&path, 0, &body), "a foreign byte");
    assert!(body.len() < 30_000_000, "all of it");
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(world.node(0).stats().lost, 1);
    // What that node had is answered by another one.
    let mut client = world.connect();
    client.send(&get(&path));
    let answer = client.answer(false);
    assert!(is_document(&path, &answer.body) && answer.backend != world.name(1));
    drop(client);
    eventually("no flow", || world.node(0).routed() == 0 && world.node(0).open() == 0);
    world.lab.link(Node::Backend(1)).unwrap().up().unwrap();
    world.are_linked();
    let mut client = world.connect();
    client.send(&format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_eq!(client.answer(true).backend, world.name(1), "it is back");
}

#[test]
fn a_node_that_stops_resets_its_clients() {
    let mut world = World::new();
    world.lead_to(0);
    let path = world.document_at(1, 30_000_000);
    let mut client = world.connect();
    let mut body = begin(&mut client, &path, 100_000);
    let node = world.nodes[1].take().unwrap();
    world.lab.node(Node::Backend(1)).unwrap().run(|| node.stop()).unwrap().unwrap();
    let (rest, end) = client.rest();
    body.extend(rest);
    assert!(is_part(&path, 0, &body) && body.len() < 30_000_000);
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let mut client = world.connect();
    client.send(&get(&path));
    let answer = client.answer(false);
    assert!(is_document(&path, &answer.body) && answer.backend != world.name(1));
    drop(client);
    world.nothing_is_left();
}

#[test]
fn an_original_that_stops_leaves_no_connection() {
    let mut world = World::new();
    world.lead_to(0);
    let path = world.document_at(1, 30_000_000);
    let mut client = world.connect();
    let mut body = begin(&mut client, &path, 100_000);
    let node = world.nodes[0].take().unwrap();
    world.lab.node(Node::Backend(0)).unwrap().run(|| node.stop()).unwrap().unwrap();
    let (rest, end) = client.rest();
    body.extend(rest);
    assert!(is_part(&path, 0, &body), "a foreign byte");
    assert!(body.len() < 30_000_000, "all of it");
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_client_that_leaves_ends_its_clone() {
    let world = World::new();
    world.lead_to(0);
    let path = world.document_at(2, 30_000_000);
    for reset in [true, false] {
        let mut client = world.connect();
        begin(&mut client, &path, 100_000);
        if reset {
            rustix::net::sockopt::set_socket_linger(&client.stream, Some(Duration::ZERO)).unwrap();
        }
        drop(client);
        world.nothing_is_left();
    }
    assert_eq!(world.node(0).stats().lost, 2);
}

/// A client that acknowledges what was never sent: its kernel goes on from another number.
fn forges(client: Client) -> TcpStream {
    let (ours, theirs) = (client.stream.local_addr().unwrap(), client.stream.peer_addr().unwrap());
    let frozen = Frozen::freeze(client.stream.into()).unwrap();
    let limits = QueueLimits { send_bytes: 1 << 20, receive_bytes: 64 << 20 };
    let mut state = frozen.snapshot(&Flow::new(theirs, ours), &[], limits).unwrap();
    state.receive_queue.clear();
    state.receive_next = state.receive_next.wrapping_add(1 << 28);
    let stream = TcpStream::from(fast_forward(frozen, &state).unwrap().activate().unwrap());
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn who_acknowledges_what_was_not_sent_is_reset() {
    let world = World::new();
    world.lead_to(0);
    let path = world.document_at(1, 30_000_000);
    // While its socket is replaced, the client's kernel may reset the connection itself.
    for attempt in 1..=20 {
        let mut client = world.connect();
        begin(&mut client, &path, 100_000);
        let forge = || {
            let mut stream = forges(client);
            let heard = stream.write_all(b"x").and_then(|()| uninterrupted(|| stream.read(&mut [0; 100])));
            heard.unwrap_err().kind()
        };
        let heard = world.lab.node(Node::Client).unwrap().run(forge).unwrap();
        assert_eq!(heard, ErrorKind::ConnectionReset);
        world.nothing_is_left();
        let stats = world.node(0).stats();
        assert_eq!(stats.lost, attempt);
        if stats.forged > 0 {
            assert!(stats.router.forged > 0);
            return;
        }
    }
    panic!("the client has always been reset before");
}

#[test]
fn an_idle_client_is_closed_by_the_original() {
    let world = World::with(|config| config.idle_timeout = Duration::from_millis(300));
    world.lead_to(0);
    let path = world.document_at(2, 5_000);
    let mut client = world.connect();
    client.send(&get(&path));
    assert!(is_document(&path, &client.answer(false).body));
    let (rest, end) = client.rest();
    assert!(rest.is_empty() && end.is_ok(), "{end:?}");
    world.nothing_is_left();
}

/// Nodes that ask and do not read the answers fill the sockets of their links, on all threads.
#[test]
fn nodes_that_read_nothing_stop_nobody() {
    let world = World::new();
    world.lead_to(0);
    let path = world.document_at(0, 5_000);
    let links: Vec<_> = (0..4)
        .map(|_| {
            let (mut link, mut writer) = linked(&world, 1);
            (0..50_000).for_each(|token| writer.push(&ToClone::Ping { token }).unwrap());
            link.set_write_timeout(Some(PATIENCE)).unwrap();
            link.write_all(writer.finish()).unwrap();
            link
        })
        .collect();
    for _ in 0..20 {
        let mut client = world.connect();
        client.send(&get(&path));
        assert!(is_document(&path, &client.answer(false).body));
    }
    drop(links);
}

/// Tries to open a link from a machine.
fn open_link(world: &World, from: Node, name: &str, key: &Key) -> Option<TcpStream> {
    establish(world, from, name, key).map(|(stream, _)| stream)
}

/// A link to the first node, in the place of another one, and what writes its frames.
pub(super) fn linked(world: &World, from: usize) -> (TcpStream, FrameWriter) {
    establish(world, Node::Backend(from), world.name(from), &super::key()).unwrap()
}

fn establish(world: &World, from: Node, name: &str, key: &Key) -> Option<(TcpStream, FrameWriter)> {
    let to = std::net::SocketAddr::new(world.address(0), PORT);
    let open = || links::establish(TcpStream::connect(to).ok()?, name, key);
    world.lab.node(from).unwrap().run(open).unwrap().map(|(stream, keys)| (stream, keys.writer))
}

#[test]
fn strangers_get_no_clone() {
    let world = World::new();
    let refused = || world.node(0).stats().refused_links;
    assert!(open_link(&world, Node::Client, world.name(1), &super::key()).is_none(), "another address");
    eventually("a refused link", || refused() == 1);
    assert!(open_link(&world, Node::Backend(1), world.name(1), &Key::new([8; 32])).is_none(), "another key");
    eventually("a refused link", || refused() == 2);
    // Whoever is called otherwise hears of it when the link is closed.
    let link = open_link(&world, Node::Backend(1), "n7", &super::key());
    eventually("a refused link", || refused() == 3);
    drop(link);
    // A node that does not keep to the frames.
    let mut link = open_link(&world, Node::Backend(1), world.name(1), &super::key()).unwrap();
    link.write_all(&[5, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    eventually("a broken link", || world.node(0).stats().broken_links == 1);
    assert_eq!(world.node(0).stats().made, 0);
}

/// What the kernel of a node has counted under this name.
fn counted(world: &World, node: Node, name: &str) -> u64 {
    let counts = || std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
    let text = world.lab.node(node).unwrap().run(counts).unwrap();
    kernel_counter(&text, "TcpExt", name)
}

/// Packets that the client's kernel has dropped as too old by their timestamps.
fn too_old(world: &World) -> u64 {
    counted(world, Node::Client, "PAWSEstab")
}

/// Its original would meanwhile have sent again what the client had not acknowledged, by a clock that the clone's is behind.
#[test]
fn packets_of_a_clone_that_comes_late_are_not_too_old() {
    let world = World::with(|config| {
        config.first_bytes = 1_000;
        config.link_timeout = PATIENCE;
    });
    world.lead_to(0);
    let path = world.document_at(1, 5_000);
    let mut client = world.connect();
    // The beginning is not acknowledged before the original is frozen, and the SC message takes longer than a kernel waits.
    let delays = [(Node::Client, 10), (Node::Backend(1), 400)];
    for (node, delay_ms) in delays {
        let delayed = Conditions::delayed(Duration::from_millis(delay_ms));
        world.lab.link(node).unwrap().set(&delayed).unwrap();
    }
    let (before, rests) = (too_old(&world), world.node(0).stats().rests);
    client.send(&get(&path));
    assert!(is_document(&path, &client.answer(false).body));
    eventually("the original goes on", || world.node(0).stats().rests == rests + 1);
    assert_eq!(too_old(&world), before, "dropped as too old");
}

/// Each request comes with the last acknowledgment of the answer before, more of them than fit into a window, for each node in turn.
#[test]
fn requests_for_all_nodes_one_after_the_other() {
    const ROUNDS: u64 = 60;
    let world = World::new();
    world.lead_to(0);
    let paths: Vec<_> = (0..NODES).map(|number| world.document_at(number, 500)).collect();
    // What looking for documents has led to is counted.
    world.nothing_is_left();
    let padding = "y".repeat(1_200);
    let (stats, old) = (world.node(0).stats(), too_old(&world));
    let mut client = world.connect();
    for _ in 0..ROUNDS {
        for path in &paths {
            client.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nX-Padding: {padding}\r\n\r\n"));
            assert!(is_document(path, &client.answer(false).body));
        }
    }
    drop(client);
    world.nothing_is_left();
    let after = world.node(0).stats();
    assert_eq!(after.own - stats.own, ROUNDS);
    assert_eq!(after.clone_answers - stats.clone_answers, 2 * ROUNDS);
    assert_eq!((after.lost, after.declined), (stats.lost, stats.declined));
    assert_eq!(too_old(&world), old, "dropped as too old");
    for number in 0..NODES {
        assert_eq!(counted(&world, Node::Backend(number), "TCPZeroWindowDrop"), 0, "node {number}");
    }
}
