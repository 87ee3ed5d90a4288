//! The configuration of a run beside policy, model and requests, and the observer of a run.

use plimsoll_cache::{Cache, CacheSpec};
use plimsoll_policy::{BackendId, Health, Nanos, Time, Weight};

use crate::hot_spot::HotSpot;
use crate::workload::{Arrivals, Targets};

/// A change to a back-end during a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FaultAction {
    /// Down (its requests are lost), up (with an empty memory), or draining.
    Health(Health),
    /// A new weight.
    Weight(Weight),
    /// From now on this multiple of its speed, above 0: a third for a back-end that has become slow.
    Speed(f64),
    /// From now on a memory cache of so many bytes, which is empty at first.
    MemoryBytes(u64),
}

/// A change to a back-end at a given time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// Simulated time.
    pub at: Time,
    /// The back-end.
    pub backend: BackendId,
    /// The change.
    pub action: FaultAction,
}

/// The memory cache of each back-end.
#[derive(Debug, Clone, Copy)]
pub struct CacheConfig {
    /// Replacement policy.
    pub spec: &'static CacheSpec,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Files above this size in bytes are never cached.
    pub object_limit_bytes: Option<u64>,
}

impl CacheConfig {
    /// Builds an empty cache.
    #[must_use]
    pub fn build(&self) -> Box<dyn Cache> {
        (self.spec.build)(self.capacity_bytes, self.object_limit_bytes)
    }
}

/// Everything about a run but policy, model and requests.
#[derive(Debug, Clone)]
pub struct RunConfig<'a> {
    /// Seed of arrivals; policy and model have their own streams of it.
    pub seed: u64,
    /// How requests arrive.
    pub arrivals: Arrivals,
    /// Completions before the measurement starts.
    pub warmup: u64,
    /// Whether the request behind the warm-up arrives only when all before it have ended, so that no queue of a cold start counts. Not for a closed
    /// loop, in which queues are as they are meant, nor with the model `apache`.
    pub settles: bool,
    /// A back-end counts as idle below this load (LARD section 3.3: 40 % of `t_low`).
    pub idle_below: f64,
    /// How long a poll takes. The answers are the loads at the time they come. Zero for instant polls.
    pub poll_time: Nanos,
    /// In order of time.
    pub faults: &'a [Fault],
    /// Spans in which one target gets a share of all requests.
    pub hot_spots: &'a [HotSpot],
    /// The targets that requests name by number.
    pub targets: &'a Targets,
}

/// An assignment, as observers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecisionMade {
    /// Number of the request, from 0 in arrival order.
    pub request: u64,
    /// When.
    pub time: Time,
    /// Number of the target.
    pub target: u32,
    /// The chosen back-end.
    pub backend: BackendId,
}

/// Observes a run.
pub trait RunObserver {
    /// A request was assigned.
    fn decided(&mut self, decided: DecisionMade) {
        let _ = decided;
    }

    /// Called about every 65,536 requests with the number that has arrived so far; `false` stops the run.
    fn progress(&mut self, arrived: u64) -> bool {
        let _ = arrived;
        true
    }
}

/// Observes nothing.
impl RunObserver for () {}

/// Why a run did not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError<E> {
    /// The source of requests failed.
    Source(E),
    /// The observer stopped it.
    Stopped,
    /// Simulated time went beyond 584 years, the most that nanoseconds in 64 bits can count.
    TimeOverflow,
    /// The input ended before, or with, the warm-up: nothing was measured.
    OnlyWarmUp {
        /// Length of the warm-up, in answers.
        warmup: u64,
    },
}
