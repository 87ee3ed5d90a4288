//! SITA-E: intervals of sizes with the same load each, set once, from the whole workload.
//!
//! Citation: Harchol-Balter, Crovella and Murta, "On choosing a task assignment policy for a distributed server system",
//! Journal of Parallel and Distributed Computing 1999 (size interval task assignment with equal load); the off-line
//! baseline of AdaptLoad.
//!
//! ```text
//! before the first request: cut the sizes of all requests to come into intervals with 1/N of the bytes each
//! send r to the back-end whose interval holds its size; without a size, to the one with the shortest queue
//! ```
//!
//! Where the workload is not known beforehand (live), the first `training` requests of known size take its place.

use crate::capability::ShowsState;
use crate::cluster::{BackendId, ClusterView};
use crate::decision::{Decision, PolicyTable, assign_or_reject};
use crate::load_use::LoadUse;
use crate::params::{ParamSet, Params as _};
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::Request;
use crate::size_based::{SizeBased, Sizing};
use crate::time::Time;

/// Stream of the run's seed that this policy draws from.
const STREAM: u64 = 0x7369_7465;

crate::params! {
    /// Parameters of SITA-E.
    pub struct SitaEParams {
        /// Requests of known size by which intervals are set where the workload is not known beforehand.
        training: u64 = 262_144, 1..=1_073_741_824, "requests";
        /// Bins of the histogram.
        bins: u32 = 2048, 1..=65_535, "";
        /// Each bin is this many times as wide as the one before.
        base: f64 = 1.02, 1.001..=16.0, "";
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct SitaE {
    sizes: SizeBased,
    trained: bool,
}

impl SitaE {
    /// With the workload as pairs of size in bytes and number of requests, if it is known; draws random
    /// numbers from the stream of `seed`.
    #[must_use]
    pub fn new(params: &SitaEParams, workload: Option<&[(u64, u64)]>, seed: u64) -> Self {
        let SitaEParams { training, bins, base } = *params;
        let sizing = Sizing { batch: training, alpha: 0.0, bins, base, connection_bytes: 0 };
        let mut sizes = SizeBased::new(&sizing, seed, STREAM);
        if let Some(workload) = workload {
            sizes.learn(workload.iter().copied(), Time::ZERO);
        }
        Self { sizes, trained: workload.is_some() }
    }
}

impl Policy for SitaE {
    #[inline]
    fn choose(&mut self, request: &Request, view: &ClusterView, now: Time) -> Decision {
        assign_or_reject(self.sizes.choose(request, view, now))
    }

    #[inline]
    fn on_assign(&mut self, request: &Request, _: BackendId, _: &ClusterView, now: Time) {
        if !self.trained {
            // A batch of empty documents sets no intervals.
            self.trained = self.sizes.count(request, now) && self.sizes.intervals().is_set();
        }
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl ShowsState for SitaE {
    fn stats(&self) -> Vec<(&'static str, f64)> {
        self.sizes.stats()
    }

    fn tables(&self) -> Vec<PolicyTable> {
        self.sizes.tables()
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities =
    Capabilities::NONE.shows_state::<SitaE>().needs_content("the size of what a request asks for");

fn build(context: &BuildContext, params: &ParamSet) -> Built {
    let params = SitaEParams::of(params);
    Ok(Box::new(SitaE::new(&params, context.workload.as_deref(), context.seed)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "sita_e",
    aliases: &["sita"],
    summary: "intervals of sizes with the same load each, set once from the whole workload",
    source: "Harchol-Balter, Crovella and Murta 1999",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::View,
    weighted: true,
    params: SitaEParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;
    use crate::request::TargetId;

    fn choose(policy: &mut SitaE, cluster: &Cluster, number: u64, size_bytes: u64) -> u16 {
        let request = Request { size_bytes: Some(size_bytes), ..Request::of(number, TargetId(number)) };
        let Decision::Assign(b) = policy.choose(&request, cluster, Time::ZERO) else { panic!("rejected") };
        policy.on_assign(&request, b, cluster, Time::ZERO);
        b.0
    }

    #[test]
    fn a_known_workload_has_its_intervals_from_the_first_request_on() {
        let (params, cluster) = (SitaEParams::default(), Cluster::new(2));
        let mut policy = SitaE::new(&params, Some(&[(10, 100), (1_000, 1)]), 1);
        let got: Vec<u16> =
            (0..6).map(|n| choose(&mut policy, &cluster, n, [10, 1_000][n as usize % 2])).collect();
        assert_eq!(got, [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn an_unknown_one_is_learnt_once() {
        let (params, cluster) = (SitaEParams { training: 100, ..SitaEParams::default() }, Cluster::new(2));
        let mut policy = SitaE::new(&params, None, 1);
        for n in 0..100 {
            choose(&mut policy, &cluster, n, if n == 0 { 990 } else { 10 });
        }
        let boundaries = policy.sizes.intervals().boundaries().to_vec();
        for n in 100..400 {
            choose(&mut policy, &cluster, n, 1 << 20);
        }
        assert_eq!(policy.sizes.intervals().boundaries(), boundaries);
    }

    #[test]
    fn empty_documents_teach_nothing() {
        let (params, cluster) = (SitaEParams { training: 64, ..SitaEParams::default() }, Cluster::new(2));
        let mut policy = SitaE::new(&params, None, 1);
        (0..64).for_each(|n| {
            choose(&mut policy, &cluster, n, 0);
        });
        assert!(!policy.trained);
        (64..128).for_each(|n| {
            choose(&mut policy, &cluster, n, n);
        });
        assert!(policy.trained && policy.sizes.intervals().is_set());
    }
}
