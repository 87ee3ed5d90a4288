//! The same by IPv6: clients, links between nodes, and what is led to clones.

use super::{World, answers};

fn world() -> World {
    World::of_family(true, |_| {})
}

#[test]
fn each_request_is_answered_by_the_node_that_has_it() {
    answers::each_request(&world());
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    answers::pipelined(&world());
}

#[test]
fn other_requests_and_answers() {
    answers::others(&world());
}

#[test]
fn a_next_request_waits_while_a_slow_reader_takes_an_answer() {
    answers::slow_reader(&world());
}

#[test]
fn curl_gets_what_is_at_other_nodes() {
    answers::by_curl(&world());
}
