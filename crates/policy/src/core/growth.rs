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
//!               before, and all are slowed. Above 10 s, equal times are a sign only for targets of which something is known
//!           and the last one ended lately: not before twice the mean, or twice what the 16 took
//! room above S, where most back-ends are overloaded = fewer than `probe`'s limit are under way that were assigned in the last
//!               four mean response times; older ones are streams
//!              elsewhere = of the last minute fewer than twice as many as a tenth of a second ago, or than S more
//! ```

mod age;
mod past;
mod probe;
mod responses;

use age::AgeCount;
use past::Past;
use probe::Probe;
use responses::{Responses, TimedResponse};

use crate::cluster::{BackendId, ClusterView};
use crate::decision::Completion;
use crate::lru_map::LruMap;
use crate::request::Outcome;
use crate::time::{Nanos, Time};

/// A request is recent for this many slots of this width.
const RECENT: (usize, Nanos) = (60, Nanos::from_secs(1));
/// A response that takes longer than usual by this factor and [`SLOWED_BY`] was slowed; the second factor is for targets of
/// which nothing is known.
const SLOWED_TIMES: (u64, u64) = (5, 3);
const SLOWED_BY: Nanos = Nanos::from_millis(50);
/// What is usual is forgotten when it was not seen for this long, but not while there is much to do.
const MEMORY: Nanos = Nanos::from_secs(600);
/// Targets of which something is known at once.
const TARGETS: usize = 16_384;
/// Where back-ends are overloaded, requests count for so many mean response times.
const MEANS: u64 = 4;

/// Measures what the adaptive limit depends on.
pub(super) struct Growth {
    recent: AgeCount<{ RECENT.0 }>,
    past: Past,
    now: Time,
    backends: Vec<Responses>,
    /// What is usual for each target.
    known: LruMap<Usual>,
    probe: Probe,
    /// In how many slots of `recent` a request counts where back-ends are overloaded.
    window: usize,
}

impl Default for Growth {
    fn default() -> Self {
        Self {
            recent: AgeCount::new(RECENT.1),
            past: Past::default(),
            now: Time::ZERO,
            backends: Vec::new(),
            known: LruMap::new(TARGETS),
            probe: Probe::default(),
            window: RECENT.0,
        }
    }
}

impl Growth {
    /// Time has come to `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        if self.probe.is_on() {
            self.probe.pass(self.recent.sum_of_last(self.window), now);
        }
        self.past.advance(self.recent.sum(), now);
        self.recent.advance(now);
        self.now = now;
    }

    /// A request that was assigned at `at` is load from now on.
    pub(super) fn begins(&mut self, at: Time, now: Time) {
        self.advance(now);
        self.recent.add(at);
    }

    /// A request that was assigned at `at` is no load any more.
    pub(super) fn ends(&mut self, at: Time) {
        self.recent.remove(at);
    }

    /// A request that was assigned at `at` has ended, without that its client was waited for; S is `base`.
    pub(super) fn completed(
        &mut self,
        completion: &Completion,
        at: Time,
        base: u64,
        view: &ClusterView,
        now: Time,
    ) {
        self.advance(now);
        self.ends(at);
        if completion.outcome != Outcome::Completed {
            return;
        }
        let index = completion.backend.index();
        if self.backends.len() <= index {
            self.backends.resize(index + 1, Responses::default());
        }
        let load = self.recent.sum();
        let (idle, busy) = (8 * load < base, 2 * load >= base);
        let responses = &mut self.backends[index];
        let time = now.since(at);
        let remembered = |usual: &&mut Usual| busy || now.since(usual.seen) <= MEMORY;
        let usual = self.known.get_mut(completion.target).filter(remembered);
        let known = usual.is_some();
        let slow_from = match &usual {
            Some(usual) => slow_from(usual.response_time, SLOWED_TIMES.0),
            // It will be known.
            None if idle => u64::MAX,
            None => slow_from(responses.least_of_unknown(time, busy, now), SLOWED_TIMES.1),
        };
        let slowed = busy && time.as_nanos() >= slow_from;
        match usual {
            // What is slow while there is little to do is slow by nature.
            Some(usual) if idle => usual.add(time, now),
            Some(usual) if !slowed => usual.seen = now,
            None if idle => {
                let new = Usual { response_time: time, seen: now };
                *self.known.get_or_insert_with(completion.target, || new).0 = new;
            }
            _ => {}
        }
        responses.add(&TimedResponse { at, time, slowed, known }, now);
        if busy || self.probe.is_on() {
            let window = self.overloaded_window(view);
            self.window = window.unwrap_or(self.window);
            self.probe.responded(time, window.is_some(), base, now);
        }
    }

    /// Nothing is known of a back-end that joins.
    pub(super) fn joined(&mut self, backend: BackendId) {
        if let Some(responses) = self.backends.get_mut(backend.index()) {
            *responses = Responses::default();
        }
    }

    /// Whether one more may enter although there are `base` requests or more, `reserved` of which are not load yet.
    pub(super) fn has_room(&self, base: u64, reserved: u64, view: &ClusterView) -> bool {
        match self.overloaded_window(view) {
            _ if base == 0 => false,
            Some(window) => self.recent.sum_of_last(window) + reserved < self.probe.limit(base),
            None => self.recent.sum() + reserved < self.past.then() + base.max(self.past.then()),
        }
    }

    /// Whether most back-ends are overloaded.
    pub(super) fn overloaded(&self, view: &ClusterView) -> bool {
        self.overloaded_window(view).is_some()
    }

    /// Where most back-ends are overloaded: in how many slots of `recent` a request counts.
    fn overloaded_window(&self, view: &ClusterView) -> Option<usize> {
        let (mut overloaded, mut mean) = (0, Nanos::ZERO);
        for (index, responses) in self.backends.iter().enumerate().take(view.len()) {
            let backend = BackendId::new(index);
            if let Some(of_this) = responses.overloaded(self.now)
                && view.own_load(backend) > 0
                && view.is_eligible(backend)
            {
                overloaded += 1;
                mean = mean.max(of_this);
            }
        }
        let slots = mean.as_nanos().saturating_mul(MEANS) / RECENT.1.as_nanos();
        // The current slot has just begun, and the first one is not whole.
        (2 * overloaded > view.eligible()).then(|| RECENT.0.min(slots as usize + 2))
    }
}

/// The least response time that is slow where this one is usual, in nanoseconds.
fn slow_from(usual: Nanos, times: u64) -> u64 {
    usual.as_nanos().saturating_mul(times).saturating_add(SLOWED_BY.as_nanos())
}

/// The response time that is usual for a target, and when it was last seen.
#[derive(Debug, Clone, Copy, Default)]
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
