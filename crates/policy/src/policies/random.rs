//! Random: each request goes to a back-end drawn at random, in proportion to weight.
//!
//! Citation: Eager, Lazowska, Zahorjan, "Adaptive load sharing in homogeneous distributed systems", IEEE TSE 1986
//! (its random policy).
//!
//! ```text
//! n <- back-end drawn with probability weight[n] / sum of weights
//! send r to n
//! ```

use crate::cluster::{BackendId, ClusterView};
use crate::decision::{Decision, assign_or_reject};
use crate::load_use::LoadUse;
use crate::params::ParamSet;
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::Request;
use crate::rng::Rng;
use crate::time::Time;

/// Stream of the run's seed that this policy draws from.
const STREAM: u64 = 0x7261_6E64;

/// See the module's documentation.
pub struct Random {
    rng: Rng,
    /// Back-ends that take requests with the running sum of their weights, for the view of `generation`.
    cumulative: Vec<(u64, BackendId)>,
    generation: Option<u64>,
}

impl Random {
    /// Draws random numbers from the stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_stream(seed, STREAM)
    }

    /// Draws them from another stream: for policies that fall back on this one.
    pub(crate) fn with_stream(seed: u64, stream: u64) -> Self {
        Self { rng: Rng::new(seed, stream), cumulative: Vec::new(), generation: None }
    }

    /// The back-end of a request; `None` when none takes requests.
    pub(crate) fn draw(&mut self, view: &ClusterView) -> Option<BackendId> {
        if self.generation != Some(view.generation()) {
            self.refresh(view);
        }
        let &(total, _) = self.cumulative.last()?;
        let point = self.rng.below(total);
        let at = self.cumulative.partition_point(|&(sum, _)| sum <= point);
        self.cumulative.get(at).map(|&(_, b)| b)
    }

    fn refresh(&mut self, view: &ClusterView) {
        self.cumulative.clear();
        let mut sum = 0;
        for b in view.ids_for_tables() {
            sum += u64::from(view.weight(b).steps());
            self.cumulative.push((sum, b));
        }
        self.generation = Some(view.generation());
    }
}

impl Policy for Random {
    fn choose(&mut self, _: &Request, view: &ClusterView, _: Time) -> Decision {
        assign_or_reject(self.draw(view))
    }
}

fn build(context: &BuildContext, _: &ParamSet) -> Built {
    Ok(Box::new(Random::new(context.seed)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "random",
    aliases: &["rand"],
    summary: "a back-end drawn at random, in proportion to weight",
    source: "Eager, Lazowska, Zahorjan 1986",
    capabilities: &Capabilities::NONE,
    load_use: LoadUse::None,
    weighted: true,
    params: &[],
    build,
};
