//! The adaptive admission limit: whether more requests than LARD's S may enter.
//!
//! S keeps answers in time when back-ends queue. Yet a back-end may hold many requests without being overloaded: long
//! polls, event streams, handlers that wait for something else. A limit would refuse what the back-ends could take. Both
//! look the same by the number of requests alone; they differ in how those end:
//!
//! ```text
//! groups of 16 responses of a back-end: mean and least response time
//! overloaded  = the last group ended lately: twice the mean or twice what the group took ago, or later
//!           and least >= 4 * the least of the last minutes + 50 ms: none is as fast as it could be
//!           and (mean <= 1 s or least >= mean / 3): waiting, not the kind of request, makes them slow
//! room above S, where overloaded back-ends have half of the load or more = of the last minute come fewer than S requests
//!              elsewhere = of the last 100 ms come fewer than S, or fewer than the older ones: the load doubles at most
//! ```

use crate::cluster::{BackendId, ClusterView};
use crate::decision::Completion;
use crate::request::Outcome;
use crate::time::{Nanos, Time};

/// A request is young for this many slots of this width, and recent for this many.
const YOUNG: (usize, Nanos) = (4, Nanos::from_millis(25));
const RECENT: (usize, Nanos) = (60, Nanos::from_secs(1));
/// Responses in a group.
const GROUP: u32 = 16;
/// The least response time is forgotten after one to two of these.
const MEMORY: Nanos = Nanos::from_secs(60);
/// A response that takes longer than the least one by this factor and [`SLOWED_BY`] was slowed.
const SLOWED_TIMES: u64 = 4;
const SLOWED_BY: Nanos = Nanos::from_millis(50);
/// Above this mean only responses that take about equally long are a sign of waiting.
const LONG: Nanos = Nanos::from_secs(1);

/// Measures what the adaptive limit depends on.
#[derive(Debug)]
pub(super) struct Growth {
    young: AgeCount<{ YOUNG.0 }>,
    recent: AgeCount<{ RECENT.0 }>,
    now: Time,
    backends: Vec<Responses>,
}

/// Counts requests that are load and were assigned in the last N slots of time.
#[derive(Debug)]
struct AgeCount<const N: usize> {
    width: Nanos,
    /// By the slot of the assignment, modulo N.
    counts: [u64; N],
    sum: u64,
    /// The current slot, and when it ends.
    slot: u64,
    ends: Time,
}

impl<const N: usize> AgeCount<N> {
    const fn new(width: Nanos) -> Self {
        Self { width, counts: [0; N], sum: 0, slot: 0, ends: Time::ZERO }
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        if now >= self.ends {
            self.next_slot(now);
        }
    }

    #[inline(never)]
    fn next_slot(&mut self, now: Time) {
        let slot = now.as_nanos() / self.width.as_nanos();
        for passed in self.slot + 1..=slot.min(self.slot + N as u64) {
            self.sum -= std::mem::take(&mut self.counts[(passed % N as u64) as usize]);
        }
        self.slot = slot;
        self.ends = Time::from_nanos((slot + 1).saturating_mul(self.width.as_nanos()));
    }

    /// The slot of a request that was assigned at `at`, if it still counts.
    fn of(&mut self, at: Time) -> Option<&mut u64> {
        let slot = at.as_nanos() / self.width.as_nanos();
        (slot + N as u64 > self.slot).then(|| &mut self.counts[(slot % N as u64) as usize])
    }

    fn add(&mut self, at: Time) {
        if let Some(count) = self.of(at) {
            *count += 1;
            self.sum += 1;
        }
    }

    fn remove(&mut self, at: Time) {
        if let Some(count) = self.of(at).filter(|count| **count > 0) {
            *count -= 1;
            self.sum -= 1;
        }
    }
}

impl Default for Growth {
    fn default() -> Self {
        let (young, recent) = (AgeCount::new(YOUNG.1), AgeCount::new(RECENT.1));
        Self { young, recent, now: Time::ZERO, backends: Vec::new() }
    }
}

/// Response times of one back-end.
#[derive(Debug, Clone, Copy)]
struct Responses {
    /// The group that is being collected.
    count: u32,
    sum: Nanos,
    least: Nanos,
    /// The last full group, if there was one.
    last: Option<Group>,
    /// The least response time in this and the last span of [`MEMORY`].
    least_known: [Nanos; 2],
    span: u64,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    mean: Nanos,
    least: Nanos,
    /// From the end of the group before, or from the first assignment in it.
    duration: Nanos,
    ended: Time,
}

impl Growth {
    /// Time has come to `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        self.young.advance(now);
        self.recent.advance(now);
        self.now = now;
    }

    /// A request that was assigned at `at` is load from now on.
    pub(super) fn begins(&mut self, at: Time, now: Time) {
        self.advance(now);
        self.young.add(at);
        self.recent.add(at);
    }

    /// A request that was assigned at `at` is no load any more.
    pub(super) fn ends(&mut self, at: Time) {
        self.young.remove(at);
        self.recent.remove(at);
    }

    /// A request that was assigned at `at` has ended.
    pub(super) fn completed(&mut self, completion: &Completion, at: Time, now: Time) {
        self.advance(now);
        self.ends(at);
        if completion.outcome == Outcome::Completed {
            let index = completion.backend.index();
            if self.backends.len() <= index {
                self.backends.resize(index + 1, Responses::NONE);
            }
            self.backends[index].add(at, now);
        }
    }

    /// Nothing is known of a back-end that joins.
    pub(super) fn joined(&mut self, backend: BackendId) {
        if let Some(responses) = self.backends.get_mut(backend.index()) {
            *responses = Responses::NONE;
        }
    }

    /// Whether one more may enter although there are `base` requests or more, `reserved` of which are not load yet.
    pub(super) fn has_room(&self, base: u64, reserved: u64, view: &ClusterView) -> bool {
        if self.overloaded(view) {
            return self.recent.sum + reserved < base;
        }
        let young = self.young.sum + reserved;
        base > 0 && young < base.max(view.total_load().saturating_sub(young))
    }

    /// Whether overloaded back-ends have half of the load or more.
    pub(super) fn overloaded(&self, view: &ClusterView) -> bool {
        let mut overloaded = 0;
        for (index, responses) in self.backends.iter().enumerate().take(view.len()) {
            let load = u64::from(view.load(BackendId::new(index)));
            if load > 0 && responses.overloaded(self.now) {
                overloaded += load;
            }
        }
        overloaded > 0 && 2 * overloaded >= view.total_load()
    }
}

impl Responses {
    const NONE: Self = Self {
        count: 0,
        sum: Nanos::ZERO,
        least: Nanos::MAX,
        last: None,
        least_known: [Nanos::MAX; 2],
        span: 0,
    };

    fn add(&mut self, at: Time, now: Time) {
        let response_time = now.since(at);
        let span = now.as_nanos() / MEMORY.as_nanos();
        if span != self.span {
            let before = if span == self.span + 1 { self.least_known[0] } else { Nanos::MAX };
            (self.least_known, self.span) = ([Nanos::MAX, before], span);
        }
        self.least_known[0] = self.least_known[0].min(response_time);
        self.count += 1;
        self.sum += response_time;
        self.least = self.least.min(response_time);
        if self.count == GROUP {
            let began = self.last.map_or(at, |last| last.ended);
            let mean = Nanos::new(self.sum.as_nanos() / u64::from(GROUP));
            self.last = Some(Group { mean, least: self.least, duration: now.since(began), ended: now });
            (self.count, self.sum, self.least) = (0, Nanos::ZERO, Nanos::MAX);
        }
    }

    fn overloaded(&self, now: Time) -> bool {
        let Some(last) = self.last else { return false };
        let least_known = self.least_known[0].min(self.least_known[1]).as_nanos();
        let slowed = least_known.saturating_mul(SLOWED_TIMES).saturating_add(SLOWED_BY.as_nanos());
        let fresh = now.since(last.ended).as_nanos() / 2 <= last.mean.max(last.duration).as_nanos();
        let alike =
            last.mean <= LONG || 3 * u128::from(last.least.as_nanos()) >= u128::from(last.mean.as_nanos());
        fresh && last.least.as_nanos() >= slowed && alike
    }
}
