//! How a weight differs for a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_policy::{BackendId, Weight};

use crate::backend::Backend;

/// The least share of its weight that a back-end begins with, and the steps in which it grows.
const STEP: f64 = 0.05;
const LEAST: f64 = 0.1;

/// Why a weight differs, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Course {
    /// It grows until it is whole.
    Begins { since: Instant, time: Duration },
    /// It is 0 until the sessions are over.
    KeepsSessions { until: Instant },
}

impl Course {
    /// The weight in place of `base`; `None` when this is over.
    pub(crate) fn weight(self, base: Weight, now: Instant) -> Option<Weight> {
        match self {
            Self::KeepsSessions { until } => (now < until).then_some(Weight::ZERO),
            Self::Begins { since, time } => {
                let passed = now.saturating_duration_since(since);
                if passed >= time {
                    return None;
                }
                let share = (passed.as_secs_f64() / time.as_secs_f64() / STEP).floor() * STEP;
                let steps = (f64::from(base.steps()) * share.max(LEAST)).ceil();
                Some(Weight::new(steps / 256.0).unwrap_or(base))
            }
        }
    }
}

/// A weight that differs.
#[derive(Debug, Clone)]
pub(crate) struct Shaped {
    /// Whose weight it is: another back-end may get the same index.
    pub(crate) of: Arc<Backend>,
    /// What it is set to.
    pub(crate) base: Weight,
    /// What dispatch was told last.
    pub(crate) told: Weight,
    pub(crate) course: Course,
}

/// The weights of a pool that differ for a while.
#[derive(Debug, Default)]
pub(crate) struct ShapedWeights {
    /// The back-ends that were there last, by index; none at first.
    pub(crate) known: Option<Arc<Vec<Arc<Backend>>>>,
    /// By index.
    pub(crate) shaped: BTreeMap<BackendId, Shaped>,
}

impl ShapedWeights {
    /// Somebody sets the weight of a back-end. False where it does not differ, so that it is to be told as it is.
    pub(crate) fn set(&mut self, backend: &Backend, weight: Weight) -> bool {
        let shaped = self.shaped.get_mut(&backend.id).filter(|shaped| shaped.of.is_same(backend));
        shaped.map(|shaped| shaped.base = weight).is_some()
    }
}

/// Nothing else changes weights meanwhile.
pub(crate) fn locked(weights: &Mutex<ShapedWeights>) -> MutexGuard<'_, ShapedWeights> {
    weights.lock().unwrap_or_else(PoisonError::into_inner)
}
