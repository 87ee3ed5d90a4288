//! Least time: the back-end with the lowest product of average response time and load.
//!
//! Citation: documentation of nginx, module `ngx_http_upstream_module`, `least_time last_byte` (NGINX Plus; nginx 1.7.10, 2015).
//! NetScaler's least response time method multiplies active transactions with response time in the same way. Neither publishes its
//! averaging; this one weighs past response times by their age.
//!
//! ```text
//! when b answers after rtt:  w <- exp(-time since b's last answer / decay)
//!                            sum[b] <- w * sum[b] + rtt, count[b] <- w * count[b] + 1
//! mean[b] <- sum[b] / count[b], halved for each `decay` that b has not answered for
//! cost[b] <- mean[b] * (load[b] + 1) / weight[b]
//! n <- the back-end with the lowest cost; several in turn
//! send r to n
//! ```
//!
//! The response time ends with the last byte, as in `last_byte`. A back-end that has not answered yet costs nothing without load, so
//! that it is tried at once, and counts like the average of all as soon as it has load. Failed requests do not count: one that
//! fails quickly must not attract requests.

use crate::capability::{BadState, SavesState};
use crate::cluster::{BackendId, Change, ClusterView, Health};
use crate::decision::{Completion, Decision, assign_or_reject};
use crate::load_use::LoadUse;
use crate::params::{ParamSet, Params as _};
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::{Outcome, Request};
use crate::saved::{StateReader, StateWriter};
use crate::time::{Nanos, Time};

crate::params! {
    /// Parameters of least time.
    pub struct LeastTimeParams {
        /// The time in which the weight of a past response time falls to 37 %.
        decay_s: Nanos = Nanos::from_secs(10), 0.000001..=1000000.0, "s";
    }
}

/// An average of response times in which each weighs less with its age.
#[derive(Debug, Clone, Copy)]
struct Average {
    sum_ns: f64,
    count: f64,
    mean_ns: f64,
    at: Time,
}

impl Average {
    const NONE: Self = Self { sum_ns: 0.0, count: 0.0, mean_ns: 0.0, at: Time::ZERO };

    fn add(&mut self, rtt_ns: f64, decay: Nanos, now: Time) {
        let left = libm::exp(-(now.since(self.at).as_nanos() as f64) / decay.as_nanos() as f64);
        (self.sum_ns, self.count) = (left * self.sum_ns + rtt_ns, left * self.count + 1.0);
        (self.mean_ns, self.at) = (self.sum_ns / self.count, now);
    }

    /// The mean, or what is left of it when it is old.
    #[inline]
    fn mean_ns(&self, decay: Nanos, now: Time) -> f64 {
        let age_ns = now.since(self.at).as_nanos();
        if age_ns < decay.as_nanos() {
            return self.mean_ns;
        }
        let halvings = age_ns / decay.as_nanos().max(1);
        libm::ldexp(self.mean_ns, -(halvings.min(1_000) as i32))
    }

    fn save(&self, out: &mut StateWriter) {
        out.words([self.sum_ns.to_bits(), self.count.to_bits(), self.at.as_nanos()]);
    }

    fn restored(from: &mut StateReader<'_>) -> Result<Self, BadState> {
        let (sum_ns, count) = (f64::from_bits(from.word()?), f64::from_bits(from.word()?));
        let at = Time::from_nanos(from.word()?);
        let fits = |x: f64| x.is_finite() && x >= 0.0;
        let mean_ns = if count > 0.0 { sum_ns / count } else { 0.0 };
        if !fits(sum_ns) || !fits(count) || !fits(mean_ns) {
            return Err(BadState("a response time is not a number"));
        }
        Ok(Self { sum_ns, count, mean_ns, at })
    }
}

/// See the module's documentation.
pub struct LeastTime {
    decay: Nanos,
    /// By back-end.
    averages: Vec<Average>,
    /// Over all back-ends.
    all: Average,
    /// The index at which the next scan begins.
    next: usize,
}

impl LeastTime {
    /// With these parameters.
    #[must_use]
    pub fn new(params: &LeastTimeParams) -> Self {
        Self { decay: params.decay_s, averages: Vec::new(), all: Average::NONE, next: 0 }
    }

    #[inline]
    fn cost(&self, b: BackendId, view: &ClusterView, now: Time) -> f64 {
        let load = view.load(b);
        let mean_ns = match self.averages.get(b.index()) {
            Some(average) if average.count > 0.0 => average.mean_ns(self.decay, now),
            _ if load == 0 => 0.0,
            _ => self.all.mean_ns.max(1.0),
        };
        mean_ns * (f64::from(load) + 1.0) / f64::from(view.weight(b).steps())
    }
}

impl Policy for LeastTime {
    fn choose(&mut self, _: &Request, view: &ClusterView, now: Time) -> Decision {
        let (mut least, mut chosen) = (f64::INFINITY, None);
        let begin = if self.next < view.len() { self.next } else { 0 };
        for index in (begin..view.len()).chain(0..begin) {
            let b = BackendId::new(index);
            if view.is_eligible(b) {
                let cost = self.cost(b, view, now);
                if cost < least {
                    (least, chosen) = (cost, Some(b));
                }
            }
        }
        if let Some(b) = chosen {
            self.next = b.index() + 1;
        }
        assign_or_reject(chosen)
    }

    fn on_complete(&mut self, completion: &Completion, view: &ClusterView, now: Time) {
        if completion.outcome == Outcome::Completed {
            self.averages.resize(view.len(), Average::NONE);
            let rtt_ns = completion.response_time.as_nanos() as f64;
            self.averages[completion.backend.index()].add(rtt_ns, self.decay, now);
            self.all.add(rtt_ns, self.decay, now);
        }
    }

    fn on_membership(&mut self, backend: BackendId, change: Change, _: &ClusterView, _: Time) {
        // What comes back, or has this index next, is measured anew.
        if matches!(change, Change::Joined | Change::Left | Change::Health(Health::Down))
            && let Some(average) = self.averages.get_mut(backend.index())
        {
            *average = Average::NONE;
        }
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl SavesState for LeastTime {
    fn save(&self) -> Vec<u8> {
        let mut out = StateWriter::default();
        out.word(self.next as u64);
        self.all.save(&mut out);
        out.word(self.averages.len() as u64);
        self.averages.iter().for_each(|average| average.save(&mut out));
        out.finish()
    }

    fn restore(&mut self, saved: &[u8]) -> Result<(), BadState> {
        let mut from = StateReader::new(saved);
        let next = usize::from(u16::try_from(from.word()?).map_err(|_| BadState("a turn is above 65,535"))?);
        let all = Average::restored(&mut from)?;
        let averages = (0..from.count()?).map(|_| Average::restored(&mut from)).collect::<Result<_, _>>()?;
        from.finish()?;
        *self = Self { decay: self.decay, averages, all, next };
        Ok(())
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities = Capabilities::NONE.saves_state::<LeastTime>();

fn build(_: &BuildContext, params: &ParamSet) -> Built {
    Ok(Box::new(LeastTime::new(&LeastTimeParams::of(params))))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "least_time",
    aliases: &["least_response_time"],
    summary: "the lowest average response time times load, per unit of weight",
    source: "NGINX Plus (least_time last_byte)",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::ViewAndResponseTimes,
    weighted: true,
    params: LeastTimeParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;
    use crate::request::TargetId;
    use crate::weight::Weight;

    fn s(seconds: u64) -> Time {
        Time::ZERO + Nanos::from_secs(seconds)
    }

    fn answers(policy: &mut LeastTime, cluster: &Cluster, b: u16, ms: u64, now: Time) {
        let (backend, response_time) = (BackendId(b), Nanos::from_millis(ms));
        let outcome = Outcome::Completed;
        let completion = Completion::of(TargetId(0), backend, outcome, response_time);
        policy.on_complete(&completion, cluster, now);
        let failed = Completion { outcome: Outcome::Failed, response_time: Nanos::ZERO, ..completion };
        policy.on_complete(&failed, cluster, now);
    }

    fn choose(policy: &mut LeastTime, cluster: &Cluster, now: Time) -> u16 {
        match policy.choose(&Request::of(0, TargetId(0)), cluster, now) {
            Decision::Assign(b) => b.0,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn by_hand() {
        let mut p = LeastTime::new(&LeastTimeParams::default());
        let mut cluster = Cluster::new(3);
        // Nothing is known: in turn.
        assert_eq!([0; 4].map(|_| choose(&mut p, &cluster, s(0))), [0, 1, 2, 0]);
        answers(&mut p, &cluster, 0, 10, s(0));
        answers(&mut p, &cluster, 0, 20, s(0));
        answers(&mut p, &cluster, 1, 40, s(0));
        // Means of 15 and 40 ms; the third one has not answered.
        assert_eq!(choose(&mut p, &cluster, s(0)), 2);
        cluster.assign(BackendId(2));
        // It counts like the average of all, 23.3 ms, by 2: the first one until it has one request, 30 ms, and two, 45 ms.
        assert_eq!(choose(&mut p, &cluster, s(0)), 0);
        cluster.assign(BackendId(0));
        assert_eq!(choose(&mut p, &cluster, s(0)), 0);
        cluster.assign(BackendId(0));
        assert_eq!(choose(&mut p, &cluster, s(0)), 1);
        cluster.set_weight(BackendId(2), Weight::new(2.0).unwrap());
        assert_eq!(choose(&mut p, &cluster, s(0)), 2, "23.3 ms per unit of weight");
    }

    #[test]
    fn the_average_follows_and_fades() {
        let mut p = LeastTime::new(&LeastTimeParams::default());
        let cluster = Cluster::new(2);
        answers(&mut p, &cluster, 0, 100, s(0));
        answers(&mut p, &cluster, 0, 10, s(10));
        // (100 / e + 10) / (1 / e + 1) = 34.2
        assert!((p.averages[0].mean_ns / 1e6 - 34.205).abs() < 0.001, "{}", p.averages[0].mean_ns);
        answers(&mut p, &cluster, 1, 5, s(39));
        assert_eq!(choose(&mut p, &cluster, s(39)), 1, "34.2 / 4 is above 5");
        answers(&mut p, &cluster, 1, 5, s(40));
        assert_eq!(choose(&mut p, &cluster, s(40)), 0, "34.2 / 8 is below 5");
        p.on_membership(BackendId(0), Change::Left, &cluster, s(40));
        assert!(p.averages[0].count <= 0.0);
    }

    #[test]
    fn restored_it_decides_as_before() {
        let mut p = LeastTime::new(&LeastTimeParams::default());
        let mut cluster = Cluster::new(4);
        (0..40).for_each(|n| answers(&mut p, &cluster, (n % 3) as u16, n * 7 % 31, s(n)));
        let mut restored = LeastTime::new(&LeastTimeParams::default());
        restored.restore(&p.save()).unwrap();
        for n in 40..200 {
            let b = choose(&mut p, &cluster, s(n));
            assert_eq!(choose(&mut restored, &cluster, s(n)), b);
            cluster.assign(BackendId(b));
            answers(&mut p, &cluster, b, n * 5 % 23, s(n));
            answers(&mut restored, &cluster, b, n * 5 % 23, s(n));
        }
        let mut damaged = p.save();
        damaged[8..16].copy_from_slice(&f64::NAN.to_bits().to_le_bytes());
        assert!(restored.restore(&damaged).is_err());
    }
}
