//! What the simulator is fed: requests for numbered targets.

use plimsoll_policy::{Kind, Nanos, TargetId, Time};

/// One request of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimRequest {
    /// When it arrives, relative to the input's own origin; used by [`crate::Arrivals::Trace`] only.
    pub time: Time,
    /// Number of its target, an index into [`Targets`].
    pub target: u32,
    /// Bytes of the response body that are sent; 0 for none (HEAD, 304).
    pub size_bytes: u64,
    /// Service time where the input gives one, else zero.
    pub service: Nanos,
    /// Number of its client.
    pub client: u32,
    /// Class of content.
    pub class: u16,
    /// Static or dynamic.
    pub kind: Kind,
}

/// The targets, by number.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// Identity handed to the policy.
    pub id: Vec<TargetId>,
    /// Size of the whole document in bytes: what is read from disk and cached.
    pub size_bytes: Vec<u64>,
    /// Place in the order of falling request frequency, from 0; files are dealt to disks in this order.
    pub rank: Vec<u32>,
}

impl Targets {
    /// Targets with these identities, document sizes and request counts; equal counts rank by number.
    #[must_use]
    pub fn new(id: Vec<TargetId>, size_bytes: Vec<u64>, requests: &[u64]) -> Self {
        let mut order: Vec<u32> = (0..id.len() as u32).collect();
        order.sort_by_key(|&t| (std::cmp::Reverse(requests.get(t as usize).copied().unwrap_or(0)), t));
        let mut rank = vec![0; id.len()];
        for (place, &target) in order.iter().enumerate() {
            rank[target as usize] = place as u32;
        }
        Self { id, size_bytes, rank }
    }

    /// Number of targets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }
}

/// How requests arrive at the front-end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// The cluster is saturated: a request is there whenever the admission limit has room (LARD section 3.3).
    Closed,
    /// At the times of the input, divided by `speed`.
    Trace {
        /// 2 plays the input twice as fast.
        speed: f64,
    },
    /// A Poisson process; the input gives only the order.
    Poisson {
        /// Mean arrivals per second.
        rate_rps: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_by_falling_frequency_then_number() {
        let ids = (0..4).map(TargetId).collect();
        let targets = Targets::new(ids, vec![1; 4], &[5, 9, 5, 0]);
        assert_eq!(targets.rank, [1, 0, 2, 3]);
    }
}
