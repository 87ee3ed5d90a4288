//! Two front-ends of one name: the one with the highest term has the connections, whatever the other one says.

use std::time::Duration;

use plimsoll_wire::message::{Conn, Refusal, ToAgent};

use super::front_end::{Client, Link, Said, key};
use super::network::BACK_ENDS;
use super::{GET, Known, World, is_document};

/// An agent that knows a second front-end, on the machine of the other back-end.
fn world() -> World {
    let second = Known { name: "front-end".to_owned(), address: BACK_ENDS[1] };
    World::with(1, move |config| config.front_ends.push(second.clone()))
}

/// A link of the process with this number, on the second machine.
fn second_link(world: &World, instance: u64) -> Link {
    let machine = &world.segment.back_ends[1];
    Link::open_from(machine, world.agents[0].address(), &key(), ("front-end", instance)).unwrap()
}

/// What the agent says next, but for offers: as long as nobody is active, it makes them to whom the connection came from.
fn active(link: &mut Link, term: u64, instance: u64) {
    let said = loop {
        match link.hear() {
            Some(Said::Adopt { .. }) => {}
            said => break said,
        }
    };
    assert_eq!(said, Some(Said::Active { term, instance }));
}

fn become_active(link: &mut Link, term: u64, instance: u64) {
    link.say(&ToAgent::Activate { term });
    active(link, term, instance);
}

/// Takes the one connection that the agent offers next.
fn adopt(link: &mut Link, client: &Client, (conn, request): (u64, u32)) {
    let said = link.hear();
    let Some(Said::Adopt { orphan, flow, request: latest, .. }) = said else { panic!("{said:?}") };
    assert_eq!((flow.client, latest), (client.stream.local_addr().unwrap(), request));
    link.say(&ToAgent::Adopted { orphan, conn: Conn(conn) });
}

/// A client whose connection was handed off by this link, with the number 1, and whose first request is answered.
fn served(world: &World, link: &mut Link) -> Client {
    let mut client = world.handed_off(link, 0, 1, GET);
    client.response();
    link.ended(1, 0);
    client
}

/// The agent asks this front-end about the next request, and the answer is whole.
fn serve(link: &mut Link, client: &mut Client, (conn, request): (u64, u32)) {
    // What was said before has been heard: an agent that has not heard who adopts a connection asks nobody.
    link.say(&ToAgent::Ping { token: 7 });
    loop {
        match link.hear() {
            Some(Said::Pong { token: 7, .. }) => break,
            // Of a request that was answered before anybody had adopted the connection.
            Some(Said::Ended(..)) => {}
            other => panic!("{other:?}"),
        }
    }
    client.send(GET);
    link.stay(conn, request);
    assert!(is_document("/size/300000/a", &client.response().1));
    link.ended(conn, request);
}

#[test]
fn a_front_end_that_was_active_can_do_nothing_any_more() {
    let world = world();
    let mut first = world.link(0);
    become_active(&mut first, 1, 1);
    let mut client = served(&world, &mut first);
    let mut second = second_link(&world, 2);
    active(&mut second, 1, 1);
    // The link of the first one is as alive as before.
    second.say(&ToAgent::Activate { term: 2 });
    adopt(&mut second, &client, (21, 0));
    active(&mut second, 2, 2);
    active(&mut first, 2, 2);
    first.say(&ToAgent::Cancel { conn: Conn(1) });
    first.say(&ToAgent::Close { conn: Conn(1) });
    serve(&mut second, &mut client, (21, 1));
    client.send(GET);
    let asked = second.hear();
    assert!(matches!(asked, Some(Said::Ask { conn: 21, request: 2, .. })), "{asked:?}");
    first.say(&ToAgent::Return { conn: Conn(1), request: 2 });
    // It takes itself for the active one still, as it was paused, say.
    first.say(&ToAgent::Activate { term: 1 });
    active(&mut first, 2, 2);
    second.say(&ToAgent::Stay { conn: Conn(21), request: 2 });
    assert!(is_document("/size/300000/a", &client.response().1));
    second.ended(21, 2);
    let (_other, state) = world.request(0, GET);
    first.offer(5, 0, Duration::from_secs(2), &state);
    assert_eq!(first.hear(), Some(Said::Refused(5, Refusal::NotActive)));
    serve(&mut second, &mut client, (21, 3));
}

#[test]
fn who_gives_up_or_is_gone_is_followed() {
    let world = world();
    let mut first = world.link(0);
    become_active(&mut first, 1, 1);
    let mut second = second_link(&world, 2);
    active(&mut second, 1, 1);
    let mut client = served(&world, &mut first);
    first.say(&ToAgent::Deactivate);
    active(&mut first, 1, 0);
    active(&mut second, 1, 0);
    // Nobody is asked meanwhile.
    client.send(GET);
    assert!(is_document("/size/300000/a", &client.response().1));
    second.say(&ToAgent::Activate { term: 2 });
    adopt(&mut second, &client, (21, 1));
    active(&mut second, 2, 2);
    active(&mut first, 2, 2);
    serve(&mut second, &mut client, (21, 2));
    // Another process on the same machine, before the links of the one before are closed.
    let mut next = second_link(&world, 3);
    active(&mut next, 2, 0);
    active(&mut first, 2, 0);
    drop(second);
    next.say(&ToAgent::Activate { term: 3 });
    adopt(&mut next, &client, (31, 2));
    active(&mut next, 3, 3);
    active(&mut first, 3, 3);
    serve(&mut next, &mut client, (31, 3));
    drop(next);
    active(&mut first, 3, 0);
    first.say(&ToAgent::Activate { term: 4 });
    adopt(&mut first, &client, (41, 3));
    active(&mut first, 4, 1);
    serve(&mut first, &mut client, (41, 4));
}

#[test]
fn the_active_one_is_told_that_it_is_when_all_was_offered() {
    let world = world();
    let mut first = world.link(0);
    become_active(&mut first, 1, 1);
    let mut client = served(&world, &mut first);
    // Another link of the same process: nothing that is said there counts before it has said its term.
    let mut next = world.link(0);
    // The agent has it, so that the process does not count as gone.
    next.say(&ToAgent::Ping { token: 9 });
    let said = next.hear();
    assert!(matches!(said, Some(Said::Pong { token: 9, .. })), "{said:?}");
    drop(first);
    next.say(&ToAgent::Activate { term: 2 });
    adopt(&mut next, &client, (21, 0));
    active(&mut next, 2, 1);
    serve(&mut next, &mut client, (21, 1));
}

#[test]
fn a_process_that_begins_a_new_term_is_offered_what_it_had() {
    let world = world();
    let mut link = world.link(0);
    become_active(&mut link, 1, 1);
    let mut client = served(&world, &mut link);
    // It has let go of all connections, as another one was active for a moment, of which this agent has not heard.
    link.say(&ToAgent::Activate { term: 3 });
    adopt(&mut link, &client, (21, 0));
    active(&mut link, 3, 1);
    serve(&mut link, &mut client, (21, 1));
    // Said once more, it changes nothing.
    become_active(&mut link, 3, 1);
    serve(&mut link, &mut client, (21, 2));
}

#[test]
fn a_connection_that_was_not_offered_counts_as_closed() {
    let world = world();
    let mut link = world.link(0);
    link.say(&ToAgent::Adopted { orphan: 999, conn: Conn(5) });
    assert_eq!(link.hear(), Some(Said::Closed(5)));
}

#[test]
fn what_was_offered_before_the_front_end_became_active_is_offered_again() {
    let world = world();
    let mut first = world.link(0);
    let mut client = served(&world, &mut first);
    let mut second = world.link(0);
    drop(first);
    // Nobody is active yet, and the front-end has no use for it.
    let said = second.hear();
    assert!(matches!(said, Some(Said::Adopt { request: 0, .. })), "{said:?}");
    second.say(&ToAgent::Activate { term: 1 });
    adopt(&mut second, &client, (21, 0));
    active(&mut second, 1, 1);
    serve(&mut second, &mut client, (21, 1));
}
