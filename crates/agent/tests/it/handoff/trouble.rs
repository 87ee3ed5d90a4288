//! Handoffs that go wrong, links that are lost, and the end of the agent.

use std::time::Duration;

use plimsoll_agent::daemon::FrontEnd as Known;
use plimsoll_datapath::tcp::TcpState;
use plimsoll_testkit::{PATIENCE, Why, pace, uninterrupted};
use plimsoll_wire::Key;
use plimsoll_wire::message::{Conn, Refusal, ToAgent};

use super::front_end::{Client, Link, Said, key};
use super::{GET, VIP, World, is_document};

const QUIET: Duration = Duration::from_millis(500);
const LEASE: Duration = Duration::from_secs(2);

#[test]
fn who_may_not_open_links() {
    let world = World::with(1, |config| {
        config.front_ends.push(Known { name: "other".to_owned(), address: [10, 77, 0, 77].into() });
    });
    let agent = world.agents[0].address();
    let refused = |key: &Key, name: &str| {
        let link = Link::open(&world.segment, agent, key, name);
        match link {
            Err(why) => why,
            // The handshake is over for us before the agent has checked.
            Ok(mut link) => format!("{:?}", link.hear_within(PATIENCE)),
        }
    };
    assert!(refused(&Key::new([8; 32]), "front-end").contains("same key"));
    assert_eq!(refused(&key(), "stranger"), "Ok(None)");
    assert_eq!(refused(&key(), "other"), "Ok(None)", "known, but from another address");
    // A machine that is no front-end.
    let stranger = world.segment.client.run(|| {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(agent).unwrap();
        let _ = stream.write_all(b"PLIMSOLL");
        uninterrupted(|| stream.read(&mut [0; 100]))
    });
    assert!(matches!(stranger, Ok(0) | Err(_)));
    assert_eq!(world.agents[0].stats().counts.links, 0);
    world.link(0);
    World::eventually("a link", || world.agents[0].stats().counts.links == 1);
}

#[test]
fn refusals() {
    let world = World::with(1, |config| config.max_connections = 1);
    let mut link = world.link(0);
    let (mut client, state) = world.request(0, GET);
    // Nothing that cannot be is taken.
    link.offer(1, 0, LEASE, b"nonsense");
    assert_eq!(link.hear(), Some(Said::Refused(1, Refusal::BadState)));
    let mut elsewhere = TcpState::decode(&state).unwrap();
    elsewhere.flow.vip.set_port(81);
    link.offer(2, 0, LEASE, &super::front_end::encoded(&elsewhere));
    assert_eq!(link.hear(), Some(Said::Refused(2, Refusal::BadState)));
    link.offer(3, 0, Duration::ZERO, &state);
    assert_eq!(link.hear(), Some(Said::Refused(3, Refusal::Late)));
    // What was refused is not touched: it can be handed off still.
    link.hand_off(4, 0, &state);
    assert!(is_document("/size/300000/a", &client.response().1));
    link.ended(4, 0);
    let (_second, state) = world.request(0, GET);
    link.offer(5, 0, LEASE, &state);
    assert_eq!(link.hear(), Some(Said::Refused(5, Refusal::Full)));
    drop(client);
    assert_eq!(link.hear(), Some(Said::Closed(4)));
    assert_eq!(world.agents[0].stats().counts.refused, 4);
}

#[test]
fn a_lease_that_is_not_confirmed_silences_the_agent() {
    let world = World::new(1);
    let mut link = world.link(0);
    let (mut client, state) = world.request(0, "GET /size/30000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    link.offer(1, 0, Duration::from_millis(50), &state);
    assert_eq!(link.hear(), Some(Said::Taken(1)));
    // Whatever came within the lease, it ends.
    World::eventually("silence", || client.is_silent(QUIET));
    assert!(world.agents[0].stats().counts.fenced > 0);
    // Confirmed after all, it goes on where it was.
    link.say(&ToAgent::Confirm { conn: Conn(1) });
    let (head, body) = client.response();
    assert!(head.starts_with("http/1.1 200") && is_document("/size/30000000", &body));
}

#[test]
fn cancelled() {
    let world = World::new(1);
    let mut link = world.link(0);
    let (mut client, state) = world.request(0, "GET /size/30000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    link.offer(1, 0, Duration::from_millis(1500), &state);
    link.say(&ToAgent::Cancel { conn: Conn(1) });
    assert_eq!(link.hear(), Some(Said::Taken(1)));
    // No FIN and no RST, though the answer is not whole.
    World::eventually("silence", || client.is_silent(QUIET));
    World::eventually("the connection is gone", || world.agents[0].stats().counts.connections == 0);
    assert!(client.is_silent(QUIET));
    assert_eq!(world.agents[0].stats().counts.cancelled, 1);
    // There is no socket left that would be in the way.
    let (mut client, state) = world.request(0, GET);
    link.offer(2, 0, LEASE, &state);
    link.say(&ToAgent::Cancel { conn: Conn(2) });
    assert_eq!(link.hear(), Some(Said::Taken(2)));
    World::eventually("the connection is gone", || world.agents[0].stats().counts.connections == 0);
    if client.is_silent(QUIET) {
        link.hand_off(3, 0, &state);
        assert!(is_document("/size/300000/a", &client.response().1));
    }
}

#[test]
fn a_connection_that_cannot_be_given_back_is_kept() {
    let world = World::new(1);
    let mut link = world.link(0);
    let mut client = world.handed_off(&mut link, 0, 1, GET);
    client.response();
    link.ended(1, 0);
    client.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    let Some(Said::Ask { request: 1, .. }) = link.hear() else { panic!() };
    World::eventually("the end of the client's side", || world.sockets(0).contains(" 08 "));
    link.say(&ToAgent::Return { conn: Conn(1), request: 1 });
    assert_eq!(link.hear(), Some(Said::Kept(1, 1)));
    assert!(is_document("/b", &client.response().1));
    assert_eq!(link.ended(1, 1).status, 200);
    assert_eq!(link.hear(), Some(Said::Closed(1)));
    // A Return that nobody asked for.
    let mut client = world.handed_off(&mut link, 0, 2, GET);
    client.response();
    link.ended(2, 0);
    link.say(&ToAgent::Return { conn: Conn(2), request: 0 });
    assert_eq!(link.hear(), Some(Said::Kept(2, 0)));
}

#[test]
fn a_lost_link_loses_no_connection() {
    let world = World::new(1);
    let mut link = world.link(0);
    let mut client = world.handed_off(&mut link, 0, 1, GET);
    assert!(is_document("/size/300000/a", &client.response().1));
    link.ended(1, 0);
    // One that is in the middle of a response.
    let mut slow = world.handed_off(&mut link, 0, 2, "GET /size/20000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    drop(link);
    World::eventually("the loss is noticed", || {
        client.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
        is_document("/b", &client.response().1)
    });
    assert!(is_document("/size/20000000", &slow.response().1));
    // The front-end comes back, with other numbers.
    let mut link = world.link(0);
    let mut adopted = Vec::new();
    for conn in [Conn(11), Conn(12)] {
        let said = link.hear();
        let Some(Said::Adopt { orphan, flow, request, active }) = said else { panic!("{said:?}") };
        link.say(&ToAgent::Adopted { orphan, conn });
        adopted.push((flow.client, request, active));
    }
    let first = client.stream.local_addr().unwrap();
    assert!(adopted.contains(&(first, 1, false)), "{adopted:?}");
    assert!(adopted.contains(&(slow.stream.local_addr().unwrap(), 0, false)), "{adopted:?}");
    let (conn, next) = if adopted[0].0 == first { (11, 12) } else { (12, 11) };
    pace(Duration::from_millis(50), Why::Midst);
    client.send(GET);
    link.stay(conn, 2);
    assert!(is_document("/size/300000/a", &client.response().1));
    link.ended(conn, 2);
    drop(slow);
    assert_eq!(link.hear(), Some(Said::Closed(next)));
}

#[test]
fn a_lost_link_before_the_lease_is_confirmed() {
    let world = World::new(1);
    let mut link = world.link(0);
    let (mut client, state) = world.request(0, "GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    link.offer(1, 0, Duration::from_secs(3), &state);
    assert_eq!(link.hear(), Some(Said::Taken(1)));
    drop(link);
    assert!(is_document("/b", &client.response().1), "within the lease");
    World::eventually("it is forgotten", || world.agents[0].stats().counts.connections == 0);
    // The client hears of no end: somebody else may have the connection.
    assert!(client.is_silent(QUIET));
}

#[test]
fn packets_that_come_too_early_and_those_of_nobody() {
    let world = World::new(1);
    let mut link = world.link(0);
    let (mut client, state) = world.request(0, GET);
    // Led to the agent before it has the connection.
    world.arrives(0, || client.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n"));
    link.hand_off(1, 0, &state);
    assert!(is_document("/size/300000/a", &client.response().1));
    link.ended(1, 0);
    link.stay(1, 1);
    assert!(is_document("/b", &client.response().1));
    assert!(world.agents[0].stats().counts.packets_injected > 0);
    link.ended(1, 1);
    // Nobody tells of this one.
    let (client, _) = world.request(0, GET);
    let from = client.stream.local_addr().unwrap();
    let mut client = client;
    client.send("more");
    let said = link.hear();
    assert!(matches!(said, Some(Said::Stray(flow)) if flow.client == from), "{said:?}");
    assert!(client.is_silent(Duration::from_millis(50)));
    assert!(world.agents[0].stats().counts.strays > 0);
}

#[test]
fn the_clock_is_told_and_a_silent_front_end_is_lost() {
    let world = World::new(1);
    let mut link = world.link(0);
    for token in [7, 8] {
        let before_ns = plimsoll_datapath::now_ns();
        link.say(&ToAgent::Ping { token });
        let Some(Said::Pong { token: same, clock_ns }) = link.hear() else { panic!() };
        assert_eq!(same, token);
        // One machine has one clock.
        assert!((before_ns..=plimsoll_datapath::now_ns()).contains(&clock_ns));
    }
    assert_eq!(link.counted.first().map(|counts| (counts.links, counts.taken)), Some((1, 0)));
    assert_eq!(link.hear_within(PATIENCE), Ok(None));
}

#[test]
fn the_agent_stops() {
    let mut world = World::with(1, |config| config.drain_timeout = Duration::from_secs(3));
    let mut link = world.link(0);
    let mut idle = world.handed_off(&mut link, 0, 1, GET);
    idle.response();
    link.ended(1, 0);
    let mut busy = world.handed_off(&mut link, 0, 2, "GET /size/30000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    // A client that does not read.
    let mut stuck = world.handed_off(&mut link, 0, 3, "GET /size/50000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    let (_late, state) = world.request(0, GET);
    let agent = world.agents.remove(0);
    let machine = &world.segment.back_ends[0];
    let stats = std::thread::scope(|scope| {
        let stopping = scope.spawn(|| machine.run(|| agent.stop().unwrap()));
        assert_eq!(idle.rest().unwrap(), b"", "closed at once");
        World::eventually("a word of it", || link.hear() == Some(Said::Stopping));
        assert!(is_document("/size/30000000", &busy.response().1));
        drop((idle, busy));
        link.offer(4, 0, LEASE, &state);
        let refused = Said::Refused(4, Refusal::Stopping);
        World::eventually("a refusal", || link.hear() == Some(refused.clone()));
        stopping.join().unwrap()
    });
    assert_eq!((stats.counts.taken, stats.counts.connections), (3, 0));
    assert!(stuck.rest().is_err(), "cut off with a RST");
    // Nothing is left on the machine.
    let addresses = machine.run(|| {
        let output = std::process::Command::new("ip").args(["addr", "show", "dev", "lo"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    });
    assert!(!addresses.contains(&VIP.ip().to_string()), "{addresses}");
}

const CLOSE: &str = "GET /size/100000/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// The client of a connection whose answer the agent's kernel has as a whole, and which takes little of it.
fn with_an_unread_answer(world: &World, link: &mut Link) -> Client {
    let (mut client, accepted) = world.front_end.accept(&world.segment);
    rustix::net::sockopt::set_socket_recv_buffer_size(&client.stream, 4096).unwrap();
    client.send(CLOSE);
    let state = world.front_end.extract(&world.segment, accepted, super::address(0));
    link.hand_off(1, 0, &super::front_end::encoded(&state));
    assert!(link.ended(1, 0).complete);
    client
}

#[test]
fn a_client_that_pauses_gets_the_end_of_its_answer() {
    let world = World::new(1);
    let mut link = world.link(0);
    let mut client = with_an_unread_answer(&world, &mut link);
    // Longer than a client is given to end its side.
    let said = link.hear_within(Duration::from_secs(3));
    assert!(said.is_err(), "not over while the client lacks the end: {said:?}");
    assert!(is_document("/size/100000/a", &client.response().1));
    drop(client);
    assert_eq!(link.hear(), Some(Said::Closed(1)));
}

#[test]
fn a_client_that_takes_no_end_is_reset() {
    let mut world = World::with(1, |config| config.drain_timeout = Duration::from_millis(500));
    let mut link = world.link(0);
    let mut client = with_an_unread_answer(&world, &mut link);
    let agent = world.agents.remove(0);
    let stats = world.segment.back_ends[0].run(|| agent.stop().unwrap());
    assert_eq!(stats.counts.connections, 0);
    assert!(client.rest().is_err(), "not left hanging");
}

#[test]
fn connections_of_an_interrupted_link_are_offered_on_others() {
    let timeout = Duration::from_secs(6);
    let world = World::with(1, |config| config.link_timeout = timeout);
    let mut link = world.link(0);
    let mut client = world.handed_off(&mut link, 0, 1, GET);
    client.response();
    link.ended(1, 0);
    // Nothing more is heard of it, though it is not closed: long enough to be in doubt.
    pace(timeout * 7 / 10, Why::TimeIsUp);
    let mut second = world.link(0);
    let said = second.hear_within(PATIENCE).unwrap();
    let Some(Said::Adopt { orphan, flow, request: 0, active: false }) = said else { panic!("{said:?}") };
    assert_eq!(flow.client, client.stream.local_addr().unwrap());
    second.say(&ToAgent::Adopted { orphan, conn: Conn(21) });
    assert_eq!(link.hear(), None);
    // This one is not silent, and stays when there is another one.
    second.say(&ToAgent::Ping { token: 1 });
    assert!(matches!(second.hear(), Some(Said::Pong { token: 1, .. })));
    let mut third = world.link(0);
    client.send(GET);
    second.stay(21, 1);
    client.response();
    second.ended(21, 1);
    // Lost, its connections go to one that was there before.
    drop(second);
    let said = third.hear();
    assert!(matches!(said, Some(Said::Adopt { request: 1, active: false, .. })), "{said:?}");
}
