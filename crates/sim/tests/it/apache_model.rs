//! The Apache back-end by hand: every figure here is worked out from tables 2 and 3 of Hyun et al., and Apache 1.3's defaults.

use plimsoll_policy::{BackendId, Health, Kind, Nanos, Time};
use plimsoll_sim::models::apache::ApacheParams;
use plimsoll_sim::{Fault, FaultAction, SimRequest};

use crate::apache_run::{ApacheRun, BASIC, ESTABLISH, MS, SEND, TEARDOWN, US, not_modified, plain, sums};
use crate::common::request;

#[test]
fn a_connection_alone_costs_what_table_3_says() {
    // 304: basic steps and the answer; the first segment is all of it. Then the client has it half a round trip later.
    let connections = ApacheRun::default().connections(&[not_modified(0)]);
    let server = BASIC + 30 * US;
    assert_eq!(sums(&connections), (server, 200 * MS + server));
    assert_eq!((connections.opened, connections.refusals, connections.forks), (1, [0; 3], 0));
}

#[test]
fn a_miss_adds_a_read_and_a_hit_does_not() {
    // 512 bytes are one unit to send and one block to read. The second request finds the document.
    let run = ApacheRun::default();
    let read = 15_600 * US + 300 * US;
    let (outcome, _) = run.run(&[request(0, 512, 0), request(0, 512, 1_000), not_modified(2_000)]);
    let connections = outcome.connections.as_ref().unwrap();
    let (miss, hit, unchanged) = (BASIC + read + SEND, BASIC + SEND, BASIC + 30 * US);
    assert_eq!(sums(connections).0, miss + hit + unchanged);
    assert_eq!(outcome.backends[0].usage.reads, 1);
    // Until the last SYN comes. Establishment and teardown included.
    let both = 2 * (ESTABLISH + BASIC + SEND + TEARDOWN);
    assert_eq!(outcome.backends[0].usage.cpu, Nanos::new(both));
    assert_eq!(outcome.backends[0].usage.disk, Nanos::new(read));
    assert_eq!(outcome.simulated, Nanos::from_secs(2));
}

#[test]
fn who_needs_a_document_that_is_being_read_waits_for_it() {
    let (outcome, _) = ApacheRun::default().run(&[request(0, 512, 0), request(0, 512, 5), not_modified(500)]);
    assert_eq!((outcome.backends[0].usage.reads, outcome.backends[0].usage.joined), (1, 1));
    // The read ends 213 µs + 15.9 ms after the first request; the two answers follow one another.
    let read_ends = BASIC + 15_900 * US;
    let second = read_ends - 5 * MS + SEND + TEARDOWN + SEND;
    assert_eq!(sums(outcome.connections.as_ref().unwrap()).0, read_ends + SEND + second + BASIC + 30 * US);
}

#[test]
fn a_response_goes_out_in_windows_that_double() {
    // 2 + 4 + 8 segments carry 20,440 bytes. One byte more takes a fourth round.
    let params = plain();
    for (bytes, rounds) in [(2_920, 0), (2_921, 1), (8_760, 1), (20_440, 2), (20_441, 3)] {
        let run = ApacheRun { sizes: vec![bytes], params, ..ApacheRun::default() };
        // The first one brings the document into memory.
        let warm = ApacheRun { warmup: 1, ..run };
        let of = warm.connections(&[request(0, bytes, 0), request(0, bytes, 10_000)]);
        let (server, user) = sums(&of);
        assert_eq!(server, BASIC + 3 * SEND, "the first segment has 1,460 bytes");
        let first_window = BASIC + bytes.min(2_920).div_ceil(512) * SEND;
        // Of the last round, what is new is sent.
        let last = match rounds {
            0 => 0,
            1 => bytes.div_ceil(512) - 2_920u64.div_ceil(512),
            2 => bytes.div_ceil(512) - 8_760u64.div_ceil(512),
            _ => bytes.div_ceil(512) - 20_440u64.div_ceil(512),
        };
        assert_eq!(user, 200 * MS + first_window + rounds * 100 * MS + last * SEND, "{bytes}");
    }
}

#[test]
fn a_process_is_free_when_the_rest_fits_into_the_send_buffer() {
    // One process. The second client's request is there at the same time; the process is free when 10,000 bytes are in the buffer.
    let served_after = |bytes: u64| {
        let params = ApacheParams { start_servers: 1, max_clients: 1, send_buffer_bytes: 10_000, ..plain() };
        let run = ApacheRun { params, sizes: vec![bytes], warmup: 1, ..ApacheRun::default() };
        let of = run.connections(&[request(0, bytes, 0), request(0, bytes, 10_000), not_modified(10_000)]);
        sums(&of).0 - (BASIC + 3 * SEND)
    };
    let first_window = BASIC + 6 * SEND + TEARDOWN;
    assert_eq!(served_after(10_000), first_window + BASIC + 30 * US);
    // 12,920 bytes: 10,000 are left when the first 2,920 are acknowledged, a round trip after they went out. The kernel then sends 5,840.
    let acknowledged = first_window - TEARDOWN + 100 * MS;
    let sent = 8_760u64.div_ceil(512) - 2_920u64.div_ceil(512);
    assert_eq!(served_after(12_920), acknowledged + sent * SEND + BASIC + 30 * US);
}

#[test]
fn more_than_150_and_511_are_refused_and_come_again() {
    // All at once: 150 processes hold connections, 511 wait. Two are refused; after 3 s there is room for them.
    let requests: Vec<SimRequest> = (0..663).map(|_| not_modified(0)).collect();
    let of = ApacheRun::default().connections(&requests);
    assert_eq!((of.refusals, of.given_up, of.opened), ([2, 0, 0], 0, 663));
    let first = of.user_latency_ns.max().unwrap();
    assert_eq!(first / MS, 3_200, "3 s, two round trips, and less than a millisecond");
    // Without a process they never get anywhere: refused at 0, 3 and 9 s.
    let params = ApacheParams { start_servers: 1, max_clients: 1, backlog: 0, ..plain() };
    let holder = SimRequest { service: Nanos::from_secs(100), ..not_modified(0) };
    let run = ApacheRun { params, ..ApacheRun::default() };
    let requests = [holder, not_modified(1), not_modified(2)];
    let (outcome, decisions) = run.run(&requests);
    let of = outcome.connections.as_ref().unwrap();
    assert_eq!((of.refusals, of.given_up, outcome.rejected, outcome.completed), ([2, 2, 2], 2, 2, 1));
    let at: Vec<u64> = decisions.iter().map(|d| d.time.as_nanos() / MS).collect();
    assert_eq!(at, [0, 1, 2, 3_001, 3_002, 9_001, 9_002]);
}

#[test]
fn an_idle_process_holds_a_connection_from_its_syn() {
    // One process. The first client is far away: its request comes after 100 ms, and the second one waits for it.
    let params = ApacheParams { start_servers: 1, max_clients: 1, ..plain() };
    let requests = [not_modified(0), not_modified(50), not_modified(60)];
    let answer = BASIC + 30 * US;
    let run = ApacheRun { params, ..ApacheRun::default() };
    // Each finds the process free when its request comes.
    assert_eq!(sums(&run.connections(&requests)).0, 3 * answer);
    let busy = SimRequest { service: Nanos::from_millis(80), ..not_modified(0) };
    let requests = [busy, not_modified(50), not_modified(60)];
    // The first ends at 180 ms and its 66 µs; the others wait 30 and 20 ms, and for one another.
    let first = answer + 80 * MS;
    let second = first + TEARDOWN - 50 * MS + answer;
    let third = second + TEARDOWN - 10 * MS + answer;
    assert_eq!(sums(&run.connections(&requests)).0, first + second + third);
}

#[test]
fn a_connection_counts_from_its_establishment() {
    // 50 SYNs within a round trip: nobody has load yet, so all go to the first back-end. Counted from the SYN they are spread.
    let requests: Vec<SimRequest> = (0..50).map(not_modified).collect();
    let to_first = |counted_from_syn: u32| {
        let params = ApacheParams { counted_from_syn, ..plain() };
        let run = ApacheRun { params, policy: "least_connections", backends: 2, ..ApacheRun::default() };
        run.run(&requests).1.iter().filter(|d| d.backend == BackendId(0)).count()
    };
    assert_eq!((to_first(0), to_first(1)), (50, 25));
}

#[test]
fn a_connection_stays_for_15_seconds_or_100_requests() {
    let http11 = |at_ms: u64, client: u32| SimRequest { client, http11: true, ..not_modified(at_ms) };
    let params = ApacheParams { http11_of_input: 1, ..plain() };
    let run = ApacheRun { params, backends: 2, ..ApacheRun::default() };
    let answer = BASIC + 30 * US;
    // The second request of client 7 goes on its connection: no round trip before it. The third comes too late.
    let (outcome, decisions) = run.run(&[http11(0, 7), http11(1_000, 7), http11(16_200, 7)]);
    let of = outcome.connections.as_ref().unwrap();
    assert_eq!((outcome.completed, of.opened, decisions.len()), (3, 2, 2));
    assert_eq!(sums(of), (3 * answer, 3 * answer + (200 + 100 + 200) * MS));
    // Without it in the input's requests, or with HTTP/1.0, each opens one.
    let plain_run = ApacheRun { backends: 2, ..ApacheRun::default() };
    assert_eq!(plain_run.connections(&[http11(0, 7), http11(1_000, 7)]).opened, 2);
    // 100 requests and one more.
    let many: Vec<SimRequest> = (0..101).map(|n| http11(n * 1_000, 7)).collect();
    assert_eq!(run.connections(&many).opened, 2);
}

#[test]
fn a_process_is_held_while_its_connection_stays() {
    let http11 = |at_ms: u64| SimRequest { http11: true, ..not_modified(at_ms) };
    let params = ApacheParams { http11_of_input: 1, start_servers: 1, max_clients: 1, ..plain() };
    let other = SimRequest { client: 1, ..not_modified(200) };
    let of = ApacheRun { params, ..ApacheRun::default() }.connections(&[http11(0), other]);
    // The first answer is out at 100 ms; the process is free 15 s later, and the other request has waited since 300 ms.
    let answer = BASIC + 30 * US;
    let closed = 100 * MS + answer + 15_000 * MS;
    assert_eq!(sums(&of).0, answer + (closed + TEARDOWN - 300 * MS) + answer);
}

#[test]
fn a_long_request_gives_way_when_its_credit_is_used() {
    // 250 ms of work at 100 ms, one of 1 ms 1 ms later: it waits until 100 ms of credit are used, not for all of it.
    let long = SimRequest { service: Nanos::from_millis(250), ..not_modified(0) };
    let latencies = |scheduler: u32| {
        let params = ApacheParams { scheduler, ..plain() };
        sums(&ApacheRun { params, ..ApacheRun::default() }.connections(&[long, not_modified(1)])).0
    };
    let answer = BASIC + 30 * US;
    let alone = 250 * MS + answer;
    // Credits: the long one is 243 + 66 µs longer. The SYN of the short one is no longer in its time.
    assert_eq!(latencies(0), (alone + answer + TEARDOWN) + (99 * MS + answer));
    // First come first served: the short one waits for all of it.
    assert_eq!(latencies(2), alone + (alone + TEARDOWN - MS + answer));
    // With preemption it has more credit at once.
    assert_eq!(latencies(1), (alone + answer + TEARDOWN) + answer);
}

#[test]
fn dynamic_requests_take_the_time_of_their_class_and_no_disk() {
    let params = ApacheParams { dynamic_share: 1.0, dynamic_deviation: 0.0, dynamic_classes: 4, ..plain() };
    let (outcome, _) = ApacheRun { params, ..ApacheRun::default() }.run(&[request(0, 512, 0)]);
    // 2 KB are one segment and a part of another.
    assert_eq!(sums(outcome.connections.as_ref().unwrap()).0, BASIC + 40 * MS + 3 * SEND);
    assert_eq!(outcome.sent_bytes, 2_048);
    let of_input = SimRequest { kind: Kind::Dynamic, class: 2, ..request(0, 512, 0) };
    let params = ApacheParams { dynamic_share: 0.0, input_classes: 1, ..params };
    let of = ApacheRun { params, ..ApacheRun::default() }.connections(&[of_input]);
    assert_eq!(sums(&of).0, BASIC + 20 * MS + 3 * SEND);
}

#[test]
fn processes_are_forked_while_few_are_idle() {
    // 5 at the start; 12 long requests at once. After a second 1 is forked, then 2, 4, 8: the 12 have processes then, and 8 are idle.
    let requests: Vec<SimRequest> = (0..12)
        .map(|_| SimRequest { service: Nanos::from_secs(2), ..not_modified(0) })
        .chain([not_modified(20_000)])
        .collect();
    let params = ApacheParams { start_servers: 5, max_spare_servers: 10, ..plain() };
    let of = ApacheRun { params, ..ApacheRun::default() }.connections(&requests);
    assert_eq!(of.forks, 15);
}

#[test]
fn a_failed_back_end_loses_its_connections_and_a_slow_one_takes_longer() {
    let fault =
        |ms: u64, b: u16, action| Fault { at: Time::from_nanos(ms * MS), backend: BackendId(b), action };
    let faults = vec![
        fault(0, 1, FaultAction::Speed(0.5)),
        fault(150, 0, FaultAction::Health(Health::Down)),
        fault(10_000, 0, FaultAction::Health(Health::Up)),
    ];
    let busy = SimRequest { service: Nanos::from_secs(1), ..not_modified(0) };
    let run = ApacheRun { backends: 2, faults, ..ApacheRun::default() };
    // To 0 and lost there; to 1 at half speed; to 1, as 0 is down.
    let (outcome, decisions) = run.run(&[busy, not_modified(1), not_modified(5_000)]);
    assert_eq!((outcome.completed, outcome.lost), (2, 1));
    assert_eq!(decisions.iter().map(|d| d.backend.0).collect::<Vec<_>>(), [0, 1, 1]);
    assert_eq!(sums(outcome.connections.as_ref().unwrap()).0, 4 * (BASIC + 30 * US));
}
