//! The simulator's input: requests for numbered targets.

use plimsoll_policy::{Kind, Nanos, Rng, TargetId, Time};

use plimsoll_synth::{AnswerKind, TimeDistribution, TimeDraws, TimeShape};

/// One request of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    /// What is answered. Only models of connections tell them apart.
    pub answer: AnswerKind,
    /// Asked by HTTP/1.1, whose connections stay. Only models of connections tell.
    pub http11: bool,
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
    /// A saturated cluster: a request arrives whenever the admission limit has room (LARD section 3.3).
    Closed,
    /// At the times of the input, divided by `speed`.
    Trace {
        /// 2 plays the input twice as fast.
        speed: f64,
    },
    /// Independent times between arrivals; the input gives only the order.
    Renewal {
        /// Mean arrivals per second.
        rate_rps: f64,
        /// How the times are distributed.
        shape: TimeShape,
    },
    /// A Poisson process; the input gives only the order.
    Poisson {
        /// Mean arrivals per second.
        rate_rps: f64,
    },
}

impl Arrivals {
    /// What draws the times between them, where they are drawn and not exponential.
    pub(crate) fn times(&self, rng: Rng) -> Option<TimeDraws<Rng>> {
        match *self {
            Self::Renewal { rate_rps, shape } => {
                Some(TimeDraws::new(TimeDistribution { mean_ns: 1e9 / rate_rps, shape }, rng))
            }
            _ => None,
        }
    }
}

/// Draws each request's service time.
#[derive(Debug)]
pub struct ServiceDraw(Option<TimeDraws<Rng>>);

impl ServiceDraw {
    /// Draws for the first request next; `None` leaves all requests as they are.
    #[must_use]
    pub fn new(distribution: Option<TimeDistribution>, seed: u64) -> Self {
        Self(distribution.map(|of| TimeDraws::new(of, Rng::new(seed, SERVICE_STREAM))))
    }

    /// Draws for the next request.
    #[inline]
    pub fn draw(&mut self, request: &mut SimRequest) {
        if let Some(times) = &mut self.0 {
            // A service time of zero would stand for none.
            request.service = Nanos::new(times.draw_ns().max(1));
        }
    }
}

/// Stream of the seed from which service times are drawn.
const SERVICE_STREAM: u64 = 0x7365_7276;

/// Responses of this many bytes or more are never made dynamic: 100 KB (`AdaptLoad`, section 7.1).
const LARGE_BYTES: u64 = 102_400;

/// Stream of the seed from which the dynamic requests are drawn.
const DYNAMIC_STREAM: u64 = 0x6479_6E61;

/// Makes a share of the requests dynamic.
///
/// Source: `AdaptLoad`, section 7.1. Each request is a candidate with probability `share`, independently of the others, and a
/// candidate becomes dynamic if its response is smaller than 100 KB. Equal seeds make the same requests dynamic.
#[derive(Debug)]
pub struct DynamicDraw {
    share: f64,
    rng: Rng,
}

impl DynamicDraw {
    /// Draws for the first request next. A `share` of 0 leaves all requests as they are.
    #[must_use]
    pub fn new(share: f64, seed: u64) -> Self {
        Self { share, rng: Rng::new(seed, DYNAMIC_STREAM) }
    }

    /// Draws for the next request.
    #[inline]
    pub fn draw(&mut self, request: &mut SimRequest) {
        // Every request draws a number, so that sizes do not shift the draws of later requests.
        if self.share > 0.0 && self.rng.unit() < self.share && request.size_bytes < LARGE_BYTES {
            request.kind = Kind::Dynamic;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dynamic(sizes: &[u64], share: f64, seed: u64) -> Vec<usize> {
        let mut draw = DynamicDraw::new(share, seed);
        let kinds = sizes.iter().map(|&size_bytes| {
            let mut request = SimRequest { size_bytes, ..SimRequest::default() };
            draw.draw(&mut request);
            request.kind
        });
        kinds.enumerate().filter(|(_, kind)| *kind == Kind::Dynamic).map(|(n, _)| n).collect()
    }

    #[test]
    fn a_share_of_the_small_requests_becomes_dynamic() {
        let small = vec![5_000; 20_000];
        let (some, all) = (dynamic(&small, 0.3, 1), dynamic(&small, 1.0, 1));
        // Five standard errors are 324.
        assert!(some.len().abs_diff(6_000) < 324, "{}", some.len());
        assert_eq!((all.len(), dynamic(&small, 0.0, 1).len()), (20_000, 0));
        assert_eq!(some, dynamic(&small, 0.3, 1));
        assert_ne!(some, dynamic(&small, 0.3, 2));
        // Large ones stay, and the others are the same as without them.
        let mixed: Vec<u64> = (0..20_000).map(|n| [102_399, 102_400, 1 << 30][n % 3]).collect();
        let expected: Vec<usize> = some.into_iter().filter(|n| n % 3 == 0).collect();
        assert_eq!(dynamic(&mixed, 0.3, 1), expected);
    }

    #[test]
    fn ranks_by_falling_frequency_then_number() {
        let ids = (0..4).map(TargetId).collect();
        let targets = Targets::new(ids, vec![1; 4], &[5, 9, 5, 0]);
        assert_eq!(targets.rank, [1, 0, 2, 3]);
    }
}
