//! The LARD back-end by hand: every figure here is worked out from section 3.1 of the paper.

use std::sync::{Arc, Mutex};

use plimsoll_policy::{BackendId, ClusterView, Completion, Decision, Nanos, Policy, Request, Time};
use plimsoll_sim::models::lard::LardModelParams;

use crate::common::{Setup, request, targets};

const US: u64 = 1_000;
const KB: u64 = 1024;

/// Response times in ns of `requests` (target, bytes, ms) to one back-end, from their mean and count.
fn total_ns(
    sizes: &[u64],
    requests: &[(u32, u64, u64)],
    setup: &Setup<'_>,
) -> (f64, plimsoll_sim::RunOutcome) {
    let requests: Vec<_> = requests.iter().map(|&(t, bytes, ms)| request(t, bytes, ms)).collect();
    let (outcome, _) = setup.lard(&targets(sizes), &requests);
    assert_eq!(outcome.completed, requests.len() as u64);
    (outcome.response_ns.mean().unwrap() * requests.len() as f64, outcome)
}

/// 28 ms and 410 µs per 4 KB.
fn first_block(bytes: u64) -> u64 {
    28_000 * US + bytes * 410 * US / (4 * KB)
}

/// 14 ms and 410 µs per 4 KB.
fn further_block(bytes: u64) -> u64 {
    14_000 * US + bytes * 410 * US / (4 * KB)
}

/// 40 µs per 512 bytes.
fn send(bytes: u64) -> u64 {
    bytes * 40 * US / 512
}

#[test]
fn a_cached_8_kb_document_takes_930_us() {
    let (total, outcome) = total_ns(&[8 * KB], &[(0, 8 * KB, 0), (0, 8 * KB, 1000)], &Setup::default());
    // The paper: about 1,075 requests/s. First a miss, then a hit.
    let hit = 290 * US + 16 * 40 * US;
    assert_eq!(hit, 930 * US);
    let miss = hit + first_block(8 * KB);
    assert_eq!(total, (hit + miss) as f64);
    assert_eq!((outcome.miss_ratio(), outcome.joined_ratio()), (Some(0.5), Some(0.0)));
}

#[test]
fn a_large_file_is_sent_block_by_block_while_the_next_is_read() {
    let size = 100 * KB; // blocks of 44, 44 and 12 KB
    let (total, outcome) = total_ns(&[size], &[(0, size, 0)], &Setup::default());
    let read = first_block(44 * KB) + further_block(44 * KB) + further_block(12 * KB);
    // Sending 44 KB takes 3.5 ms, less than the 18.4 ms of the next block: only the last block's sending shows.
    assert_eq!(total, (145 * US + read + send(12 * KB) + 145 * US) as f64);
    assert_eq!(outcome.backends[0].usage.disk, Nanos::new(read));
    assert_eq!(outcome.backends[0].usage.cpu, Nanos::new(290 * US + send(size)));
}

#[test]
fn one_read_serves_every_waiter_and_a_late_one_gets_what_is_there() {
    let size = 88 * KB; // two blocks
    // The second request comes while the first block is being read, the third while the second is.
    let (total, outcome) =
        total_ns(&[size], &[(0, size, 0), (0, size, 10), (0, size, 40)], &Setup::default());
    assert_eq!(outcome.backends[0].usage.reads, 1);
    assert_eq!(outcome.backends[0].usage.joined, 2);
    let end_of_read = 145 * US + first_block(44 * KB) + further_block(44 * KB);
    let last = send(44 * KB) + 145 * US;
    // At the end of the read all three queue for the CPU with their last block, in order of joining.
    let finish = [end_of_read + last, end_of_read + 2 * last, end_of_read + 3 * last];
    assert_eq!(total, (finish[0] + finish[1] - 10_000 * US + finish[2] - 40_000 * US) as f64);
}

#[test]
fn a_request_for_more_than_the_document_joins_and_gets_all() {
    // A log that gives /a 300 bytes in one line and 900 in another.
    let (_, outcome) = total_ns(&[300, 300], &[(0, 300, 0), (0, 900, 1), (1, 300, 2)], &Setup::default());
    assert_eq!(outcome.backends[0].usage.reads, 2);
    assert!(outcome.response_ns.max().unwrap() < 100_000 * US, "nobody waits for another file's read");
}

#[test]
fn the_disk_reads_one_file_after_the_other() {
    let size = 50 * KB;
    let (_, outcome) = total_ns(&[size, size], &[(0, size, 0), (1, size, 0)], &Setup::default());
    let read = first_block(44 * KB) + further_block(6 * KB);
    let end = 145 * US + 2 * read + send(6 * KB) + 145 * US;
    assert_eq!(outcome.response_ns.max(), Some(end));
}

#[test]
fn a_second_disk_works_in_parallel() {
    let size = 50 * KB;
    let setup = Setup { params: LardModelParams { disks: 2, ..Default::default() }, ..Default::default() };
    let (_, outcome) = total_ns(&[size, size], &[(0, size, 0), (1, size, 0)], &setup);
    let read = first_block(44 * KB) + further_block(6 * KB);
    // The second read starts 145 µs after the first, when its connection has been established, and ends while the CPU
    // is busy with the end of the first response.
    let last = send(6 * KB) + 145 * US;
    assert!(last > 145 * US);
    assert_eq!(outcome.response_ns.max(), Some(145 * US + read + 2 * last));
}

#[test]
fn a_faster_cpu_divides_cpu_time_only() {
    let setup =
        Setup { params: LardModelParams { cpu_speed: 2.0, ..Default::default() }, ..Default::default() };
    let (total, _) = total_ns(&[8 * KB], &[(0, 8 * KB, 0)], &setup);
    assert_eq!(total, (930 * US / 2 + first_block(8 * KB)) as f64);
}

#[test]
fn a_request_without_body_needs_neither_disk_nor_cache() {
    let (total, outcome) = total_ns(&[8 * KB], &[(0, 0, 0), (0, 0, 10)], &Setup::default());
    assert_eq!(total, (2 * 290 * US) as f64);
    assert_eq!(outcome.miss_ratio(), Some(0.0));
}

/// A log's has its server's disk and its clients in it, which the model has itself.
#[test]
fn a_service_time_of_a_stored_document_is_ignored() {
    let service = Nanos::from_millis(3);
    let requests: Vec<_> =
        [0, 1000].map(|ms| plimsoll_sim::SimRequest { service, ..request(0, 8 * KB, ms) }).into();
    let (outcome, _) = Setup::default().lard(&targets(&[8 * KB]), &requests);
    let total = outcome.response_ns.mean().unwrap() * 2.0;
    assert_eq!(total, (2 * 930 * US + first_block(8 * KB)) as f64);
}

#[test]
fn a_file_above_the_capacity_is_read_every_time() {
    let size = 2048 * KB;
    let (_, outcome) = total_ns(&[size], &[(0, size, 0), (0, size, 100_000)], &Setup::default());
    assert_eq!(outcome.backends[0].usage.reads, 2);
}

#[test]
fn global_memory_spares_the_disk() {
    // Round robin sends the same file to both back-ends in turn.
    let run = |global_memory| {
        let setup = Setup { policy: "round_robin", backends: 2, global_memory, ..Default::default() };
        total_ns(&[8 * KB], &[(0, 8 * KB, 0), (0, 8 * KB, 1000)], &setup)
    };
    let (_, separate) = run(false);
    assert_eq!(separate.backends.iter().map(|b| b.usage.reads).sum::<u64>(), 2);
    let (total, joined) = run(true);
    assert_eq!(joined.backends.iter().map(|b| b.usage.reads).sum::<u64>(), 1);
    // The copy costs the receiver's CPU what a transmission costs.
    assert_eq!(total, (2 * 930 * US + first_block(8 * KB) + send(8 * KB)) as f64);
}

/// Sends all to the first back-end, and keeps what is told of its cache.
#[derive(Default)]
struct Listens(Arc<Mutex<Vec<Option<bool>>>>);

impl Policy for Listens {
    fn choose(&mut self, _: &Request, _: &ClusterView, _: Time) -> Decision {
        Decision::Assign(BackendId(0))
    }

    fn on_complete(&mut self, completion: &Completion, _: &ClusterView, _: Time) {
        self.0.lock().unwrap().push(completion.hit);
    }
}

#[test]
fn memories_that_start_full_hold_what_fits_into_them() {
    let sizes = [8 * KB, 8 * KB];
    let requests = [(0, 0), (1, 1000)].map(|(target, ms)| request(target, 8 * KB, ms));
    let misses = |starts_full, cache_bytes| {
        let params = LardModelParams { starts_full, ..LardModelParams::default() };
        let setup = Setup { params, cache_bytes, ..Setup::default() };
        setup.lard(&targets(&sizes), &requests).0.miss_ratio()
    };
    assert_eq!(misses(0, 16 * KB), Some(1.0));
    assert_eq!(misses(1, 16 * KB), Some(0.0));
    assert_ne!(misses(1, 8 * KB), Some(0.0));
}

#[test]
fn back_ends_tell_of_hits_and_reads_and_nothing_of_who_waits_for_a_read() {
    let sizes = [8 * KB, 8 * KB];
    // One is read, the second waits for that, the third finds it; then another one.
    let requests = [(0, 0), (0, 1), (0, 1000), (1, 2000)].map(|(target, ms)| request(target, 8 * KB, ms));
    let told = |tells_hits| {
        let params = LardModelParams { tells_hits, ..LardModelParams::default() };
        let listens = Listens::default();
        let heard = Arc::clone(&listens.0);
        let setup = Setup { params, ..Setup::default() };
        let (outcome, _) = setup.lard_with(Box::new(listens), &targets(&sizes), &requests);
        assert_eq!(outcome.joined_ratio(), Some(0.25));
        std::mem::take(&mut *heard.lock().unwrap())
    };
    assert_eq!(told(0), [None; 4]);
    assert_eq!(told(1), [Some(false), None, Some(true), Some(false)]);
}
