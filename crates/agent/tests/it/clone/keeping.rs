//! Clones that keep their connection, and clones that are made ahead.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::Shutdown;
use std::time::Duration;

use plimsoll_agent::daemon::CloneConfig;
use plimsoll_lab::Node;
use plimsoll_testkit::{Why, eventually, pace};

use super::client::{Client, get, is_document, is_part};
use super::trouble::begin;
use super::{NODES, World};

fn keeping(is_ipv6: bool) -> World {
    let world = World::of_family(is_ipv6, |config| config.keeps = true);
    world.lead_to(0);
    world
}

/// `count` documents of this size that this node answers for.
fn documents_at(world: &World, number: usize, size: u64, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut client = world.connect();
    for at in 0..400 {
        let path = format!("/size/{size}/k{at}");
        client.send(&format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        if client.answer(true).backend == world.name(number) {
            found.push(path);
            if found.len() == count {
                return found;
            }
        }
    }
    panic!("node {number} answers {} of 400", found.len());
}

fn expect(client: &mut Client, path: &str, backend: &str) {
    let answer = client.answer(false);
    assert!(is_document(path, &answer.body), "{path} by {}: {}", answer.backend, answer.body.len());
    assert_eq!(answer.backend, backend, "{path}");
}

fn next_requests_are_the_clones_own(is_ipv6: bool) {
    let world = keeping(is_ipv6);
    let at: Vec<_> = (0..NODES).map(|number| documents_at(&world, number, 20_000, 4)).collect();
    world.nothing_is_left();
    let before: Vec<_> = (0..NODES).map(|number| world.node(number).stats()).collect();
    let mut client = world.connect();
    let turns = [1, 2, 0, 0, 2, 1];
    for number in turns {
        for path in &at[number] {
            client.send(&get(path));
            expect(&mut client, path, world.name(number));
        }
    }
    // Pipelined as well, the first of them behind a request that the clone has.
    let all: Vec<_> =
        turns.iter().flat_map(|number| at[*number].iter().map(move |path| (path, *number))).collect();
    for group in [1, 5, 24] {
        for group in all.chunks(group) {
            client.send(&group.iter().map(|(path, _)| get(path)).collect::<String>());
            for (path, number) in group {
                expect(&mut client, path, world.name(*number));
            }
        }
    }
    drop(client);
    world.nothing_is_left();
    let stats = world.node(0).stats();
    let since = |of: fn(&plimsoll_agent::daemon::CloneStats) -> u64| of(&stats) - of(&before[0]);
    // Each time 1, 2, (0), 2, 1 and 1 again: four of them at another node than before.
    assert_eq!((since(|stats| stats.requests), since(|stats| stats.own)), (96, 32));
    assert_eq!((since(|stats| stats.cloned), since(|stats| stats.kept)), (13, 51));
    assert_eq!((since(|stats| stats.clone_answers), since(|stats| stats.given_back)), (64, 12));
    assert_eq!((since(|stats| stats.lost), since(|stats| stats.declined)), (0, 0));
    let kept = |number: usize| world.node(number).stats().answered_as_kept - before[number].answered_as_kept;
    assert_eq!(kept(1) + kept(2), 51);
}

#[test]
fn the_next_requests_are_the_clones_own() {
    next_requests_are_the_clones_own(false);
}

#[test]
fn the_next_requests_are_the_clones_own_by_ipv6() {
    next_requests_are_the_clones_own(true);
}

#[test]
fn a_kept_connection_ends_in_all_ways() {
    let world = World::with(|config| {
        config.keeps = true;
        config.idle_timeout = Duration::from_secs(2);
    });
    world.lead_to(0);
    let path = documents_at(&world, 1, 50_000, 1).remove(0);
    world.nothing_is_left();
    // Clones have kept connections in the search as well.
    let before = world.node(0).stats().kept;
    let kept = || {
        let mut client = world.connect();
        for _ in 0..3 {
            client.send(&get(&path));
            expect(&mut client, &path, world.name(1));
        }
        client
    };
    // By its last request, by a client that ends its side before the answer, by time, by FIN and by RST.
    let mut client = kept();
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    expect(&mut client, &path, world.name(1));
    let (rest, end) = client.rest();
    assert!(rest.is_empty() && end.is_ok(), "{end:?}");
    let mut client = kept();
    client.send(&get(&path).repeat(2));
    client.stream.shutdown(Shutdown::Write).unwrap();
    for _ in 0..2 {
        expect(&mut client, &path, world.name(1));
    }
    let (rest, end) = client.rest();
    assert!(rest.is_empty() && end.is_ok(), "{end:?}");
    let (rest, end) = kept().rest();
    assert!(rest.is_empty() && end.is_ok(), "{end:?}");
    drop(kept());
    let client = kept();
    rustix::net::sockopt::set_socket_linger(&client.stream, Some(Duration::ZERO)).unwrap();
    drop(client);
    // With a body, which ends it as well.
    let mut client = kept();
    client.send(&format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"));
    assert_eq!(client.answer(false).status, 405);
    assert!(client.rest().1.is_ok());
    world.nothing_is_left();
    let stats = world.node(0).stats();
    assert_eq!((stats.lost, stats.kept - before), (0, 6 * 2 + 3), "{stats:?}");
}

#[test]
fn a_client_that_ends_its_side_gets_what_another_node_has() {
    let world = keeping(false);
    let (one, two) = (world.document_at(1, 80_000), world.document_at(2, 70_000));
    let mut client = world.connect();
    client.send(&get(&one));
    expect(&mut client, &one, world.name(1));
    // Its FIN may be there before the clone can hand the connection back, or come after that.
    client.send(&get(&two));
    client.stream.shutdown(Shutdown::Write).unwrap();
    let answer = client.answer(false);
    assert!(is_document(&two, &answer.body), "by {}", answer.backend);
    assert!(client.rest().1.is_ok());
    world.nothing_is_left();
    assert_eq!(world.node(0).stats().lost, 0);
}

/// A client with little room that has sent this.
fn late_reader(world: &World, text: &str) -> Client {
    let mut client = world.connect();
    rustix::net::sockopt::set_socket_recv_buffer_size(&client.stream, 4096).unwrap();
    client.send(text);
    client
}

/// Longer than a connection that its clone has ended is known.
const LONG: Duration = Duration::from_secs(7);

#[test]
fn a_client_that_reads_late_gets_all_of_the_last_answer() {
    // The kernel takes all of it, and the client has no room for it.
    let world = keeping(false);
    let [path] = &documents_at(&world, 1, 40_000, 1)[..] else { panic!("one document") };
    let mut client =
        late_reader(&world, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    pace(LONG, Why::SlowPeer);
    let answer = client.answer(false);
    assert!(is_document(path, &answer.body) && answer.backend == world.name(1));
    let (rest, end) = client.rest();
    assert!(rest.is_empty() && end.is_ok(), "{end:?}");
    world.nothing_is_left();
    assert_eq!(world.node(0).stats().lost, 0);
}

#[test]
fn a_client_that_leaves_without_reading_leaves_nothing() {
    // Nothing waits for this time-out.
    let world =
        World::with(|config| (config.keeps, config.write_timeout) = (true, Duration::from_secs(3600)));
    world.lead_to(0);
    let [path] = &documents_at(&world, 1, 40_000, 1)[..] else { panic!("one document") };
    let client = late_reader(&world, &get(path));
    eventually("the answer", || world.node(1).stats().answered_as_clone > 0);
    rustix::net::sockopt::set_socket_linger(&client.stream, Some(Duration::ZERO)).unwrap();
    drop(client);
    world.nothing_is_left();
}

/// What becomes of a client whose kept connection is idle.
fn end_of_idle(world: &mut World, fail: impl FnOnce(&mut World)) -> std::io::Result<()> {
    let path = world.document_at(1, 50_000);
    let mut client = world.connect();
    for _ in 0..3 {
        client.send(&get(&path));
        expect(&mut client, &path, world.name(1));
    }
    fail(world);
    let (rest, end) = client.rest();
    assert!(rest.is_empty());
    end
}

#[test]
fn a_kept_connection_ends_when_its_node_is_cut_off() {
    let mut world = keeping(false);
    let end = end_of_idle(&mut world, |world| world.lab.link(Node::Backend(1)).unwrap().down().unwrap());
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(world.node(0).stats().lost, 1);
    // While it answers.
    world.lab.link(Node::Backend(1)).unwrap().up().unwrap();
    world.are_linked();
    let path = world.document_at(1, 30_000_000);
    let mut client = world.connect();
    client.send(&get("/size/10/before"));
    client.answer(false);
    let mut body = begin(&mut client, &path, 100_000);
    world.lab.link(Node::Backend(1)).unwrap().down().unwrap();
    let (rest, end) = client.rest();
    body.extend(rest);
    assert!(is_part(&path, 0, &body) && body.len() < 30_000_000);
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    eventually("no flow", || world.node(0).routed() == 0 && world.node(0).open() == 0);
}

#[test]
fn a_kept_connection_ends_when_either_node_stops() {
    for stopped in [0, 1] {
        let mut world = keeping(false);
        let end = end_of_idle(&mut world, |world| {
            let node = world.nodes[stopped].take().unwrap();
            world.lab.node(Node::Backend(stopped)).unwrap().run(|| node.stop()).unwrap().unwrap();
        });
        assert!(end.is_ok(), "{stopped}: {end:?}");
    }
}

fn ahead(change: impl Fn(&mut CloneConfig)) -> World {
    let world = World::with(|config| {
        config.ahead = 4;
        change(config);
    });
    world.lead_to(0);
    world
}

#[test]
fn clones_made_ahead_answer_in_turn() {
    let world = ahead(|_| {});
    let at: Vec<_> = (0..NODES).map(|number| documents_at(&world, number, 30_000, 4)).collect();
    world.nothing_is_left();
    let before: Vec<_> = (0..NODES).map(|number| world.node(number).stats()).collect();
    let mut client = world.connect();
    // The second of each two is made ahead, but where the first one is answered here or by the same node.
    let turns = [(1, 2), (2, 1), (1, 0), (0, 1), (1, 1)];
    for round in 0..3 {
        for (first, second) in turns {
            let paths = [(&at[first][round], first), (&at[second][round + 1], second)];
            client.send(&paths.map(|(path, _)| get(path)).concat());
            for (path, number) in paths {
                expect(&mut client, path, world.name(number));
            }
        }
    }
    drop(client);
    world.nothing_is_left();
    let stats = world.node(0).stats();
    assert_eq!((stats.requests - before[0].requests, stats.own - before[0].own), (30, 6));
    assert_eq!((stats.ahead, stats.cloned - before[0].cloned, stats.declined, stats.lost), (6, 24, 0, 0));
    assert_eq!((stats.fast_forwarded - before[0].fast_forwarded, stats.kept), (18, 0));
}

#[test]
fn the_last_request_of_those_made_ahead_ends_the_connection() {
    let world = ahead(|_| {});
    let (one, two) = (world.document_at(1, 300_000), world.document_at(2, 200_000));
    let mut client = world.connect();
    let last = format!("GET {two} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    client.send(&format!("{}{last}{}", get(&one), get(&one)));
    expect(&mut client, &one, world.name(1));
    expect(&mut client, &two, world.name(2));
    let (rest, end) = client.rest();
    assert!(rest.is_empty() && end.is_ok(), "{end:?}");
    world.nothing_is_left();
    assert_eq!((world.node(0).stats().ahead, world.node(0).stats().lost), (1, 0));
}

#[test]
fn a_clone_made_ahead_that_is_gone_is_done_without() {
    let world = ahead(|_| {});
    let (one, two) = (world.document_at(1, 20_000_000), world.document_at(2, 200_000));
    let mut client = world.connect();
    client.send(&format!("{}{}", get(&one), get(&two)));
    // The first one is under way, and its client takes nothing.
    eventually("clones", || world.node(2).stats().made > 0 && world.node(2).open() > 0);
    pace(Duration::from_millis(100), Why::SlowPeer);
    world.lab.link(Node::Backend(2)).unwrap().down().unwrap();
    eventually("no link", || world.node(0).links_up() == super::THREADS);
    let answer = client.answer(false);
    assert!(is_document(&one, &answer.body));
    let answer = client.answer(false);
    assert!(is_document(&two, &answer.body) && answer.backend != world.name(2), "by {}", answer.backend);
    drop(client);
    world.lab.link(Node::Backend(2)).unwrap().up().unwrap();
    world.are_linked();
    world.nothing_is_left();
    assert_eq!((world.node(0).stats().ahead, world.node(0).stats().lost), (0, 0));
}

#[test]
fn a_node_that_has_no_room_makes_no_clone_ahead() {
    let world = ahead(|config| {
        if config.listen.ip().to_string().ends_with(".13") {
            config.max_connections = 1;
        }
    });
    let (one, two) = (world.document_at(1, 100_000), world.document_at(2, 90_000));
    world.nothing_is_left();
    let busy = world.document_at(2, 20_000_000);
    world.nothing_is_left();
    // Takes the only place there.
    let mut reader = world.connect();
    begin(&mut reader, &busy, 1000);
    // The search for documents may have been refused, too, while the clone before was still there.
    let before = world.node(2).stats().refused;
    let mut client = world.connect();
    let mut backends = BTreeSet::new();
    for _ in 0..3 {
        client.send(&format!("{}{}{}", get(&one), get(&two), get(&one)));
        for path in [&one, &two, &one] {
            let answer = client.answer(false);
            assert!(is_document(path, &answer.body), "{path} by {}", answer.backend);
            backends.insert(answer.backend);
        }
    }
    assert!(!backends.contains(world.name(2)), "{backends:?}");
    drop((client, reader));
    world.nothing_is_left();
    // Each time at least once: ahead, or in its turn.
    let refused = world.node(2).stats().refused - before;
    assert!(refused >= 3, "{refused}");
}
