use super::*;
use crate::cluster::Cluster;
use crate::request::Outcome;
use crate::time::Nanos;

mod moves;

const HIT: Nanos = Nanos::from_millis(2);
const READ: Nanos = Nanos::from_millis(30);

/// A cluster whose requests are answered by hand.
struct Bench {
    cluster: Cluster,
    policy: LardAuto,
    now: Time,
    number: u64,
}

/// A request under way.
#[derive(Debug, Clone, Copy)]
struct Pending {
    target: TargetId,
    backend: BackendId,
    at: Time,
}

impl Bench {
    fn new(backends: usize) -> Self {
        let policy = LardAuto::new(&LardAutoParams::default());
        Self { cluster: Cluster::new(backends), policy, now: Time::ZERO, number: 0 }
    }

    fn ask(&mut self, target: u64) -> Pending {
        self.ask_for(target, None)
    }

    fn ask_for(&mut self, target: u64, size_bytes: Option<u64>) -> Pending {
        self.now += Nanos::from_micros(1);
        self.number += 1;
        let request = Request { size_bytes, ..Request::of(self.number, TargetId(target)) };
        let Decision::Assign(backend) = self.policy.choose(&request, &self.cluster, self.now) else {
            panic!("nobody takes it");
        };
        self.cluster.assign(backend);
        self.policy.on_assign(&request, backend, &self.cluster, self.now);
        Pending { target: request.target, backend, at: self.now }
    }

    /// Back-ends that have read forty documents of 10 kB, one after the other.
    fn of_small_reads(backends: usize) -> Self {
        let mut bench = Self::new(backends);
        for target in 100..140 {
            let asked = bench.ask_for(target, Some(10_000));
            bench.answer(asked, READ);
        }
        bench
    }

    fn answer(&mut self, asked: Pending, took: Nanos) {
        self.answer_telling(asked, took, None);
    }

    fn answer_telling(&mut self, asked: Pending, took: Nanos, hit: Option<bool>) {
        self.now = self.now.max(asked.at + took);
        self.cluster.complete(asked.backend);
        let took = self.now.since(asked.at);
        let completion =
            Completion { hit, ..Completion::of(asked.target, asked.backend, Outcome::Completed, took) };
        self.policy.on_complete(&completion, &self.cluster, self.now);
    }

    fn ask_and_answer(&mut self, target: u64, took: Nanos) -> BackendId {
        let asked = self.ask(target);
        self.answer(asked, took);
        asked.backend
    }

    /// So many targets, from 100 on, that are read once and asked for twice again, one after the other.
    fn learned(backends: usize, targets: u64) -> Self {
        let mut bench = Self::new(backends);
        for (round, took) in [READ, HIT, HIT].into_iter().enumerate() {
            for target in 100..100 + targets {
                let b = bench.ask_and_answer(target, took);
                assert_eq!(bench.sets(target), [b.0], "round {round}");
            }
        }
        bench
    }

    fn sets(&self, target: u64) -> Vec<u16> {
        self.policy.server_set(TargetId(target)).iter().map(|b| b.0).collect()
    }
}

fn stat(policy: &LardAuto, name: &str) -> f64 {
    policy.stats().into_iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn an_idle_cluster_gets_targets_in_turn_and_costs_are_learned() {
    let bench = Bench::learned(4, 40);
    for b in 0..4 {
        let of_b = (100..140).filter(|&target| bench.sets(target) == [b]).count();
        assert_eq!(of_b, 10);
    }
    assert!((stat(&bench.policy, "hit_us") - 2_000.0).abs() < 1.0);
    assert!((stat(&bench.policy, "read_us") - 30_000.0).abs() < 1.0);
    assert_eq!(bench.policy.costs.reads(), 0.0);
}

#[test]
fn a_hot_target_gets_a_replica_while_few_are_under_way_and_a_rare_one_none() {
    let mut bench = Bench::learned(4, 40);
    let rare = 100;
    let home = bench.sets(rare)[0];
    let under_way: Vec<Pending> = (0..3).map(|_| bench.ask(rare)).collect();
    assert!(under_way.iter().all(|asked| asked.backend.0 == home), "30 ms are not worth 6 ms");
    under_way.into_iter().for_each(|asked| bench.answer(asked, HIT));
    for _ in 0..400 {
        bench.ask_and_answer(rare, HIT);
    }
    let now_hot: Vec<Pending> = (0..3).map(|_| bench.ask(rare)).collect();
    assert!(now_hot.iter().any(|asked| asked.backend.0 != home));
    assert!(stat(&bench.policy, "additions") >= 1.0);
}

#[test]
fn a_copy_that_is_being_read_is_not_used() {
    let mut bench = Bench::learned(2, 40);
    for _ in 0..400 {
        bench.ask_and_answer(100, HIT);
    }
    let home = bench.sets(100)[0];
    let under_way: Vec<Pending> = (0..6).map(|_| bench.ask(100)).collect();
    let elsewhere: Vec<&Pending> = under_way.iter().filter(|asked| asked.backend.0 != home).collect();
    assert_eq!(elsewhere.len(), 1, "the one that has it read");
    let reading = *elsewhere[0];
    bench.answer(reading, READ);
    assert_ne!(bench.ask(100).backend.0, home, "now it is there, and nobody waits for it");
}

#[test]
fn where_all_wait_alike_nothing_moves() {
    let mut bench = Bench::learned(3, 30);
    for _ in 0..40 {
        (100..130).for_each(|target| {
            bench.ask(target);
        });
    }
    assert_eq!(stat(&bench.policy, "additions"), 0.0, "no back-end is better off");
}

#[test]
fn a_slow_back_end_loses_requests_although_it_has_no_more_of_them() {
    let mut bench = Bench::learned(2, 40);
    let slow: Vec<u64> = (100..140).filter(|&target| bench.sets(target) == [0]).collect();
    for _ in 0..100 {
        slow.iter().for_each(|&target| {
            let asked = bench.ask(target);
            let took = if asked.backend == BackendId(0) { Nanos::from_millis(12) } else { HIT };
            bench.answer(asked, took);
        });
    }
    assert!(stat(&bench.policy, "additions") > 10.0);
    let moved = slow.iter().filter(|&&target| bench.ask_and_answer(target, HIT) == BackendId(1)).count();
    assert!(moved > slow.len() / 2, "{moved} of {}", slow.len());
}

#[test]
fn a_copy_that_is_not_needed_is_dropped() {
    let mut bench = Bench::learned(2, 40);
    (0..400).for_each(|_| {
        bench.ask_and_answer(100, HIT);
    });
    let under_way: Vec<Pending> = (0..4).map(|_| bench.ask(100)).collect();
    assert_eq!(bench.sets(100).len(), 2);
    under_way.into_iter().for_each(|asked| bench.answer(asked, HIT));
    (0..200).for_each(|_| {
        bench.ask_and_answer(100, HIT);
    });
    assert_eq!((bench.sets(100).len(), stat(&bench.policy, "removals")), (1, 1.0));
}

#[test]
fn a_failure_forgets_the_copies_and_what_was_learned() {
    let mut bench = Bench::learned(2, 10);
    bench.cluster.set_health(BackendId(0), Health::Down);
    bench.policy.on_membership(BackendId(0), Change::Health(Health::Down), &bench.cluster, bench.now);
    assert_eq!(bench.policy.tracked_targets(), 5);
    assert!((100..110).all(|target| bench.ask(target).backend == BackendId(1)));
    bench.cluster.set_health(BackendId(1), Health::Down);
    let nobody = bench.policy.choose(&Request::of(0, TargetId(5)), &bench.cluster, bench.now);
    assert_eq!(nobody, Decision::Reject);
}

/// The fault that this is about: hits at a back-end that has become slow were taken for reads that were not expected, and taught nothing.
#[test]
fn a_hit_that_takes_longer_than_a_read_is_a_hit_where_nothing_was_read_since() {
    let mut bench = Bench::learned(2, 40);
    let here: Vec<u64> = (100..140).filter(|&target| bench.sets(target) == [0]).collect();
    for &target in here.iter().cycle().take(800) {
        let asked = bench.ask(target);
        let took = if asked.backend == BackendId(0) { Nanos::from_millis(40) } else { HIT };
        bench.answer(asked, took);
    }
    assert!(here.iter().any(|&target| bench.ask_and_answer(target, HIT) == BackendId(1)), "0 is slow");
}

#[test]
fn requests_that_wait_for_a_read_do_not_stand_in_the_queue() {
    let mut bench = Bench::learned(2, 40);
    let read = bench.ask(7);
    let joined: Vec<Pending> = (0..30).map(|_| bench.ask(7)).collect();
    let (of_read, rest): (Vec<&Pending>, Vec<&Pending>) =
        joined.iter().partition(|asked| asked.backend == read.backend);
    assert!(!of_read.is_empty() && bench.policy.costs.reads() > of_read.len() as f64, "{rest:?}");
    let known = (100..140).find(|&target| bench.sets(target) == [read.backend.0]).unwrap();
    assert_eq!(bench.ask(known).backend, read.backend, "its CPU is idle");
    bench.answer(read, READ);
    of_read.into_iter().for_each(|&asked| bench.answer(asked, READ));
    rest.into_iter().for_each(|&asked| bench.answer(asked, READ));
}

#[test]
fn what_a_back_end_has_probably_evicted_is_read_where_the_disk_is_free() {
    let mut bench = Bench::learned(2, 40);
    // Documents whose last request is 1,000 reads ago are gone, of which the policy hears by response times.
    for round in 0..6 {
        for target in 1_000..3_000 {
            let took = if bench.sets(target).is_empty() || round > 0 { READ } else { HIT };
            bench.ask_and_answer(target, took);
        }
    }
    let old = 1_000;
    let home = bench.sets(old)[0];
    let elsewhere = (1_500..3_000).filter(|&target| bench.sets(target) == [home]).take(8).collect::<Vec<_>>();
    let busy: Vec<Pending> = elsewhere.into_iter().map(|target| bench.ask(target)).collect();
    let at_home = busy.iter().filter(|asked| asked.backend.0 == home).count();
    assert!(at_home < busy.len(), "reads are shared out: {at_home} of {}", busy.len());
}

#[test]
fn a_hit_that_waited_for_something_else_is_not_believed() {
    let mut bench = Bench::learned(4, 40);
    bench.ask_and_answer(100, Nanos::from_millis(200));
    let hit_us = stat(&bench.policy, "hit_us");
    assert!((2_000.0..2_500.0).contains(&hit_us), "{hit_us}");
}

#[test]
fn one_long_read_does_not_make_a_back_end_slow() {
    let mut bench = Bench::learned(4, 40);
    let slow = bench.ask_and_answer(200, Nanos::from_millis(600));
    let next: Vec<BackendId> = (201..209).map(|target| bench.ask_and_answer(target, READ)).collect();
    assert_eq!(next.iter().filter(|&&b| b == slow).count(), 2, "{next:?}");
}

#[test]
fn of_many_back_ends_all_are_looked_at_in_turn() {
    let mut bench = Bench::learned(130, 130);
    let hot = 100;
    let home = bench.sets(hot)[0];
    for _ in 0..400 {
        bench.ask_and_answer(hot, HIT);
    }
    let idle = BackendId((home + 100) % 130);
    for b in (0..130).map(BackendId).filter(|&b| b != idle) {
        let load = if b.0 == home { 200 } else { 20 };
        (0..load).for_each(|_| bench.cluster.assign(b));
    }
    let asked: Vec<BackendId> = (0..3).map(|_| bench.ask(hot).backend).collect();
    assert!(asked.contains(&idle), "{asked:?}");
}

#[test]
fn what_a_back_end_tells_of_its_cache_is_believed() {
    let of = |took, told| {
        let mut bench = Bench::learned(1, 40);
        for target in 100..120 {
            // What was asked for before may have been evicted by this.
            bench.ask_and_answer(target + 1000, READ);
            let asked = bench.ask(target);
            bench.answer_telling(asked, took, told);
        }
        (stat(&bench.policy, "hit_us").round(), stat(&bench.policy, "read_us").round())
    };
    let usual = of(HIT, None);
    assert!(usual.0 == 2_000.0 && (28_000.0..=30_000.0).contains(&usual.1), "{usual:?}");
    let waited = Nanos::from_millis(60);
    assert_eq!(of(waited, Some(true)), usual, "a hit that has waited teaches nothing");
    assert!(of(waited, None).1 > 35_000.0, "by its time it is a read");
    let (hit_us, read_us) = of(Nanos::from_millis(8), Some(false));
    assert!(hit_us == 2_000.0 && read_us < 28_000.0, "short reads are reads: {hit_us} {read_us}");
    assert!(of(Nanos::from_millis(8), None).0 > 2_500.0, "by its time it is a hit");
}

#[test]
fn a_cache_on_a_disk_is_not_taken_for_memory_nor_memory_for_a_fast_disk() {
    let read_us = |first| {
        let mut bench = Bench::new(4);
        for target in 0..40 {
            for took in [first, HIT] {
                let asked = bench.ask(target);
                bench.answer_telling(asked, took, Some(true));
            }
        }
        stat(&bench.policy, "read_us")
    };
    assert!(read_us(READ) > 20_000.0, "{}", read_us(READ));
    assert!(read_us(HIT) == 0.0, "the back-end was full before: {}", read_us(HIT));
}
