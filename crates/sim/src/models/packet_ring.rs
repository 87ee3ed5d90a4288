//! Round robin among transmissions, a quantum at a time, without an event per quantum.
//!
//! The transmissions stand in a ring. The first is in service; when its quantum is over it goes to the back, and a new one
//! enters at the back. A transmission of t ns takes ⌈t/q⌉ quanta, all of q ns but the last, which takes what is left, from 1
//! to q ns; then the next one begins at once. A quantum that ends when another transmission enters ends first.
//!
//! **Why skipping quanta is exact.** Only the last quantum of a transmission can be shorter than q, and with
//! it the transmission ends. So from one completion to the next every quantum but the very last takes q. An
//! arrival does not change that: it goes to the back and leaves the quantum in service alone. Between two
//! arrivals or completions the ring of n therefore only turns, one place every q, and n turns are a pass that
//! gives everybody one quantum:
//!
//! - A transmission at place i (from 0) that has p quanta to go beyond its next one begins its last quantum after p·n + i
//!   full ones. As i < n, the next to end is the least (p, i), and its time is now known; an arrival at place n with p'
//!   comes before it only if p' < p.
//! - After a time d without a completion the ring has turned by ⌊d/q⌋ places.
//!
//! Passes are numbered, and each transmission keeps the number of its last pass, so that a turn changes no
//! transmission: one that has passed the seam between two passes counts from the next pass on. All arithmetic
//! is in whole numbers; a property test compares each completion with a simulation of every quantum.

use std::collections::VecDeque;

use plimsoll_policy::{Nanos, Time};

use crate::model::JobId;

#[derive(Debug, Clone, Copy)]
struct Transmission {
    job: JobId,
    /// The pass in which it gets its last quantum.
    last_pass: u64,
    /// Length of that quantum, 1 to `quantum_ns`.
    last_ns: u64,
}

/// The transmission that ends next.
#[derive(Debug, Clone, Copy)]
struct NextEnd {
    /// Quanta before its last one.
    passes: u64,
    /// Its place in the ring.
    place: usize,
    at: Time,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct PacketRing {
    quantum_ns: u64,
    /// In the order of their next quanta; the first is in service.
    ring: VecDeque<Transmission>,
    /// Number of the pass under way.
    pass: u64,
    /// Number of transmissions, from the first on, that have not yet had their quantum of this pass.
    ahead: usize,
    /// When the quantum in service began.
    since: Time,
    /// Meaningless while the ring is empty.
    next: NextEnd,
    /// Busy time up to `busy_since`; while there are transmissions the ring is busy since then.
    busy: Nanos,
    busy_since: Time,
}

impl PacketRing {
    /// Empty.
    pub(super) fn new(quantum: Nanos) -> Self {
        Self {
            quantum_ns: quantum.as_nanos().max(1),
            ring: VecDeque::new(),
            pass: 0,
            ahead: 0,
            since: Time::ZERO,
            next: NextEnd { passes: 0, place: 0, at: Time::MAX },
            busy: Nanos::ZERO,
            busy_since: Time::ZERO,
        }
    }

    /// When the next transmission ends, if nothing enters before.
    #[inline]
    pub(super) fn due(&self) -> Option<Time> {
        (!self.ring.is_empty()).then_some(self.next.at)
    }

    /// `job` enters at `now` with this much to transmit, at least 1 ns. Whatever is due by `now` has been taken out with
    /// [`PacketRing::complete`].
    #[inline]
    pub(super) fn enter(&mut self, job: JobId, service: Nanos, now: Time) {
        let service_ns = service.as_nanos().max(1);
        let before_last = if service_ns <= self.quantum_ns { 0 } else { (service_ns - 1) / self.quantum_ns };
        let last_ns = service_ns - before_last * self.quantum_ns;
        let place = self.ring.len();
        if place == 0 {
            (self.pass, self.ahead) = (0, 1);
            (self.since, self.busy_since) = (now, now);
            self.ring.push_back(Transmission { job, last_pass: before_last, last_ns });
            self.next = NextEnd { passes: before_last, place, at: Time::MAX };
        } else {
            debug_assert!(now < self.next.at, "what is due is taken out first");
            self.turn_until(now);
            // Its first quantum is in the pass after the one under way.
            let last_pass = self.pass.saturating_add(1).saturating_add(before_last);
            self.ring.push_back(Transmission { job, last_pass, last_ns });
            if before_last < self.next.passes {
                (self.next.passes, self.next.place) = (before_last, place);
            }
        }
        self.time_next();
    }

    /// Removes the transmission that ends at `now`, if one does.
    #[inline]
    pub(super) fn complete(&mut self, now: Time) -> Option<JobId> {
        if self.due() != Some(now) {
            return None;
        }
        self.turn(self.next.passes, self.next.place);
        let ended = self.ring.pop_front()?;
        debug_assert_eq!(ended.last_pass, self.pass, "it ends with its last quantum");
        self.since = now;
        self.ahead -= 1;
        if self.ahead == 0 {
            (self.pass, self.ahead) = (self.pass + 1, self.ring.len());
        }
        if self.ring.is_empty() {
            self.busy += now.since(self.busy_since);
        } else {
            self.find_next();
        }
        Some(ended.job)
    }

    /// Turns by the quanta that have ended by `now`.
    #[inline]
    fn turn_until(&mut self, now: Time) {
        let elapsed_ns = now.since(self.since).as_nanos();
        if elapsed_ns < self.quantum_ns {
            return;
        }
        let quanta = elapsed_ns / self.quantum_ns;
        self.since += Nanos::new(quanta * self.quantum_ns);
        let n = self.ring.len();
        let (passes, places) = if quanta < n as u64 {
            (0, quanta as usize)
        } else {
            (quanta / n as u64, (quanta % n as u64) as usize)
        };
        self.next.passes -= passes;
        if places > self.next.place {
            self.next.passes -= 1;
            self.next.place += n;
        }
        self.next.place -= places;
        self.turn(passes, places);
    }

    /// Turns the ring by whole passes plus some places.
    #[inline]
    fn turn(&mut self, passes: u64, places: usize) {
        self.pass += passes;
        self.ring.rotate_left(places);
        if places < self.ahead {
            self.ahead -= places;
        } else {
            self.pass += 1;
            self.ahead += self.ring.len() - places;
        }
    }

    #[inline]
    fn find_next(&mut self) {
        let (mut passes, mut place) = (u64::MAX, 0);
        for (at, transmission) in self.ring.iter().enumerate() {
            let before_last = transmission.last_pass - self.pass - u64::from(at >= self.ahead);
            if before_last < passes {
                (passes, place) = (before_last, at);
                // Fast path: in a large ring a transmission near the front usually has only one quantum left.
                if passes == 0 {
                    break;
                }
            }
        }
        self.next = NextEnd { passes, place, at: Time::MAX };
        self.time_next();
    }

    #[inline]
    fn time_next(&mut self) {
        let NextEnd { passes, place, .. } = self.next;
        let quanta = passes.saturating_mul(self.ring.len() as u64).saturating_add(place as u64);
        let full = Nanos::new(quanta.saturating_mul(self.quantum_ns));
        self.next.at = self.since + full + Nanos::new(self.ring[place].last_ns);
    }

    /// Time busy up to `now`.
    pub(super) fn busy(&self, now: Time) -> Nanos {
        if self.ring.is_empty() { self.busy } else { self.busy + now.since(self.busy_since) }
    }

    /// Counts [`PacketRing::busy`] from `now` on.
    pub(super) fn restart_busy(&mut self, now: Time) {
        (self.busy, self.busy_since) = (Nanos::ZERO, now);
    }

    /// Aborts all transmissions at `now`.
    pub(super) fn clear(&mut self, now: Time) {
        self.busy = self.busy(now);
        self.ring.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    use super::*;

    /// Arrival and service times in ns, arrivals in order: when each ends, by the ring.
    fn by_ring(quantum: u64, jobs: &[(u64, u64)]) -> Vec<u64> {
        let mut ring = PacketRing::new(Nanos::new(quantum));
        let mut ends = vec![0; jobs.len()];
        let mut arrivals = jobs.iter().enumerate().peekable();
        loop {
            let arrival = arrivals.peek().map(|(_, job)| Time::from_nanos(job.0));
            match (ring.due(), arrival) {
                (Some(due), arrival) if arrival.is_none_or(|at| due <= at) => {
                    ends[ring.complete(due).unwrap() as usize] = due.as_nanos();
                }
                (_, Some(at)) => {
                    assert_eq!(ring.complete(at), None);
                    let (job, (_, service)) = arrivals.next().unwrap();
                    ring.enter(job as JobId, Nanos::new(*service), at);
                }
                _ => return ends,
            }
        }
    }

    /// The same, quantum by quantum.
    fn by_quanta(quantum: u64, jobs: &[(u64, u64)]) -> Vec<u64> {
        let (mut ends, mut queue) = (vec![0; jobs.len()], VecDeque::new());
        let mut arrivals = jobs.iter().enumerate().peekable();
        let mut now = 0;
        loop {
            let Some((job, left)) = queue.pop_front() else {
                let Some((job, (at, service))) = arrivals.next() else { return ends };
                now = *at;
                queue.push_back((job, *service));
                continue;
            };
            let span = quantum.min(left);
            now += span;
            // Those that arrive before the quantum ends stand before its job, those that arrive with its end behind.
            while let Some((job, (_, service))) = arrivals.next_if(|(_, (at, _))| *at < now) {
                queue.push_back((job, *service));
            }
            if left == span {
                ends[job] = now;
            } else {
                queue.push_back((job, left - span));
            }
        }
    }

    #[test]
    fn three_transmissions_by_hand() {
        // Quanta of 10: 25 at 0, 10 at 3, 12 at 14. Service: 0 A, 10 B ends at 20, A, 30 C, 40 A ends at 45, C ends at 47.
        let jobs = [(0, 25), (3, 10), (14, 12)];
        assert_eq!(by_ring(10, &jobs), [45, 20, 47]);
        assert_eq!(by_quanta(10, &jobs), [45, 20, 47]);
        // With a quantum above all sizes it is first come first served.
        assert_eq!(by_ring(100, &jobs), [25, 35, 47]);
    }

    #[test]
    fn busy_time_is_what_was_transmitted() {
        let mut ring = PacketRing::new(Nanos::new(10));
        ring.enter(0, Nanos::new(25), Time::from_nanos(100));
        ring.enter(1, Nanos::new(5), Time::from_nanos(110));
        assert_eq!(ring.busy(Time::from_nanos(117)), Nanos::new(17));
        ring.restart_busy(Time::from_nanos(117));
        assert_eq!(ring.due(), Some(Time::from_nanos(125)));
        assert_eq!(ring.complete(Time::from_nanos(124)), None);
        assert_eq!(ring.complete(Time::from_nanos(125)), Some(1));
        assert_eq!(ring.busy(Time::from_nanos(126)), Nanos::new(9));
        ring.clear(Time::from_nanos(127));
        assert_eq!((ring.due(), ring.busy(Time::from_nanos(500))), (None, Nanos::new(10)));
    }

    #[test]
    fn enormous_transmissions_end_beyond_the_clock() {
        let mut ring = PacketRing::new(Nanos::new(1));
        (0..3).for_each(|job| ring.enter(job, Nanos::MAX, Time::from_nanos(u64::from(job))));
        assert_eq!(ring.due(), Some(Time::MAX));
        ring.enter(3, Nanos::new(1), Time::from_nanos(10));
        assert_eq!(ring.due(), Some(Time::from_nanos(14)));
        assert_eq!(ring.complete(Time::from_nanos(14)), Some(3));
    }

    /// Ten thousand transmissions at once, as in a spike.
    #[test]
    fn a_crowd_ends_as_quantum_by_quantum() {
        let jobs: Vec<(u64, u64)> = (0..10_000).map(|n| (n / 7, 1 + n * 7919 % 200)).collect();
        assert_eq!(by_ring(12, &jobs), by_quanta(12, &jobs));
    }

    proptest! {
        /// Each transmission ends at the same nanosecond as in a simulation of every quantum.
        #[test]
        fn the_shortcut_is_exact(
            quantum in 1u64..30,
            jobs in prop::collection::vec((0u64..60, 1u64..200), 1..60),
            spread in 0u64..4,
        ) {
            // Gaps of all kinds: none, of the length of quanta, and long enough for the ring to be empty.
            let mut at = 0;
            let jobs: Vec<(u64, u64)> = jobs.iter().map(|(gap, service)| {
                at += gap * spread;
                (at, *service)
            }).collect();
            prop_assert_eq!(by_ring(quantum, &jobs), by_quanta(quantum, &jobs));
        }
    }
}
