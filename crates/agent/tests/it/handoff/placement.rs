//! Handoffs as they should be: requests placed here and there.

use plimsoll_wire::message::{Conn, ToAgent};

use super::front_end::Said;
use super::{GET, World, is_document};

#[test]
fn a_connection_is_taken_over_and_its_request_answered() {
    let world = World::new(1);
    let mut link = world.link(0);
    let mut client = world.handed_off(&mut link, 0, 5, GET);
    let (head, body) = client.response();
    assert!(head.starts_with("http/1.1 200 ok\r\n") && head.contains("\r\ndate: "), "{head}");
    assert!(is_document("/size/300000/a", &body));
    let ended = link.ended(5, 0);
    assert_eq!((ended.status, ended.complete, ended.content_bytes), (200, true, 300_000));
    assert!(ended.first_byte_us <= ended.total_us);
    // The client ends the connection.
    drop(client);
    assert_eq!(link.hear(), Some(Said::Closed(5)));
    World::eventually("no connection is left", || world.agents[0].stats().counts.connections == 0);
    assert_eq!(world.agents[0].stats().counts.requests, 1);
}

#[test]
fn further_requests_stay_or_move() {
    let world = World::new(2);
    let (mut one, mut two) = (world.link(0), world.link(1));
    let mut client = world.handed_off(&mut one, 0, 1, GET);
    assert!(is_document("/size/300000/a", &client.response().1));
    one.ended(1, 0);
    for request in 1..4 {
        client.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
        one.stay(1, request);
        assert!(is_document("/b", &client.response().1));
        assert_eq!(one.ended(1, request).content_bytes, 1000);
    }
    // The next one belongs to the other back-end.
    client.send(GET);
    let said = one.hear();
    let Some(Said::Ask { conn: 1, request: 4, portable: true, head }) = said else { panic!("{said:?}") };
    assert_eq!(head, GET);
    one.say(&ToAgent::Return { conn: Conn(1), request: 4 });
    let said = one.hear();
    let Some(Said::Returned { conn: 1, request: 4, state }) = said else { panic!("{said:?}") };
    let flow = plimsoll_datapath::tcp::TcpState::decode(&state).unwrap().flow;
    world.front_end.lead(&world.segment, &flow, super::address(1));
    one.say(&ToAgent::Released { conn: Conn(1) });
    two.hand_off(9, 4, &state);
    assert!(is_document("/size/300000/a", &client.response().1));
    assert_eq!(two.ended(9, 4).status, 200);
    // And back to the first, under another number.
    client.send(GET);
    assert!(matches!(two.hear(), Some(Said::Ask { conn: 9, request: 5, portable: true, .. })));
    two.say(&ToAgent::Return { conn: Conn(9), request: 5 });
    let Some(Said::Returned { conn: 9, request: 5, state }) = two.hear() else { panic!() };
    world.front_end.lead(&world.segment, &flow, super::address(0));
    two.say(&ToAgent::Released { conn: Conn(9) });
    one.hand_off(2, 5, &state);
    assert!(is_document("/size/300000/a", &client.response().1));
    assert_eq!(one.ended(2, 5).content_bytes, 300_000);
    let stats = [world.agents[0].stats(), world.agents[1].stats()];
    assert_eq!(
        (stats[0].counts.taken, stats[0].counts.returned, stats[1].counts.taken, stats[1].counts.returned),
        (2, 1, 1, 1)
    );
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let world = World::new(1);
    let mut link = world.link(0);
    let three = ["/size/100000/a", "/size/5/b", "/size/70000/c"];
    let all: String = three.map(|path| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).concat();
    let mut client = world.handed_off(&mut link, 0, 1, &all);
    for (path, request) in three.into_iter().zip(0..) {
        if request > 0 {
            link.stay(1, request);
        }
        assert!(is_document(path, &client.response().1), "{path}");
        assert_eq!(link.ended(1, request).status, 200);
    }
}

#[test]
fn a_pipelined_request_moves_with_what_follows() {
    let world = World::new(2);
    let (mut one, mut two) = (world.link(0), world.link(1));
    let all = format!("{GET}GET /b HTTP/1.1\r\nHost: x\r\n\r\nGET /c HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut client = world.handed_off(&mut one, 0, 1, &all);
    one.ended(1, 0);
    assert!(matches!(one.hear(), Some(Said::Ask { conn: 1, request: 1, .. })));
    one.say(&ToAgent::Return { conn: Conn(1), request: 1 });
    // Perhaps before the client has read any of the first answer.
    let Some(Said::Returned { state, .. }) = one.hear() else { panic!() };
    let flow = plimsoll_datapath::tcp::TcpState::decode(&state).unwrap().flow;
    world.front_end.lead(&world.segment, &flow, super::address(1));
    one.say(&ToAgent::Released { conn: Conn(1) });
    two.hand_off(1, 1, &state);
    two.ended(1, 1);
    two.stay(1, 2);
    for path in ["/size/300000/a", "/b", "/c"] {
        assert!(is_document(path, &client.response().1), "{path}");
    }
    assert_eq!(two.ended(1, 2).status, 200);
}

#[test]
fn packets_follow_a_connection_that_was_given_back() {
    let world = World::new(2);
    let (mut one, mut two) = (world.link(0), world.link(1));
    let mut client = world.handed_off(&mut one, 0, 1, GET);
    client.response();
    one.ended(1, 0);
    client.send(GET);
    assert!(matches!(one.hear(), Some(Said::Ask { conn: 1, request: 1, .. })));
    one.say(&ToAgent::Return { conn: Conn(1), request: 1 });
    let Some(Said::Returned { state, .. }) = one.hear() else { panic!() };
    // Still led to the first back-end, which has no socket for it any more.
    world.arrives(0, || client.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n"));
    let flow = plimsoll_datapath::tcp::TcpState::decode(&state).unwrap().flow;
    world.front_end.lead(&world.segment, &flow, super::address(1));
    one.say(&ToAgent::Released { conn: Conn(1) });
    World::eventually("the packet is sent on", || world.agents[0].stats().counts.packets_emitted > 0);
    two.hand_off(1, 1, &state);
    assert!(is_document("/size/300000/a", &client.response().1));
    two.ended(1, 1);
    two.stay(1, 2);
    assert!(is_document("/b", &client.response().1));
    assert!(world.agents[1].stats().counts.packets_injected > 0);
}

#[test]
fn the_origin_listens_besides() {
    let world = World::with(1, |config| config.origin_listen = Some((super::address(0), 0).into()));
    let mut link = world.link(0);
    let mut client = world.handed_off(&mut link, 0, 1, GET);
    client.response();
    let origin = world.agents[0].origin_address().unwrap();
    let mut direct = world.segment.front_end.run(|| super::Client::connect(origin));
    direct.send(GET);
    let (head, body) = direct.response();
    // One cache serves both.
    assert!(head.contains("x-cache: hit") && is_document("/size/300000/a", &body), "{head}");
    assert_eq!(world.agents[0].stats().origin.unwrap().requests, 2);
}

#[test]
fn without_asking() {
    let world = World::new(1);
    let mut link = world.link(0);
    let (mut client, state) = world.request(0, GET);
    let lease_until_ns = link.clock.lease(plimsoll_datapath::now_ns(), 1_000_000_000).until_ns;
    link.say(&ToAgent::Handoff { conn: Conn(1), request: 0, lease_until_ns, ask: false, state: &state });
    assert_eq!(link.hear(), Some(Said::Taken(1)));
    link.say(&ToAgent::Confirm { conn: Conn(1) });
    assert!(is_document("/size/300000/a", &client.response().1));
    link.ended(1, 0);
    client.send("HEAD /b HTTP/1.1\r\nHost: x\r\n\r\n");
    let said = link.hear();
    assert!(
        matches!(&said, Some(Said::Began { conn: 1, request: 1, head }) if head.starts_with("HEAD /b")),
        "{said:?}"
    );
    let ended = link.ended(1, 1);
    assert_eq!((ended.status, ended.content_bytes, ended.complete), (200, 0, true));
}

#[test]
fn how_connections_end() {
    let world = World::new(1);
    let mut link = world.link(0);
    let close = "GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let mut client = world.handed_off(&mut link, 0, 1, close);
    let (head, body) = client.response();
    assert!(head.contains("connection: close") && is_document("/b", &body));
    assert_eq!(client.rest().unwrap(), b"");
    drop(client);
    link.ended(1, 0);
    assert_eq!(link.hear(), Some(Said::Closed(1)));
    // HTTP/1.0 ends without being asked to, unless told otherwise.
    let mut client = world.handed_off(&mut link, 0, 2, "GET /b HTTP/1.0\r\n\r\n");
    let all = client.rest().unwrap();
    assert!(is_document("/b", &all[all.len() - 1000..]));
    drop(client);
    link.ended(2, 0);
    assert_eq!(link.hear(), Some(Said::Closed(2)));
    let old = "GET /b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    let mut client = world.handed_off(&mut link, 0, 3, old);
    assert!(client.response().0.contains("connection: keep-alive"));
    link.ended(3, 0);
    // The front-end ends it.
    link.say(&ToAgent::Close { conn: Conn(3) });
    assert_eq!(client.rest().unwrap(), b"");
    drop(client);
    assert_eq!(link.hear(), Some(Said::Closed(3)));
    // The client ends its side after its request.
    let mut client = world.handed_off(&mut link, 0, 4, GET);
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(is_document("/size/300000/a", &client.response().1));
    assert_eq!(client.rest().unwrap(), b"");
    link.ended(4, 0);
    assert_eq!(link.hear(), Some(Said::Closed(4)));
}

#[test]
fn what_the_agent_does_not_serve_goes_back() {
    let world = World::new(1);
    let mut link = world.link(0);
    let post = "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
    for (conn, sent) in [(1, post), (2, "nonsense\r\n\r\n")] {
        let mut client = world.handed_off(&mut link, 0, conn, GET);
        client.response();
        link.ended(conn, 0);
        client.send(sent);
        let Some(Said::Ask { request: 1, head, .. }) = link.hear() else { panic!() };
        assert_eq!(head, sent);
        link.say(&ToAgent::Return { conn: Conn(conn), request: 1 });
        let Some(Said::Returned { state, .. }) = link.hear() else { panic!() };
        let state = plimsoll_datapath::tcp::TcpState::decode(&state).unwrap();
        assert_eq!(state.receive_queue, sent.as_bytes());
    }
    // Told to keep it, it refuses it.
    let mut client = world.handed_off(&mut link, 0, 3, GET);
    client.response();
    link.ended(3, 0);
    client.send(post);
    link.stay(3, 1);
    assert!(client.response().0.starts_with("http/1.1 405 "));
    assert_eq!(link.ended(3, 1).status, 405);
}

#[test]
fn many_at_once() {
    let world = World::new(1);
    let mut link = world.link(0);
    let mut clients: Vec<_> = (0..50).map(|_| world.request(0, GET)).collect();
    for ((_, state), conn) in clients.iter().zip(0..) {
        link.offer(conn, 0, std::time::Duration::from_secs(2), state);
    }
    let (mut taken, mut ended) = (0, 0);
    while ended < 50 {
        match link.hear() {
            Some(Said::Taken(conn)) => {
                taken += 1;
                link.say(&ToAgent::Confirm { conn: Conn(conn) });
            }
            Some(Said::Ended(..)) => ended += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(taken, 50);
    for (client, _) in &mut clients {
        assert!(is_document("/size/300000/a", &client.response().1));
    }
}
