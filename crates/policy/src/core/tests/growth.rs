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
    /// Which target a request is for.
    target: fn(u64) -> u64,
    /// Which requests are served at once where the service is mixed.
    mixed: fn(u64) -> bool,
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
            target: |number| number % 10,
            mixed: |_| false,
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
            self.most_load = self.most_load.max(self.core.view().total_load());
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
    front.most_load = 0;
    front.offer(2000..7000, now, 1);
    assert!(front.most_load <= 160, "{} in the long run", front.most_load);
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
