//! What a move costs, and what it has to save.

use super::*;
use crate::policies::lard_auto::work::Queue;

#[test]
fn a_copy_costs_by_the_requests_that_it_will_get() {
    let mut bench = Bench::learned(4, 40);
    let mut document = KnownDocument::default();
    let costs = &mut bench.policy.costs;
    let mut price = |recent: f64, copies: u16| {
        (0..copies).for_each(|b| document.use_copy(BackendId(b), false, 0));
        let asked = AskedDocument { target: TargetId(1), size_bytes: None, recent, now: Time::ZERO };
        costs.copy_price(&asked, &document) / costs.room()
    };
    assert_eq!(price(0.0, 1), 8.0);
    assert_eq!(price(15.0, 1), 0.5, "sixteen requests, of which each copy gets eight");
    assert_eq!(price(15.0, 3), 1.0, "each gets four");
}

/// The fault that this is about: a small document seemed to take as long to read as a large file, so that it was not read elsewhere when its back-end was busy.
#[test]
fn what_a_read_takes_is_learned_from_small_documents() {
    let mut bench = Bench::of_small_reads(4);
    let before = stat(&bench.policy, "read_us");
    // Read for the first time, and read again.
    for target in (200..204).chain(200..204) {
        let asked = bench.ask_for(target, Some(50_000_000));
        bench.answer_telling(asked, Nanos::from_millis(9000), Some(false));
    }
    assert_eq!(stat(&bench.policy, "read_us"), before);
    let asked = bench.ask_for(300, Some(10_000));
    bench.answer(asked, Nanos::from_millis(9000));
    assert!(stat(&bench.policy, "read_us") > 2.0 * before, "a small one counts");
}

/// On a live front-end the first request's size is not known before its response.
#[test]
fn a_response_tells_that_its_document_is_large() {
    let mut bench = Bench::of_small_reads(4);
    let before = stat(&bench.policy, "read_us");
    let asked = bench.ask(200);
    bench.cluster.complete(asked.backend);
    let took = Nanos::from_millis(9000);
    bench.now += took;
    let completion = Completion {
        size_bytes: Some(50_000_000),
        ..Completion::of(asked.target, asked.backend, Outcome::Completed, took)
    };
    bench.policy.on_complete(&completion, &bench.cluster, bench.now);
    assert_eq!(stat(&bench.policy, "read_us"), before);
}

/// The fault that this is about: a large file moved as soon as a small document, and was read on every disk.
#[test]
fn a_large_document_stays_where_more_wait() {
    let moves = |size_bytes: u64, waiting: usize| {
        let mut bench = Bench::learned(4, 40);
        for target in (100..140).chain([99, 99]) {
            let asked = bench.ask_for(target, Some(if target == 99 { size_bytes } else { 10_000 }));
            bench.answer(asked, HIT);
        }
        let home = BackendId(bench.sets(99)[0]);
        (0..waiting).for_each(|_| bench.cluster.assign(home));
        bench.ask_for(99, Some(size_bytes)).backend != home
    };
    let least = |size_bytes| (1..10_000).find(|&waiting| moves(size_bytes, waiting)).unwrap();
    let (small, large) = (least(10_000), least(160_000));
    assert!(large > 2 * small, "{large} requests, {small} for a document of the mean size");
}

/// The fault that this is about: the tenth copy cost no more than the second one.
#[test]
fn a_fourth_copy_has_to_save_more_than_a_second_one() {
    let moves = |copies: usize| {
        let mut bench = Bench::learned(8, 80);
        (0..60).for_each(|_| {
            bench.ask_and_answer(100, HIT);
        });
        let home = BackendId(bench.sets(100)[0]);
        let others = (0..8).map(BackendId).filter(|&b| b != home).take(copies - 1);
        let document = bench.policy.documents.get_mut(TargetId(100)).unwrap();
        others.for_each(|b| document.use_copy(b, false, bench.policy.costs.clock(b)));
        for b in bench.sets(100) {
            (0..5).for_each(|_| bench.cluster.assign(BackendId(b)));
        }
        let before = stat(&bench.policy, "additions");
        bench.ask(100);
        stat(&bench.policy, "additions") > before
    };
    assert_eq!((moves(1), moves(3)), (true, false), "five requests wait at each copy");
}

/// The fault that this is about: of what had probably been evicted nothing had to be saved, and every small difference moved it.
#[test]
fn a_move_of_what_was_evicted_has_to_save_the_mean_wait_too() {
    let moves = |at_home: u16, elsewhere: u16| {
        let mut bench = Bench::learned(2, 40);
        let home = BackendId(bench.sets(100)[0]);
        let clock = bench.policy.costs.clock(home);
        let document = bench.policy.documents.get_mut(TargetId(100)).unwrap();
        document.copies[0].clock = clock.wrapping_sub(u32::MAX / 2);
        (0..at_home).for_each(|_| bench.cluster.assign(home));
        (0..elsewhere).for_each(|_| bench.cluster.assign(BackendId(1 - home.0)));
        bench.ask(100).backend != home
    };
    assert!(!moves(6, 4), "the mean wait is for five, and two are saved");
    assert!(moves(9, 1), "eight are saved");
}

/// The fault that this is about: where every read holds up hits, moves that only moved the queue along cost reads, which held up more.
#[test]
fn where_reads_hold_up_hits_a_request_waits_for_them_on_average() {
    let mean_ns = |beside_reads: Nanos| {
        let mut bench = Bench::learned(2, 40);
        for _ in 0..200 {
            for (reads, took) in [(0.0, HIT), (3.0, beside_reads)] {
                bench
                    .policy
                    .costs
                    .work
                    .add(Queue { requests: 1.0, reads, content: 0.0 }, took.as_nanos() as f64);
            }
        }
        let before = bench.policy.costs.mean_ns(&bench.policy.costs.of_all(), &bench.cluster);
        assert_eq!(before, 0.0, "nothing is under way");
        (6_000..6_004).for_each(|target| {
            bench.ask(target);
        });
        bench.policy.costs.mean_ns(&bench.policy.costs.of_all(), &bench.cluster)
    };
    assert!(mean_ns(HIT) < 0.1 * HIT.as_nanos() as f64, "reads of a disk hold up nothing: {}", mean_ns(HIT));
    assert!(mean_ns(READ) > HIT.as_nanos() as f64, "{}", mean_ns(READ));
}

#[test]
fn moves_do_not_make_room_seem_free() {
    let mut bench = Bench::learned(4, 40);
    bench.policy.costs.again.add(20.0, 20.0);
    (0..400).for_each(|_| {
        bench.ask_and_answer(100, HIT);
    });
    let before = bench.policy.costs.room();
    assert!(before > 2.0, "every third read is of a document that was there: {before}");
    (0..4).for_each(|_| {
        bench.ask(100);
    });
    assert!(stat(&bench.policy, "additions") >= 1.0);
    assert_eq!(bench.policy.costs.room(), before);
    bench.ask(7_000);
    assert!(bench.policy.costs.room() < before, "one that is new takes room from others for nothing");
}

#[test]
fn where_requests_stand_in_line_a_new_target_keeps_away_from_a_large_document() {
    let chosen = |each_content: Nanos| {
        let mut bench = Bench::learned(2, 40);
        for n in 0..400u16 {
            let content = f64::from(n % 8);
            let took_ns = HIT.as_nanos() as f64 + content * each_content.as_nanos() as f64;
            bench.policy.costs.work.add(Queue { requests: 1.0, reads: 0.0, content }, took_ns);
        }
        for _ in 0..1000 {
            bench.policy.costs.content.begin(TargetId(9), BackendId(0), Some(1_000), 0.0);
            bench.policy.costs.content.end(TargetId(9), BackendId(0));
        }
        // One large document here, two small ones there.
        let (large, small) = (BackendId(0), BackendId(1));
        for (b, size_bytes) in [(large, 100_000), (small, 1_000), (small, 1_000)] {
            bench.policy.costs.content.begin(TargetId(9), b, Some(size_bytes), 0.0);
            bench.cluster.assign(b);
        }
        bench.ask(8_000).backend
    };
    assert_eq!(chosen(HIT), BackendId(1));
    assert_eq!(
        chosen(Nanos::from_micros(0)),
        BackendId(0),
        "where each gets its turn, only their number counts"
    );
}
