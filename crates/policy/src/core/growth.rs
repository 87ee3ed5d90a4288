//! The adaptive admission limit: whether more requests than LARD's S may enter.
//!
//! S keeps answers in time when back-ends queue. Yet a back-end may hold many requests without being overloaded: long
//! polls, event streams, handlers that wait for something else. A limit would refuse what the back-ends could take. Both
//! look the same by the number of requests alone; they differ in how those end:
//!
//! ```text
//! usual       = of a target: a quarter of its responses take no longer while fewer than S / 8 requests are under way;
//!               of one of which nothing is known: the least response time of such targets here in the last minute,
//!               while more requests are under way; nothing is forgotten while S / 2 are
//! slowed      = response time >= 5 * usual + 50 ms, or 3 * usual + 50 ms where nothing is known of the target
//! overloaded  = of the back-end's last 16 responses 6 or more were slowed while S / 2 requests were under way, and took half
//!               of the time of all; so they are known as soon as there are 6
//!           and (mean <= 1 s or least >= mean / 3): waiting, not the kind of request, makes them slow; or it was overloaded
//!               before, and all are slowed
//!           and the last one ended lately: not before twice the mean, or twice what the 16 took
//! room above S, where overloaded back-ends have half of the load or more = of the last minute come fewer than S requests
//!              elsewhere = of the last 200 ms come fewer than S, or fewer than the older ones: the load doubles at most
//! ```

mod age;

use age::AgeCount;

use crate::cluster::{BackendId, ClusterView};
use crate::decision::Completion;
use crate::lru_map::LruMap;
use crate::request::Outcome;
use crate::time::{Nanos, Time};

/// A request is young for this many slots of this width, and recent for this many.
const YOUNG: (usize, Nanos) = (4, Nanos::from_millis(50));
const RECENT: (usize, Nanos) = (60, Nanos::from_secs(1));
/// Responses in a group, and how many of them are slowed where a back-end is overloaded.
const GROUP: u32 = 16;
const SLOWED_OF_GROUP: u32 = 6;
/// A response that takes longer than usual by this factor and [`SLOWED_BY`] was slowed; the second factor is for targets of
/// which nothing is known.
const SLOWED_TIMES: (u64, u64) = (5, 3);
const SLOWED_BY: Nanos = Nanos::from_millis(50);
/// What is usual is forgotten when all responses have been slowed for this long.
const MEMORY: Nanos = Nanos::from_secs(600);
/// How long the least response time of targets of which nothing is known is remembered.
const MEMORY_OF_UNKNOWN: Nanos = Nanos::from_secs(60);
/// Targets of which something is known at once.
const TARGETS: usize = 16_384;
/// Above this mean only responses that take about equally long are a sign of waiting.
const LONG: Nanos = Nanos::from_secs(1);

/// Measures what the adaptive limit depends on.
pub(super) struct Growth {
    young: AgeCount<{ YOUNG.0 }>,
    recent: AgeCount<{ RECENT.0 }>,
    now: Time,
    backends: Vec<Responses>,
    /// What is usual for each target.
    known: LruMap<Usual>,
}

impl Default for Growth {
    fn default() -> Self {
        let (young, recent) = (AgeCount::new(YOUNG.1), AgeCount::new(RECENT.1));
        Self { young, recent, now: Time::ZERO, backends: Vec::new(), known: LruMap::new(TARGETS) }
    }
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

    /// A request that was assigned at `at` has ended, and `load` others are under way; S is `base`.
    pub(super) fn completed(
        &mut self,
        completion: &Completion,
        at: Time,
        (load, base): (u64, u64),
        now: Time,
    ) {
        self.advance(now);
        self.ends(at);
        if completion.outcome != Outcome::Completed {
            return;
        }
        let index = completion.backend.index();
        if self.backends.len() <= index {
            self.backends.resize(index + 1, Responses::NONE);
        }
        let (idle, busy) = (8 * load < base, 2 * load >= base);
        let responses = &mut self.backends[index];
        let response_time = now.since(at);
        let remembered = |usual: &&mut Usual| busy || now.since(usual.seen) <= MEMORY;
        let known = self.known.get_mut(completion.target).filter(remembered);
        let slow_from = match &known {
            Some(usual) => slow_from(usual.response_time, SLOWED_TIMES.0),
            // It will be known.
            None if idle => u64::MAX,
            None => slow_from(responses.least_of_unknown(response_time, busy, now), SLOWED_TIMES.1),
        };
        let slowed = busy && response_time.as_nanos() >= slow_from;
        match known {
            // What is slow while there is little to do is slow by nature.
            Some(usual) if idle => usual.add(response_time, now),
            Some(usual) if !slowed => usual.seen = now,
            None if idle => {
                let new = Usual { response_time, seen: now };
                *self.known.get_or_insert_with(completion.target, || new).0 = new;
            }
            _ => {}
        }
        responses.add(response_time, slowed, at, now);
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
            return self.recent.sum() + reserved < base;
        }
        let young = self.young.sum() + reserved;
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

/// The least response time that is slow where this one is usual, in nanoseconds.
fn slow_from(usual: Nanos, times: u64) -> u64 {
    usual.as_nanos().saturating_mul(times).saturating_add(SLOWED_BY.as_nanos())
}

/// The response time that is usual for a target, and when it was last seen.
#[derive(Debug, Clone, Copy)]
struct Usual {
    response_time: Nanos,
    seen: Time,
}

impl Usual {
    /// Another response. In the long run a quarter of them take no longer: each one below pulls down three times as far as one
    /// above pushes up.
    fn add(&mut self, response_time: Nanos, now: Time) {
        let step = self.response_time.as_nanos() / 32 + 1;
        self.response_time = Nanos::new(if response_time < self.response_time {
            self.response_time.as_nanos().saturating_sub(3 * step).max(response_time.as_nanos())
        } else {
            (self.response_time.as_nanos() + step).min(response_time.as_nanos())
        });
        self.seen = now;
    }
}

/// Responses of one back-end.
#[derive(Debug, Clone, Copy)]
struct Responses {
    /// The group that is being collected.
    count: u32,
    sum: Nanos,
    /// Of slowed ones.
    slowed: u32,
    slowed_sum: Nanos,
    least: Nanos,
    /// When the last response came.
    latest: Time,
    /// The last full group, if there was one.
    last: Option<Group>,
    /// The least response time of targets of which nothing is known, and when it was seen.
    unknown: Option<(Nanos, Time)>,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    overloaded: bool,
    mean: Nanos,
    /// From the end of the group before, or from the first assignment in it.
    duration: Nanos,
    ended: Time,
}

impl Responses {
    const NONE: Self = Self {
        count: 0,
        sum: Nanos::ZERO,
        slowed: 0,
        slowed_sum: Nanos::ZERO,
        least: Nanos::MAX,
        latest: Time::ZERO,
        last: None,
        unknown: None,
    };

    /// The least response time of targets of which nothing is known, with this one.
    fn least_of_unknown(&mut self, response_time: Nanos, busy: bool, now: Time) -> Nanos {
        let known = self.unknown.filter(|(_, seen)| busy || now.since(*seen) <= MEMORY_OF_UNKNOWN);
        let least = known.filter(|(least, _)| *least < response_time).unwrap_or((response_time, now));
        self.unknown = Some(least);
        least.0
    }

    /// Adds the response to a request that was assigned at `at`.
    fn add(&mut self, response_time: Nanos, slowed: bool, at: Time, now: Time) {
        self.latest = now;
        self.count += 1;
        self.sum += response_time;
        if slowed {
            self.slowed += 1;
            self.slowed_sum += response_time;
        }
        self.least = self.least.min(response_time);
        if self.count == GROUP {
            *self = Self { last: Some(self.group(at)), unknown: self.unknown, ..Self::NONE };
        }
    }

    /// The responses since the last full group, to the latest request, which was assigned at `at`.
    fn group(&self, at: Time) -> Group {
        let mean = Nanos::new(self.sum.as_nanos() / u64::from(self.count.max(1)));
        let duration = self.latest.since(self.last.map_or(at, |last| last.ended));
        let slowed = self.slowed >= SLOWED_OF_GROUP && self.slowed_sum.as_nanos() >= self.sum.as_nanos() / 2;
        // When the queue becomes shorter, responses after it are faster than those before; yet all are slowed.
        let goes_on = self.slowed == self.count && self.last.is_some_and(|last| last.overloaded);
        let alike = 3 * u128::from(self.least.as_nanos()) >= u128::from(mean.as_nanos());
        let overloaded = slowed && (mean <= LONG || alike || goes_on);
        Group { overloaded, mean, duration, ended: self.latest }
    }

    fn overloaded(&self, now: Time) -> bool {
        // Slowed ones count as soon as there are enough.
        let running = Some(self.group(self.latest)).filter(|group| group.overloaded);
        let Some(last) = running.or(self.last) else { return false };
        last.overloaded && now.since(last.ended).as_nanos() / 2 <= last.mean.max(last.duration).as_nanos()
    }
}
