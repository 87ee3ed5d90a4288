//! Round robin: the back-ends in turn; with weights, smoothly in proportion to them.
//!
//! Citation: Nagle, "On packet switches with infinite storage", RFC 970 (1985), section "Fair queuing"; the smooth
//! weighted form is the one nginx has used since 1.3.1 (2012).
//!
//! ```text
//! equal weights:  n <- next back-end after the last one chosen
//! else:           for each back-end b: credit[b] += weight[b]
//!                 n <- back-end with most credit; credit[n] -= sum of weights
//! send r to n
//! ```

use crate::capability::{BadState, SavesState};
use crate::cluster::{BackendId, ClusterView};
use crate::decision::{Decision, assign_or_reject};
use crate::load_use::LoadUse;
use crate::params::ParamSet;
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::Request;
use crate::saved::{StateReader, StateWriter};
use crate::time::Time;

/// See the module's documentation.
#[derive(Default)]
pub struct RoundRobin {
    next: usize,
    credit: Vec<i64>,
}

impl RoundRobin {
    fn in_turn(&mut self, view: &ClusterView) -> Option<BackendId> {
        let n = view.len();
        let b = (0..n).map(|step| BackendId::new((self.next + step) % n)).find(|&b| view.is_eligible(b))?;
        self.next = b.index() + 1;
        Some(b)
    }

    fn smoothly(&mut self, view: &ClusterView) -> Option<BackendId> {
        self.credit.resize(view.len(), 0);
        let mut best: Option<BackendId> = None;
        for b in view.eligible_ids() {
            self.credit[b.index()] += i64::from(view.weight(b).steps());
            if best.is_none_or(|m| self.credit[b.index()] > self.credit[m.index()]) {
                best = Some(b);
            }
        }
        self.credit[best?.index()] -= view.eligible_weight_steps() as i64;
        best
    }
}

impl Policy for RoundRobin {
    fn choose(&mut self, _: &Request, view: &ClusterView, _: Time) -> Decision {
        assign_or_reject(if view.is_uniform() { self.in_turn(view) } else { self.smoothly(view) })
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl SavesState for RoundRobin {
    fn save(&self) -> Vec<u8> {
        let mut out = StateWriter::default();
        out.words([self.next as u64, self.credit.len() as u64]);
        out.words(self.credit.iter().map(|&credit| credit.cast_unsigned()));
        out.finish()
    }

    fn restore(&mut self, saved: &[u8]) -> Result<(), BadState> {
        let mut from = StateReader::new(saved);
        let next = usize::from(u16::try_from(from.word()?).map_err(|_| BadState("a turn is above 65,535"))?);
        let credit =
            (0..from.count()?).map(|_| from.word().map(u64::cast_signed)).collect::<Result<_, _>>()?;
        from.finish()?;
        *self = Self { next, credit };
        Ok(())
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities = Capabilities::NONE.saves_state::<RoundRobin>();

fn build(_: &BuildContext, _: &ParamSet) -> Built {
    Ok(Box::<RoundRobin>::default())
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "round_robin",
    aliases: &["rr"],
    summary: "the back-ends in turn, in proportion to weight",
    source: "RFC 970; smooth weights as in nginx",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::None,
    weighted: true,
    params: &[],
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Health};
    use crate::request::TargetId;
    use crate::weight::Weight;

    fn turns(cluster: &Cluster, count: usize) -> Vec<u16> {
        let mut policy = RoundRobin::default();
        (0..count)
            .map(|_| match policy.choose(&Request::of(0, TargetId(0)), cluster, Time::ZERO) {
                Decision::Assign(b) => b.0,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn takes_turns_and_skips_the_dead() {
        let mut cluster = Cluster::new(3);
        assert_eq!(turns(&cluster, 4), [0, 1, 2, 0]);
        cluster.set_health(BackendId(1), Health::Down);
        assert_eq!(turns(&cluster, 4), [0, 2, 0, 2]);
    }

    #[test]
    fn weights_interleave_smoothly() {
        let mut cluster = Cluster::new(3);
        cluster.set_weight(BackendId(0), Weight::new(5.0).unwrap());
        // Weights 5, 1, 1: the sequence that makes the longest run of one back-end shortest.
        assert_eq!(turns(&cluster, 7), [0, 0, 1, 0, 2, 0, 0]);
    }
}
