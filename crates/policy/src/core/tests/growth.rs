//! The adaptive admission limit in front of back-ends that are overloaded, or only slow.

use std::collections::BTreeMap;

use super::*;

const MS: u64 = 1_000_000;

/// What a back-end does with a request.
enum Service {
    /// One after the other, each for this long.
    Queue(u64),
    /// All at once, each for the time that its number gives.
    Parallel(fn(u64) -> u64),
    /// Like [`Service::Queue`], but some at once.
    Mixed(u64),
}

/// A cluster behind an adaptive limit, in virtual time, of which some requests wait at most a second.
struct Front {
    core: Core<Log>,
    service: Service,
    free_at: Vec<u64>,
    under_way: BTreeMap<(u64, u64), Assigned>,
    waiting_since: BTreeMap<u64, u64>,
    refused: Vec<u64>,
    most_load: u64,
    /// How long the load was above a limit of 160 while time passed.
    above_ms: u64,
    /// Which target a request is for.
    target: fn(u64) -> u64,
    /// Which requests are served at once where the service is mixed.
    mixed: fn(u64) -> bool,
    /// A back-end that is slower, with its time for one after the other.
    slow: Option<(BackendId, u64)>,
}

impl Front {
    fn new(backends: usize, service: Service) -> Self {
        let limit = AdmissionLimit::Adaptive(Thresholds { t_low: 25, t_high: 65 });
        Self {
            core: core(backends, AdmissionControl { limit, queue: 1024 }),
            service,
            free_at: vec![0; backends],
            under_way: BTreeMap::new(),
            waiting_since: BTreeMap::new(),
            refused: Vec::new(),
            most_load: 0,
            above_ms: 0,
            target: |number| number % 10,
            mixed: |_| false,
            slow: None,
        }
    }

    fn carry_out(&mut self, number: u64, offered: &Offered, now: u64) {
        match offered {
            Offered::Assigned(assigned) => {
                let end = match self.service {
                    Service::Queue(time) => self.queue(assigned.backend, time, now),
                    Service::Parallel(time) => now + time(number),
                    Service::Mixed(_) if (self.mixed)(number) => now + MS,
                    Service::Mixed(time) => self.queue(assigned.backend, time, now),
                };
                self.under_way.insert((end, number), *assigned);
            }
            Offered::Waits => {
                self.waiting_since.insert(number, now);
            }
            Offered::Rejected(_) => self.refused.push(number),
            other => panic!("{other:?}"),
        }
    }

    /// When a queueing back-end has done this one, too.
    fn queue(&mut self, backend: BackendId, time: u64, now: u64) -> u64 {
        let time = self.slow.filter(|(slow, _)| *slow == backend).map_or(time, |(_, time)| time);
        let free_at = &mut self.free_at[backend.index()];
        *free_at = now.max(*free_at) + time;
        *free_at
    }

    fn serve(&mut self, now: u64) {
        self.core.advance(at(now));
        while let Some(started) = self.core.start_next(at(now)) {
            self.waiting_since.remove(&started.number);
            self.carry_out(started.number, &started.offered, now);
        }
    }

    /// What happens until `now`: ends of requests, and every 50 ms a look at those that wait.
    fn run_to(&mut self, from: u64, now: u64) {
        for time in from..now {
            while let Some((&(end, number), assigned)) = self.under_way.first_key_value()
                && end <= time * MS
            {
                self.core.complete(assigned, ANSWERED, at(end));
                self.under_way.remove(&(end, number));
                self.serve(end);
            }
            if time % 50 == 0 {
                self.serve(time * MS);
                let late = self.waiting_since.iter().filter(|(_, since)| **since + 1000 * MS <= time * MS);
                for number in late.map(|(number, _)| *number).collect::<Vec<_>>() {
                    self.waiting_since.remove(&number);
                    self.core.give_up(number, at(time * MS));
                    self.refused.push(number);
                }
            }
            let load = self.core.view().total_load();
            self.most_load = self.most_load.max(load);
            self.above_ms += u64::from(load > 160);
        }
    }

    /// Offers requests `numbers`, one each `every_ms`, from the time `from_ms` on; 0 for all at once. Returns when.
    fn offer(&mut self, numbers: std::ops::Range<u64>, from_ms: u64, every_ms: u64) -> u64 {
        let mut now = from_ms;
        for number in numbers {
            self.run_to(now, now + every_ms);
            now += every_ms;
            let request = Request::of(number, TargetId((self.target)(number)));
            let offered = self.core.offer(&request, at(now * MS));
            self.carry_out(number, &offered, now * MS);
        }
        now
    }
}

#[test]
fn long_polls_that_come_at_once_are_all_let_in() {
    let mut front = Front::new(1, Service::Parallel(|_| 30_000 * MS));
    let now = front.offer(0..500, 0, 0);
    front.run_to(now, 1500);
    assert_eq!((front.refused.len(), front.core.view().total_load()), (0, 500));
}

#[test]
fn handlers_that_wait_for_something_else_are_all_let_in() {
    // Between 400 and 600 ms each, 240 at once.
    let mut front = Front::new(1, Service::Parallel(|number| (400 + number * 7919 % 200) * MS));
    let now = front.offer(0..5000, 0, 2);
    assert_eq!(front.refused, [0_u64; 0]);
    assert!(front.core.waiting() < 30, "{} wait at {now} ms", front.core.waiting());
}

#[test]
fn short_handlers_may_be_many_too() {
    // A tenth of a second each; 60 at once at one back-end, whose S is 24, or 300 at three. First a few, then more and more.
    for (backends, every_us) in [(1, 1667), (3, 333)] {
        let mut front = Front::new(backends, Service::Parallel(|number| (90 + number * 7919 % 20) * MS));
        let mut now = front.offer(0..100, 0, 100);
        let (mut number, mut owed_us) = (100, 0);
        for step in 0..5000 {
            owed_us += (step + 100).min(2000) / 2;
            while owed_us >= every_us {
                owed_us -= every_us;
                front.offer(number..number + 1, now, 0);
                number += 1;
            }
            front.run_to(now, now + 1);
            now += 1;
        }
        let load = front.core.view().total_load();
        assert_eq!((front.refused.len(), front.core.waiting()), (0, 0), "{backends}: {load} at {now} ms");
        assert!(load > 50 * backends as u64, "{backends}: {load}");
    }
}

#[test]
fn long_polls_beside_fast_requests_for_ever_new_targets_are_all_let_in() {
    // 100 tabs that ask again every 30 s, and five fast ones a second.
    let is_poll = |number: u64| number % 8 < 3;
    let time = |number: u64| if number % 8 < 3 { 30_000 * MS } else { 2 * MS };
    let mut front = Front::new(1, Service::Parallel(time));
    front.target = |number| if number % 8 < 3 { 1 } else { number };
    let now = front.offer(0..1600, 0, 125);
    assert_eq!((front.refused.len(), front.core.waiting()), (0, 0), "at {now} ms");
    assert_eq!(front.under_way.keys().filter(|(_, number)| is_poll(*number)).count(), 90);
}

#[test]
fn a_target_that_is_both_fast_and_slow_is_let_in_after_a_while() {
    // As a script's preflight and its request: every other one takes 1 ms, the others half a second; 60 at once.
    let time = |number: u64| if number.is_multiple_of(2) { MS } else { (400 + number * 7919 % 200) * MS };
    let mut front = Front::new(1, Service::Parallel(time));
    front.target = |number| number / 2 % 5;
    let now = front.offer(0..400, 0, 300);
    let now = front.offer(400..8400, now, 4);
    let at_first = front.refused.len();
    // A limit of S would refuse 60 %; half a minute is enough for some tries, of which some fail by chance.
    assert!(at_first < 2400, "{at_first} of 8,000 refused until {now} ms");
    front.offer(8400..18_400, now, 4);
    assert!(front.refused.len() < at_first + 100, "{at_first}, then {}", front.refused.len());
}

#[test]
fn what_becomes_slow_in_a_busy_time_is_let_in_after_a_while() {
    // 100/s of 20 ms each, then of 2 s: 200 at once, where S is 24.
    let time = |number: u64| if number < 3000 { 20 * MS } else { 2000 * MS };
    let mut front = Front::new(1, Service::Parallel(time));
    let now = front.offer(0..12_000, 0, 10);
    let at_first = front.refused.len();
    assert!(at_first > 0, "it is not overload, but looks like it");
    front.offer(12_000..18_000, now, 10);
    let later = front.refused.len() - at_first;
    assert!(later < 600, "{at_first} of 9,000, then {later} of 6,000");
}

#[test]
fn one_slow_back_end_of_several_keeps_nobody_from_the_others() {
    // Four back-ends in turn; the first answers 20/s, the others 200/s; 200/s come.
    let mut front = Front::new(4, Service::Queue(5 * MS));
    let admission = front.core.admission();
    front.core.replace_policy(Box::<RoundRobin>::default(), admission);
    front.slow = Some((B0, 50 * MS));
    let now = front.offer(0..4000, 0, 5);
    assert_eq!((front.refused.len(), front.core.waiting()), (0, 0), "at {now} ms");
    assert!(front.core.view().load(B0) > 200, "{}", front.core.view().load(B0));
}

#[test]
fn a_fast_response_now_and_then_makes_nothing_overloaded() {
    // One in 50 takes 1 ms, the others half a second; at first there are few.
    let time = |number| if number % 50 == 0 { MS } else { 500 * MS };
    let mut front = Front::new(1, Service::Parallel(time));
    front.target = |number| if number % 50 == 0 { 7 } else { 1000 + number % 20 };
    let now = front.offer(0..100, 0, 100);
    let now = front.offer(100..5000, now, 4);
    assert_eq!((front.refused.len(), front.core.waiting()), (0, 0), "at {now} ms");
}

#[test]
fn fast_responses_hide_no_overload() {
    // A third takes no time, whatever there is to do; 200/s of the rest, of which 600/s come.
    let mut front = Front::new(1, Service::Mixed(5 * MS));
    front.target = |number| if number % 3 == 0 { 3 } else { 1000 + number % 20 };
    front.mixed = |number| number % 3 == 0;
    let now = front.offer(0..2000, 0, 1);
    front.most_load = 0;
    front.offer(2000..7000, now, 1);
    // Until they take six times as long as usual; without a limit there would be thousands.
    assert!(front.most_load <= 200, "{}", front.most_load);
}

#[test]
fn overload_that_begins_at_once_is_noticed_with_targets_that_never_come_again() {
    let mut front = Front::new(3, Service::Queue(5 * MS));
    front.target = |number| number;
    // For longer than anything is remembered otherwise.
    front.offer(0..150_000, 0, 1);
    assert!(front.most_load <= 200, "{}", front.most_load);
    // Tried ever more seldom.
    assert!(front.above_ms <= 12_000, "above S for {} of 150,000 ms", front.above_ms);
}

#[test]
fn overload_that_begins_at_once_is_noticed_with_some_targets() {
    // Twice the requests in each millisecond: 1,800/s and more.
    let mut front = Front::new(3, Service::Queue(5 * MS));
    front.target = |number| number % 100;
    for number in 0..5000 {
        front.offer(2 * number..2 * number + 1, number, 0);
        front.offer(2 * number + 1..2 * number + 2, number, 1);
    }
    assert!(front.most_load <= 250, "{}", front.most_load);
}

#[test]
fn slow_requests_after_one_fast_one_are_all_let_in() {
    let time = |number| if number == 0 { MS } else { 500 * MS };
    let mut front = Front::new(1, Service::Parallel(time));
    front.target = |number| number;
    let now = front.offer(0..1, 0, 10);
    let now = front.offer(1..3000, now, 5);
    assert_eq!((front.refused.len(), front.core.waiting()), (0, 0), "at {now} ms");
}

#[test]
fn short_requests_pass_beside_streams_that_do_not_end() {
    let mut front =
        Front::new(1, Service::Parallel(|number| if number < 200 { 3_600_000 * MS } else { 5 * MS }));
    let streams = front.offer(0..200, 0, 10);
    front.run_to(streams, streams + 1000);
    let now = front.offer(200..1200, streams + 1000, 10);
    front.run_to(now, now + 10);
    assert_eq!((front.refused.len(), front.core.waiting(), front.core.view().total_load()), (0, 0, 200));
}

#[test]
fn overloaded_back_ends_get_no_more_than_s() {
    // Three back-ends, 200/s each; S is 154. Three times as many come.
    let mut front = Front::new(3, Service::Queue(5 * MS));
    let now = front.offer(0..1800, 0, 1);
    assert!(front.most_load <= 2 * 154, "{} at first", front.most_load);
    (front.most_load, front.above_ms) = (0, 0);
    front.offer(2000..7000, now, 1);
    // Now and then it is tried whether a quarter more bring more answers.
    assert!(front.most_load <= 200, "{} in the long run", front.most_load);
    assert!(front.above_ms <= 1300, "above S for {} of 5000 ms", front.above_ms);
    assert!(front.refused.len() > 1000, "{}", front.refused.len());
}

#[test]
fn slow_back_ends_that_are_overloaded_are_noticed_too() {
    // Five requests a second, at one back-end; S is 24. Ten times as many come.
    let mut front = Front::new(1, Service::Queue(200 * MS));
    let now = front.offer(0..300, 0, 20);
    let at_first = front.core.view().total_load();
    front.most_load = 0;
    front.offer(300..2300, now, 20);
    assert!(at_first < 300 && front.most_load <= at_first + 20, "{at_first}, then {}", front.most_load);
    let at_last = front.core.view().total_load();
    assert!(at_last <= 30, "{at_first}, then {}, then {at_last}", front.most_load);
    assert!(front.refused.len() > 1000, "{}", front.refused.len());
}

#[test]
fn the_limit_stays_where_back_ends_have_failed_alone() {
    let limit = AdmissionLimit::Adaptive(Thresholds { t_low: 25, t_high: 65 });
    let mut core = core(1, AdmissionControl { limit, queue: 4 });
    core.set_health(B0, Health::Down, at(1));
    assert_eq!((core.admission_limit(), core.has_room()), (0, false));
    assert_eq!(core.offer(&request(1), at(2)), Offered::Waits);
    core.advance(at(10_000 * MS));
    assert_eq!(core.start_next(at(10_000 * MS)), None);
    core.set_health(B0, Health::Up, at(10_001 * MS));
    assert!(core.start_next(at(10_001 * MS)).is_some());
}
