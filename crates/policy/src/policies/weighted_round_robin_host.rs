//! Weighted round robin by what is measured at the back-ends: connections, the answer to a small request, and four host metrics.
//!
//! Citation: Hyun, Jung, Lee and Maeng, "Content sniffer based load distribution in a web server cluster", IEICE Transactions on
//! Information and Systems 2003, section 4.1: the WRR variants of table 2, and equation (1). Its model is IBM's Network Dispatcher
//! (Hunt et al., Computer Networks 30, 1998).
//!
//! ```text
//! every `interval_s`, from what was measured of each back-end k:
//!     L[k] <- f_i * connections + f_p * probe time * connections per second
//!           + f_h * (pending + f_io * at disk + serving static + f_dreq * dynamic_s / static_s * serving dynamic)
//!     weights as in csld:  W[k] <- W_max - (L[k] - min L), differences reduced in proportion to at most t_diff
//! for each connection:  the next in weighted round robin
//! ```
//!
//! Table 2: `wrr_i` has an `interval_s` of 0.2, `wrr_a` of 0.5, `wrr_b` of 1; what measuring costs a back-end (0, 5 or 10 ms of CPU
//! time) is the back-ends' affair. `wrr_p` is `interval_s=0.5,f_i=0,f_p=1,f_h=0`. Without metrics it is round robin.

use crate::capability::{ShowsState, TakesMetrics};
use crate::cluster::{BackendId, Change, ClusterView, Health};
use crate::decision::{Decision, PolicyTable, assign_or_reject};
use crate::estimator::aggregate;
use crate::load_use::LoadUse;
use crate::params::{ParamSet, Params as _};
use crate::policy::{Capabilities, Policy};
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::Request;
use crate::sniffed::HostMetrics;
use crate::time::{Nanos, Time};
use crate::weighted_turn::WeightedTurn;

crate::params! {
    /// Parameters of weighted round robin by host metrics; the paper's `wrr_a`.
    pub struct WeightedRoundRobinHostParams {
        /// The time between two measurements.
        interval_s: Nanos = Nanos::from_millis(500), 0.001..=3600.0, "s";
        /// Weight of the input metric: connections.
        f_i: f64 = 0.1, 0.0..=100.0, "";
        /// Weight of the forward metric: the time of a small request, times the rate of connections.
        f_p: f64 = 0.45, 0.0..=100.0, "";
        /// Weight of the host metrics.
        f_h: f64 = 0.45, 0.0..=100.0, "";
        /// Weight of processes that wait for the disk, among the host metrics.
        f_io: f64 = 1.0, 0.0..=100.0, "";
        /// Weight of processes that compute answers, among the host metrics.
        f_dreq: f64 = 0.1, 0.0..=100.0, "";
        /// Mean CPU time of a static request.
        static_s: Nanos = Nanos::from_micros(500), 0.000000001..=3600.0, "s";
        /// Mean CPU time of a dynamic request.
        dynamic_s: Nanos = Nanos::from_millis(30), 0.000000001..=3600.0, "s";
        /// The most by which numbers of connections differ in an interval, as a multiple of the mean number.
        t_diff: f64 = 1.0, 0.0..=1000.0, "";
        /// Whether the turn begins again with each measurement: 1 for yes.
        restart: u32 = 1, 0..=1, "";
        /// `W_max`: the weight of the back-end with the least load.
        most_weight: u32 = 65_535, 1..=1_000_000_000, "";
    }
}

/// See the module's documentation.
pub struct WeightedRoundRobinHost {
    params: WeightedRoundRobinHostParams,
    turn: WeightedTurn,
    metrics: Vec<Option<HostMetrics>>,
    /// Connections of the interval under way, by back-end.
    assigned: Vec<u32>,
    began: Time,
    updates: u64,
}

impl WeightedRoundRobinHost {
    /// Without metrics.
    #[must_use]
    pub fn new(params: WeightedRoundRobinHostParams) -> Self {
        let (metrics, assigned) = (Vec::new(), Vec::new());
        Self { params, turn: WeightedTurn::default(), metrics, assigned, began: Time::ZERO, updates: 0 }
    }

    /// Equation (1).
    fn load(&self, b: BackendId, connections: u32, interval_s: f64) -> f64 {
        let p = &self.params;
        let Some(metrics) = self.metrics.get(b.index()).copied().flatten() else { return 0.0 };
        let assigned = self.assigned.get(b.index()).copied().unwrap_or(0);
        let rate = if interval_s > 0.0 { f64::from(assigned) / interval_s } else { 0.0 };
        let probe_s = metrics.probe_time.map_or(0.0, Nanos::as_secs_f64);
        let dynamic = p.dynamic_s.as_secs_f64() / p.static_s.as_secs_f64() * p.f_dreq;
        let host = f64::from(metrics.pending)
            + f64::from(metrics.at_disk) * p.f_io
            + f64::from(metrics.serving_static)
            + f64::from(metrics.serving_dynamic) * dynamic;
        f64::from(connections) * p.f_i + probe_s * rate * p.f_p + host * p.f_h
    }

    /// Sets the weights from the metrics of all back-ends that take requests.
    fn update(&mut self, view: &ClusterView, now: Time) {
        let interval_s = now.since(self.began).as_secs_f64();
        let eligible: Vec<BackendId> = view.eligible_ids().collect();
        let of = |&b: &BackendId| self.load(b, view.load(b), interval_s);
        let loads: Vec<f64> = eligible.iter().map(of).collect();
        let connections: u32 = self.assigned.iter().sum();
        let t_diff = self.params.t_diff * f64::from(connections) / eligible.len().max(1) as f64;
        let most = self.params.most_weight;
        let mut weights = vec![most; view.len()];
        for (b, weight) in eligible.iter().zip(aggregate::weights(&loads, t_diff, most, 1.0)) {
            weights[b.index()] = weight;
        }
        self.turn.set(weights, self.params.restart == 1);
        self.metrics.fill(None);
        self.assigned.fill(0);
        (self.began, self.updates) = (now, self.updates + 1);
    }
}

impl Policy for WeightedRoundRobinHost {
    #[inline]
    fn choose(&mut self, _: &Request, view: &ClusterView, _: Time) -> Decision {
        assign_or_reject(self.turn.next(view).or_else(|| view.least_loaded()))
    }

    fn on_assign(&mut self, _: &Request, backend: BackendId, view: &ClusterView, _: Time) {
        if self.assigned.len() < view.len() {
            self.assigned.resize(view.len(), 0);
        }
        self.assigned[backend.index()] += 1;
    }

    fn on_membership(&mut self, backend: BackendId, change: Change, view: &ClusterView, _: Time) {
        // Metrics of who is gone say nothing of who comes.
        if matches!(change, Change::Joined | Change::Left | Change::Health(Health::Down)) {
            self.metrics.resize(view.len(), None);
            self.metrics[backend.index()] = None;
        }
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl TakesMetrics for WeightedRoundRobinHost {
    fn metrics_interval(&self) -> Nanos {
        self.params.interval_s
    }

    fn on_metrics(&mut self, metrics: &HostMetrics, view: &ClusterView, now: Time) {
        self.metrics.resize(view.len(), None);
        let Some(known) = self.metrics.get_mut(metrics.backend.index()) else { return };
        // A second measurement before all others: one of them is silent, and is not waited for.
        let again = known.is_some();
        if again {
            self.update(view, now);
        }
        self.metrics[metrics.backend.index()] = Some(*metrics);
        if view.eligible_ids().all(|b| self.metrics[b.index()].is_some()) {
            self.update(view, now);
        }
    }
}

impl ShowsState for WeightedRoundRobinHost {
    fn stats(&self) -> Vec<(&'static str, f64)> {
        vec![("weight_updates", self.updates as f64)]
    }

    fn tables(&self) -> Vec<PolicyTable> {
        vec![self.turn.table()]
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities =
    Capabilities::NONE.takes_metrics::<WeightedRoundRobinHost>().shows_state::<WeightedRoundRobinHost>();

fn build(_: &BuildContext, params: &ParamSet) -> Built {
    Ok(Box::new(WeightedRoundRobinHost::new(WeightedRoundRobinHostParams::of(params))))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "weighted_round_robin_host",
    aliases: &[],
    summary: "round robin by weights from connections, a small request's time, and metrics measured at back-ends",
    source: "Hyun et al., IEICE 2003, section 4.1, table 2 and equation (1)",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::View,
    weighted: true,
    params: WeightedRoundRobinHostParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;
    use crate::core::{AdmissionControl, Core};
    use crate::request::TargetId;

    const QUIET: HostMetrics = HostMetrics {
        backend: BackendId(0),
        probe_time: None,
        pending: 0,
        at_disk: 0,
        serving_static: 0,
        serving_dynamic: 0,
    };

    fn core(params: WeightedRoundRobinHostParams, backends: usize) -> Core {
        let policy = Box::new(WeightedRoundRobinHost::new(params));
        Core::new(policy, Cluster::new(backends), AdmissionControl::UNLIMITED)
    }

    fn s(seconds: u64) -> Time {
        Time::ZERO + Nanos::from_secs(seconds)
    }

    fn offer(core: &mut Core, count: u64, now: Time) -> Vec<u16> {
        (0..count).map(|n| core.offer(&Request::of(n, TargetId(0)), now).backend().unwrap().0).collect()
    }

    #[test]
    fn equation_1_by_hand() {
        let mut policy = WeightedRoundRobinHost::new(WeightedRoundRobinHostParams::default());
        let mut cluster = Cluster::new(1);
        (0..4).for_each(|_| cluster.assign(BackendId(0)));
        let metrics = HostMetrics {
            probe_time: Some(Nanos::from_millis(20)),
            pending: 3,
            at_disk: 2,
            serving_static: 5,
            serving_dynamic: 7,
            ..QUIET
        };
        policy.metrics = vec![Some(metrics)];
        policy.assigned = vec![50];
        // 4 * 0.1 + 0.02 * 50/0.5 * 0.45 + (3 + 2 + 5 + 7 * 60 * 0.1) * 0.45
        let load = policy.load(BackendId(0), cluster.load(BackendId(0)), 0.5);
        assert!((load - (0.4 + 0.9 + 52.0 * 0.45)).abs() < 1e-9, "{load}");
    }

    #[test]
    fn who_has_less_gets_as_many_more() {
        let mut core = core(WeightedRoundRobinHostParams::default(), 2);
        // No metrics: in turn.
        assert_eq!(offer(&mut core, 20, s(0)), [0, 1].repeat(10));
        let busy = HostMetrics { backend: BackendId(1), pending: 6, ..QUIET };
        core.host_metrics(&QUIET, s(1));
        core.host_metrics(&busy, s(1));
        // 6 * 0.45 = 2.7, so 3 more for back-end 0; the same connections cancel out.
        assert_eq!(offer(&mut core, 8, s(1)), [0, 0, 0, 0, 1, 0, 1, 0]);
        // No more than the mean number in an interval, 4 of 8: 4 of 45 units of load.
        core.host_metrics(&HostMetrics { pending: 100, ..busy }, s(2));
        core.host_metrics(&QUIET, s(2));
        assert_eq!(offer(&mut core, 6, s(2)), [0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_silent_back_end_is_not_waited_for() {
        let mut core = core(WeightedRoundRobinHostParams::default(), 3);
        offer(&mut core, 30, s(0));
        let busy = |b| HostMetrics { backend: BackendId(b), pending: 20, ..QUIET };
        core.host_metrics(&busy(0), s(1));
        core.host_metrics(&busy(1), s(1));
        core.host_metrics(&busy(0), s(2));
        // Nothing is known of the third: it counts as without load.
        assert_eq!(offer(&mut core, 4, s(2)), [2, 2, 2, 2]);
    }
}
