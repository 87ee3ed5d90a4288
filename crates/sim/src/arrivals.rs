//! When requests arrive, and those on their way to a back-end.

use plimsoll_policy::{Candidates, Exponentials, Nanos, Request, Rng, Time};
use plimsoll_synth::TimeDraws;

use crate::workload::{Arrivals, SimRequest, Targets};

/// Stream of the run's seed from which arrivals are drawn.
const STREAM: u64 = 0x6172_7276;

/// Tells when the requests of the input arrive.
pub(crate) struct ArrivalTimes {
    arrivals: Arrivals,
    /// Draws the times between arrivals.
    exponentials: Exponentials,
    /// Draws them where they are not exponential.
    gaps: Option<TimeDraws<Rng>>,
    /// The time of the first request in the input.
    origin: Option<Time>,
    /// How much later than in the input requests arrive, since one had to wait for the end of those before it.
    late: Nanos,
}

impl ArrivalTimes {
    pub(crate) fn new(arrivals: Arrivals, seed: u64) -> Self {
        let rng = Rng::new(seed, STREAM);
        Self {
            arrivals,
            exponentials: Exponentials::new(rng.clone()),
            gaps: arrivals.times(rng),
            origin: None,
            late: Nanos::ZERO,
        }
    }

    /// When `request` arrives, where the one before it arrived at `now`.
    #[inline(always)]
    pub(crate) fn next(&mut self, request: &SimRequest, now: Time) -> Time {
        match self.arrivals {
            // Adding a half and truncating rounds; a call to `round` is not inlined.
            Arrivals::Poisson { rate_rps } => {
                now + Nanos::new((self.exponentials.draw() / rate_rps * 1e9 + 0.5) as u64)
            }
            _ => self.other(request, now),
        }
    }

    #[inline(never)]
    fn other(&mut self, request: &SimRequest, now: Time) -> Time {
        match self.arrivals {
            Arrivals::Closed => now,
            Arrivals::Poisson { .. } | Arrivals::Renewal { .. } => {
                now + self.gaps.as_mut().map_or(Nanos::ZERO, |gaps| Nanos::new(gaps.draw_ns()))
            }
            Arrivals::Trace { speed } => {
                let origin = *self.origin.get_or_insert(request.time);
                let offset_ns = request.time.since(origin).as_nanos() as f64 / speed;
                (Time::ZERO + Nanos::new((offset_ns + 0.5) as u64) + self.late).max(now)
            }
        }
    }

    /// The same for one that has waited for the end of all before it, which is now. Those behind it keep their distance.
    pub(crate) fn next_settled(&mut self, request: &SimRequest, now: Time) -> Time {
        let planned = self.next(request, Time::ZERO);
        if !matches!(self.arrivals, Arrivals::Trace { .. }) {
            return now + planned.since(Time::ZERO);
        }
        self.late += now.since(planned.min(now));
        planned.max(now)
    }
}

/// A request that has arrived.
#[derive(Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) time: Time,
    pub(crate) number: u64,
    pub(crate) request: SimRequest,
}

impl Arrived {
    /// The request as a policy sees it.
    #[inline]
    pub(crate) fn asked(&self, targets: &Targets) -> Request {
        let request = &self.request;
        Request {
            number: self.number,
            target: targets.id[request.target as usize],
            size_bytes: Some(targets.size_bytes[request.target as usize]),
            kind: request.kind,
            client: u64::from(request.client),
            class: request.class,
            features: None,
        }
    }
}

/// A poll under way.
pub(crate) struct Poll {
    pub(crate) ends: Time,
    pub(crate) arrived: Arrived,
    pub(crate) candidates: Candidates,
}
