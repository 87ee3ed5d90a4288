//! Other servers than the origin, what the router cannot hold, repeated messages, and nodes that fail at other times.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use plimsoll_agent::daemon::ServeConfig;
use plimsoll_lab::Node;
use plimsoll_testkit::{Why, eventually, pace, uninterrupted};
use plimsoll_wire::cloning::{CloneRole, ToClone};
use plimsoll_wire::message::Conn;
use plimsoll_wire::session::FrameWriter;
use plimsoll_wire::{Flow, TcpState, Window};

use super::client::{get, is_document, is_part};
use super::trouble::{begin, linked};
use super::{NODES, World};

/// A server on loopback that says who it is and what it was asked for, again and again.
fn small_server(listener: &TcpListener, who: usize) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        std::thread::spawn(move || {
            let mut input = Vec::new();
            let mut buffer = [0; 4096];
            loop {
                while let Some(end) = input.windows(4).position(|end| end == b"\r\n\r\n") {
                    let head = String::from_utf8(input.drain(..end + 4).collect()).unwrap();
                    let body = small_body(head.split(' ').nth(1).unwrap());
                    let framing = if head.contains("/chunked") {
                        format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
                    } else {
                        format!("Content-Length: {}\r\n\r\n{body}", body.len())
                    };
                    stream
                        .write_all(format!("HTTP/1.1 200 OK\r\nX-Backend: {who}\r\n{framing}").as_bytes())
                        .unwrap();
                }
                match uninterrupted(|| stream.read(&mut buffer)) {
                    Ok(0) | Err(_) => return,
                    Ok(count) => input.extend_from_slice(&buffer[..count]),
                }
            }
        });
    }
}

fn small_body(path: &str) -> String {
    format!("{path} ").repeat(1 + path.len() * 137)
}

fn copies(keeps: bool) {
    let world = World::with(|config| {
        config.serve = ServeConfig::Copy(SocketAddr::from(([127, 0, 0, 1], 8080)));
        config.keeps = keeps;
    });
    for number in 0..NODES {
        let listen = || TcpListener::bind("127.0.0.1:8080").unwrap();
        let listener = world.lab.node(Node::Backend(number)).unwrap().run(listen).unwrap();
        std::thread::spawn(move || small_server(&listener, number));
    }
    world.lead_to(0);
    let mut client = world.connect();
    let mut seen = [0; NODES];
    for number in 0..60 {
        let path = format!("/plain/{number}");
        client.send(&get(&path));
        let answer = client.answer(false);
        assert_eq!(String::from_utf8(answer.body).unwrap(), small_body(&path));
        seen[answer.backend.parse::<usize>().unwrap()] += 1;
    }
    assert!(seen.iter().all(|count| *count > 5), "{seen:?}");
    // Without a length, together with another one.
    for number in 0..20 {
        let path = format!("/chunked/{number}");
        client.send(&format!("{}{}", get(&path), get("/plain/0")));
        let body = small_body(&path);
        let framed = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        assert!(client.answer_of(framed.len()).ends_with(&framed), "{path}");
        assert_eq!(String::from_utf8(client.answer(false).body).unwrap(), small_body("/plain/0"));
    }
    drop(client);
    world.nothing_is_left();
    let stats = world.node(0).stats();
    assert_eq!((stats.requests, stats.lost, stats.declined), (100, 0, 0));
    assert!(stats.clone_answers > 40 && stats.clone_answers < 100, "{stats:?}");
    assert_eq!(stats.kept > 0, keeps);
}

#[test]
fn clones_copy_what_other_servers_answer() {
    copies(false);
}

#[test]
fn clones_that_keep_connections_copy_what_other_servers_answer() {
    copies(true);
}

/// More at once than the router holds of a packet: the client sends it again, in smaller ones.
#[test]
fn requests_in_packets_too_long_to_be_held_arrive() {
    let world = World::with(|config| config.link_timeout = Duration::from_secs(20));
    world.lead_to(0);
    let first = world.document_at(1, 3_000_000);
    world.nothing_is_left();
    let paths: Vec<_> = (0..100).map(|number| format!("/size/10/long{number}")).collect();
    let padding = "y".repeat(300);
    let head = |path: &String| format!("GET {path} HTTP/1.1\r\nHost: x\r\nX-Padding: {padding}\r\n\r\n");
    let requests = paths.iter().map(head).collect::<String>();
    // How long a client's kernel makes its packets depends on the round trips that it has measured.
    eventually("packets that are too long", || {
        let before = world.node(0).stats();
        let mut client = world.connect();
        client.send(&get(&first));
        // The answer is under way.
        eventually("a clone", || world.node(0).stats().waited_ns > before.waited_ns);
        client.send(&requests);
        pace(Duration::from_millis(50), Why::SlowPeer);
        for path in std::iter::once(&first).chain(&paths) {
            let answer = client.try_answer(false);
            let answer =
                answer.unwrap_or_else(|error| panic!("{path}: {error}, {:?}", world.node(0).stats()));
            assert!(is_document(path, &answer.body), "{path}");
        }
        drop(client);
        world.nothing_is_left();
        let stats = world.node(0).stats();
        assert_eq!((stats.lost, stats.requests - before.requests), (0, 101), "{stats:?}");
        stats.router.too_long > before.router.too_long
    });
}

#[test]
fn a_message_that_is_repeated_ends_the_link() {
    let world = World::new();
    let (mut stream, mut writer) = linked(&world, 1);
    writer
        .push(&ToClone::Clone {
            conn: Conn(1),
            state: b"no state",
            head: b"GET / HTTP/1.1\r\n\r\n",
            sent: None,
            role: CloneRole::Once,
            followed: false,
        })
        .unwrap();
    let frame = writer.finish().to_vec();
    stream.write_all(&frame).unwrap();
    // Once it is understood, and refused for its state.
    eventually("a refusal", || world.node(0).stats().refused == 1);
    assert_eq!(world.node(0).stats().broken_links, 0);
    stream.write_all(&frame).unwrap();
    eventually("a broken link", || world.node(0).stats().broken_links == 1);
    // Nor on another link.
    let (mut stream, _) = linked(&world, 1);
    stream.write_all(&frame).unwrap();
    eventually("a broken link", || world.node(0).stats().broken_links == 2);
    let stats = world.node(0).stats();
    assert_eq!((stats.refused, stats.made), (1, 0));
}

fn is_reset(end: &std::io::Result<()>) -> bool {
    end.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
}

#[test]
fn a_node_that_is_cut_off_before_it_answers() {
    let world = World::new();
    world.lead_to(0);
    let path = world.document_at(1, 50_000);
    world.nothing_is_left();
    world.lab.link(Node::Backend(1)).unwrap().down().unwrap();
    // Nobody knows that yet.
    let mut client = world.connect();
    client.send(&get(&path));
    let (body, end) = client.rest();
    assert!(body.is_empty() && is_reset(&end), "{} bytes, {end:?}, {:?}", body.len(), world.node(0).stats());
    let mut client = world.connect();
    client.send(&get(&path));
    let answer = client.answer(false);
    assert!(is_document(&path, &answer.body) && answer.backend != world.name(1));
    assert_eq!(world.node(0).stats().lost, 1);
    drop(client);
    world.lab.link(Node::Backend(1)).unwrap().up().unwrap();
    world.are_linked();
    world.nothing_is_left();
}

#[test]
fn a_node_that_is_cut_off_after_it_has_answered() {
    let world = World::new();
    world.lead_to(0);
    let path = world.document_at(1, 50_000);
    world.nothing_is_left();
    let mut client = world.connect();
    for round in 0..3 {
        client.send(&get(&path));
        let answer = client.answer(false);
        assert!(is_document(&path, &answer.body));
        assert_eq!(answer.backend == world.name(1), round == 0, "{round}");
        if round == 0 {
            eventually("the original", || world.node(0).routed() == 0);
            world.lab.link(Node::Backend(1)).unwrap().down().unwrap();
            eventually("no link", || world.node(0).links_up() == super::THREADS);
        }
    }
    drop(client);
    world.lab.link(Node::Backend(1)).unwrap().up().unwrap();
    world.are_linked();
    world.nothing_is_left();
    assert_eq!(world.node(0).stats().lost, 0);
}

#[test]
fn an_original_that_is_cut_off_while_a_clone_answers() {
    let world = World::new();
    world.lead_to(0);
    let path = world.document_at(1, 30_000_000);
    world.nothing_is_left();
    let mut client = world.connect();
    let mut body = begin(&mut client, &path, 100_000);
    world.lab.link(Node::Backend(0)).unwrap().down().unwrap();
    // Acknowledgments reach nobody any more, so not all of it can come.
    client.stream.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
    let (rest, end) = client.rest();
    body.extend(rest);
    assert!(is_part(&path, 0, &body) && body.len() < 30_000_000 && end.is_err(), "{end:?}");
    world.lab.link(Node::Backend(0)).unwrap().up().unwrap();
    world.are_linked();
    world.nothing_is_left();
    assert_eq!(world.node(0).stats().lost, 1);
}

/// A message whose state is valid: of a connection with this address that nobody has.
fn valid_order(world: &World, vip: SocketAddr) -> Vec<u8> {
    let client = world.lab.node(Node::Client).unwrap().address();
    let state = TcpState {
        flow: Flow::new(SocketAddr::new(client.into(), 40_000), vip),
        send_next: 1000,
        receive_next: 2000,
        mss: 1460,
        window_scales: Some((7, 7)),
        sack: true,
        timestamp: None,
        window: Window {
            update_seq: 1999,
            send: 64_000,
            send_max: 64_000,
            receive: 64_000,
            receive_from: 2000,
        },
        send_queue: Vec::new(),
        unsent_bytes: 0,
        receive_queue: Vec::new(),
    };
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    bytes
}

fn clone_message(state: &[u8]) -> ToClone<'_> {
    let head = b"GET /size/10/forged HTTP/1.1\r\nHost: x\r\n\r\n";
    ToClone::Clone { conn: Conn(1), state, head, sent: None, role: CloneRole::Once, followed: false }
}

#[test]
fn messages_with_a_valid_state_that_are_forged_or_repeated_make_no_clone() {
    let world = World::new();
    let stats = || world.node(0).stats();
    let state = valid_order(&world, world.vip());
    let message = |writer: &mut FrameWriter| {
        writer.push(&clone_message(&state)).unwrap();
        writer.finish().to_vec()
    };
    // One byte of the frame is another one: of its length, its state, its seal.
    let (_, mut writer) = linked(&world, 1);
    let bytes = message(&mut writer).len();
    for (number, at) in [bytes / 2, bytes - 1].into_iter().enumerate() {
        let (mut stream, mut writer) = linked(&world, 1);
        let mut frame = message(&mut writer);
        frame[at] ^= 1;
        stream.write_all(&frame).unwrap();
        eventually("a broken link", || stats().broken_links == number as u64 + 1);
    }
    // With the keys of another link.
    let (mut stream, _) = linked(&world, 1);
    let (_, mut writer) = linked(&world, 1);
    stream.write_all(&message(&mut writer)).unwrap();
    eventually("a broken link", || stats().broken_links == 3);
    assert_eq!((stats().made, stats().refused), (0, 0));
    // For an address that is none of clients.
    let (mut stream, mut writer) = linked(&world, 1);
    writer.push(&clone_message(&valid_order(&world, SocketAddr::new(world.address(0), 81)))).unwrap();
    stream.write_all(writer.finish()).unwrap();
    eventually("a refusal", || stats().refused == 1);
    // As it should be, once; not again.
    let (mut stream, mut writer) = linked(&world, 1);
    let frame = message(&mut writer);
    stream.write_all(&frame).unwrap();
    eventually("a clone", || stats().made == 1);
    stream.write_all(&frame).unwrap();
    eventually("a broken link", || stats().broken_links == 4);
    assert_eq!((stats().made, stats().refused), (1, 1));
    drop(stream);
    // Its client does not know it.
    world.nothing_is_left();
}
