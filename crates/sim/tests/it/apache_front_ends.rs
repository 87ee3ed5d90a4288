//! Front-ends of the Apache model that read requests: one handoff, multiple handoff, and back-end forwarding, by hand.

use plimsoll_policy::{BackendId, Health, Nanos, Time};
use plimsoll_sim::models::apache::ApacheParams;
use plimsoll_sim::{Fault, FaultAction, SimRequest};

use crate::apache_run::{ApacheRun, BASIC, MS, SEND, US, not_modified, plain, sums};
use crate::common::request;

/// Two back-ends in turn, and two requests of one client for the same document: the second one a second after the first.
fn two_requests(front_end: u32) -> (ApacheRun<'static>, [SimRequest; 2]) {
    let params = ApacheParams { front_end, http11_share: 1.0, ..plain() };
    (ApacheRun { params, backends: 2, ..ApacheRun::default() }, [request(0, 512, 0), request(0, 512, 1_000)])
}

/// What a miss costs: 512 bytes are one unit to send and one block to read.
const MISS: u64 = BASIC + 15_900 * US + SEND;

fn chosen(front_end: u32) -> Vec<(u64, u16)> {
    let (run, requests) = two_requests(front_end);
    run.run(&requests).1.iter().map(|d| (d.time.as_nanos() / MS, d.backend.0)).collect()
}

#[test]
fn who_chooses_when() {
    // At the SYN; one round trip later, when the request is there; for each request, the second one on an open connection.
    assert_eq!(chosen(0), [(0, 0)]);
    assert_eq!(chosen(1), [(100, 0)]);
    assert_eq!(chosen(2), [(100, 0), (1_000, 1)]);
    assert_eq!(chosen(3), [(100, 0), (1_000, 1)]);
}

#[test]
fn one_handoff_keeps_the_back_end_and_its_memory() {
    let (run, requests) = two_requests(1);
    let of = run.connections(&requests);
    // The kernel takes the connection over before the process begins.
    assert_eq!((sums(&of).0, of.opened), (66 * US + MISS + BASIC + SEND, 1));
}

#[test]
fn multiple_handoff_moves_the_connection() {
    let (run, requests) = two_requests(2);
    let (outcome, _) = run.run(&requests);
    let of = outcome.connections.as_ref().unwrap();
    // Both read the document. No further round trip.
    assert_eq!(sums(of).0, 2 * (66 * US + MISS));
    assert_eq!(sums(of).1, 66 * US + MISS + 200 * MS + 66 * US + MISS + 100 * MS);
    assert_eq!((of.opened, outcome.backends[0].usage.reads), (1, 1));
}

#[test]
fn a_back_end_fetches_from_the_one_chosen() {
    let (run, requests) = two_requests(3);
    let (outcome, _) = run.run(&requests);
    let of = outcome.connections.as_ref().unwrap();
    // The second answer is made by the other back-end, taken by the first one, and sent by that.
    assert_eq!(sums(of).0, (66 * US + MISS) + (MISS + SEND + SEND));
    // It counts for the back-end that was chosen.
    assert_eq!((outcome.backends[0].requests, outcome.backends[1].requests), (1, 1));
}

#[test]
fn back_ends_that_wait_for_one_another_do_not_wait_forever() {
    // One process each. Both are held by connections that stay, and both need the other one.
    let params =
        ApacheParams { start_servers: 1, max_clients: 1, front_end: 3, http11_share: 1.0, ..plain() };
    let of_client = |client: u32, at_ms: u64| SimRequest { client, ..not_modified(at_ms) };
    let run = ApacheRun { params, backends: 2, ..ApacheRun::default() };
    let requests = [of_client(1, 0), of_client(2, 10), of_client(2, 1_000), of_client(1, 1_000)];
    let (outcome, decisions) = run.run(&requests);
    assert_eq!(decisions.iter().map(|d| d.backend.0).collect::<Vec<_>>(), [0, 1, 0, 1]);
    assert_eq!(outcome.completed, 4);
    let answer = BASIC + 30 * US;
    // Each takes the other's answer, and answers without a document once more.
    let fetched = answer + 30 * US;
    assert_eq!(sums(outcome.connections.as_ref().unwrap()).0, 2 * (66 * US + answer) + 2 * fetched);
}

#[test]
fn a_full_back_end_resets_a_connection_that_is_handed_off() {
    let params = ApacheParams { start_servers: 1, max_clients: 1, backlog: 0, front_end: 1, ..plain() };
    let busy = SimRequest { service: Nanos::from_millis(50), ..not_modified(0) };
    let (outcome, _) =
        ApacheRun { params, ..ApacheRun::default() }.run(&[busy, not_modified(1), not_modified(1_000)]);
    let of = outcome.connections.as_ref().unwrap();
    assert_eq!((of.refusals, of.given_up, outcome.rejected, outcome.completed), ([1, 0, 0], 1, 1, 2));
}

#[test]
fn an_answer_that_is_being_fetched_is_lost_with_its_back_end() {
    let (run, [first, second]) = two_requests(3);
    let down = Fault {
        at: Time::from_nanos(1_005 * MS),
        backend: BackendId(1),
        action: FaultAction::Health(Health::Down),
    };
    let (outcome, _) = ApacheRun { faults: vec![down], ..run }.run(&[first, second, not_modified(2_000)]);
    assert_eq!((outcome.completed, outcome.lost), (2, 1));
    // Until the last SYN comes. Of the lost answer nothing was left to do here.
    assert_eq!(outcome.backends[0].usage.cpu, Nanos::new(66 * US + BASIC + SEND));
}
