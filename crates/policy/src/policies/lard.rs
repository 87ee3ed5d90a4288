//! Basic LARD: each target has one back-end, which changes only on a significant imbalance of load.
//!
//! Citation: Pai et al., "Locality-aware request distribution in cluster-based network servers", ASPLOS 1998,
//! section 2.4, figure 2.
//!
//! ```text
//! if server[r.target] = null
//!     n, server[r.target] <- least loaded back-end
//! else
//!     n <- server[r.target]
//!     if (n.load > T_high and some back-end has load < T_low) or n.load >= 2 * T_high
//!         n, server[r.target] <- least loaded back-end
//! send r to n
//! ```
//!
//! Load is the number of requests in progress per unit of weight. Several least loaded back-ends are taken in turn, and a target
//! that is on one of them stays. The paper leaves that open: in a busy cluster ties are rare. In an idle one nearly all back-ends
//! tie, and if one of them were always preferred, that one's memory would have to hold nearly all targets.
//!
//! A back-end that takes no new requests loses its targets: they are assigned as if for the first time (section 2.6), as
//! are targets that fell out of the LRU map.

use crate::capability::{BadState, SavesState, ShowsState};
use crate::cluster::{BackendId, Change, ClusterView, Health};
use crate::decision::Decision;
use crate::load_use::LoadUse;
use crate::lru_map::LruMap;
use crate::params::{ParamError, ParamSet, Params as _};
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::{Request, TargetId};
use crate::saved::{StateReader, StateWriter};
use crate::thresholds::Thresholds;
use crate::time::Time;
use crate::turn::Turn;
use crate::weight::RelativeLoad;

crate::params! {
    /// Parameters of basic LARD; defaults from section 2.4.
    pub struct LardParams {
        /// T_low: load below which a back-end is likely to have idle resources.
        t_low: u32 = 25, 1..=1000000, "requests";
        /// T_high: load above which a back-end is likely to delay requests substantially; above t_low.
        t_high: u32 = 65, 2..=1000000, "requests", above t_low "LARD, section 2.4";
        /// Targets whose assignment is remembered; the least recently requested is forgotten.
        max_targets: u64 = 1_000_000, 1..=4000000000, "targets";
    }
}

/// The test for imbalance in figures 2 and 3.
#[derive(Debug, Clone, Copy)]
pub(super) struct Imbalance {
    low: RelativeLoad,
    high: RelativeLoad,
    twice_high: RelativeLoad,
}

impl Imbalance {
    /// The test with these thresholds.
    pub(super) fn new(thresholds: Thresholds) -> Self {
        let Thresholds { t_low, t_high } = thresholds;
        Self {
            low: RelativeLoad::threshold(t_low),
            high: RelativeLoad::threshold(t_high),
            twice_high: RelativeLoad::threshold(t_high.saturating_mul(2)),
        }
    }

    /// Whether the loads justify moving a target away from `n`.
    #[inline]
    pub(super) fn is_significant(self, n: BackendId, view: &ClusterView) -> bool {
        let load = view.relative_load(n);
        (load > self.high && view.any_below(self.low)) || load >= self.twice_high
    }
}

/// See the module's documentation.
pub struct Lard {
    imbalance: Imbalance,
    server: LruMap<Option<BackendId>>,
    turn: Turn,
    assignments: u64,
    reassignments: u64,
    forgotten: u64,
}

impl Lard {
    /// With these parameters.
    ///
    /// # Errors
    /// Unless `t_low < t_high` and all are within their ranges.
    pub fn new(params: &LardParams) -> Result<Self, ParamError> {
        params.to_set()?;
        Ok(Self {
            imbalance: Imbalance::new(Thresholds { t_low: params.t_low, t_high: params.t_high }),
            server: LruMap::new(params.max_targets as usize),
            turn: Turn::default(),
            assignments: 0,
            reassignments: 0,
            forgotten: 0,
        })
    }
}

impl Policy for Lard {
    fn choose(&mut self, request: &Request, view: &ClusterView, _: Time) -> Decision {
        if view.eligible() == 0 {
            return Decision::Reject;
        }
        let (server, forgotten) = self.server.get_or_insert_with(request.target, || None);
        self.forgotten += u64::from(forgotten.is_some());
        let n = match *server {
            Some(n) if view.is_eligible(n) => {
                if !self.imbalance.is_significant(n, view) {
                    return Decision::Assign(n);
                }
                let least = self.turn.next_unless(n, view).unwrap_or(n);
                self.reassignments += u64::from(least != n);
                least
            }
            _ => {
                self.assignments += 1;
                let Some(least) = self.turn.next(view) else {
                    return Decision::Reject;
                };
                least
            }
        };
        *server = Some(n);
        Decision::Assign(n)
    }

    fn on_membership(&mut self, backend: BackendId, change: Change, _: &ClusterView, _: Time) {
        if change == Change::Health(Health::Down) {
            self.server.retain(|_, server| *server != Some(backend));
        }
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl ShowsState for Lard {
    fn server_set(&self, target: TargetId) -> Vec<BackendId> {
        self.server.peek(target).copied().flatten().into_iter().collect()
    }

    fn tracked_targets(&self) -> usize {
        self.server.len()
    }

    fn stats(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("targets", self.server.len() as f64),
            ("assignments", self.assignments as f64),
            ("reassignments", self.reassignments as f64),
            ("forgotten", self.forgotten as f64),
        ]
    }
}

impl SavesState for Lard {
    fn save(&self) -> Vec<u8> {
        let mut out = StateWriter::default();
        out.words([self.turn.word(), self.assignments, self.reassignments, self.forgotten]);
        // "No back-end" is written as a number above all indices.
        self.server.save(&mut out, |server, out| out.word(server.map_or(NO_BACKEND, |b| u64::from(b.0))));
        out.finish()
    }

    fn restore(&mut self, saved: &[u8]) -> Result<(), BadState> {
        let mut from = StateReader::new(saved);
        let turn = Turn::of_word(from.word()?);
        let (assignments, reassignments, forgotten) = (from.word()?, from.word()?, from.word()?);
        let server = self.server.restored(&mut from, |from| match from.word()? {
            NO_BACKEND => Ok(None),
            b => u16::try_from(b)
                .map(|b| Some(BackendId(b)))
                .map_err(|_| BadState("it names a back-end above 65,535")),
        })?;
        from.finish()?;
        *self = Self { imbalance: self.imbalance, server, turn, assignments, reassignments, forgotten };
        Ok(())
    }
}

/// Sentinel in saved state: no back-end.
const NO_BACKEND: u64 = u64::MAX;

/// Its capabilities.
static CAPABILITIES: Capabilities = Capabilities::NONE
    .shows_state::<Lard>()
    .saves_state::<Lard>()
    .needs_content("the target that a request asks for");

fn build(context: &BuildContext, params: &ParamSet) -> Built {
    let mut policy = Lard::new(&LardParams::of(params))?;
    policy.server.reseed(context.table_seed);
    Ok(Box::new(policy))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "lard",
    aliases: &[],
    summary: "each target on one back-end, moved only on a significant imbalance",
    source: "Pai et al., ASPLOS 1998, section 2.4",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::View,
    weighted: true,
    params: LardParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;

    const A: TargetId = TargetId(1);

    fn set_load(cluster: &mut Cluster, loads: &[u32]) {
        for (i, &wanted) in loads.iter().enumerate() {
            let b = BackendId::new(i);
            while cluster.load(b) < wanted {
                cluster.assign(b);
            }
            while cluster.load(b) > wanted {
                cluster.complete(b);
            }
        }
    }

    /// One row: target A is on back-end `on`; with these loads, the next request goes to `expected`.
    fn row(loads: &[u32], on: u16, expected: u16) {
        let mut cluster = Cluster::new(loads.len());
        let mut lard = Lard::new(&LardParams { t_low: 2, t_high: 5, ..LardParams::default() }).unwrap();
        let mut choose = |c: &Cluster| lard.choose(&Request::of(0, A), c, Time::ZERO);
        let mut first = vec![1; loads.len()];
        first[usize::from(on)] = 0;
        set_load(&mut cluster, &first);
        assert_eq!(choose(&cluster), Decision::Assign(BackendId(on)));
        set_load(&mut cluster, loads);
        assert_eq!(choose(&cluster), Decision::Assign(BackendId(expected)), "{loads:?}");
        // The move, if any, is remembered: without an imbalance the target stays there.
        set_load(&mut cluster, &vec![3; loads.len()]);
        assert_eq!(choose(&cluster), Decision::Assign(BackendId(expected)), "after {loads:?}");
    }

    /// Worked by hand from figure 2 with `T_low` = 2, `T_high` = 5.
    #[test]
    fn decision_table() {
        row(&[0, 0, 0], 1, 1); // no load: stays, although 0 ties
        row(&[1, 5, 1], 1, 1); // 5 is not > T_high
        row(&[1, 6, 1], 1, 2); // 6 > T_high and 1 < T_low: to the least loaded, of which 2 follows 1
        row(&[1, 1, 6], 2, 0); // and 0 follows 2
        row(&[2, 6, 1], 1, 2); // to the least loaded
        row(&[2, 6, 2], 1, 1); // 2 is not < T_low
        row(&[2, 9, 2], 1, 1); // 9 < 2 T_high and nobody below T_low
        row(&[3, 10, 2], 1, 2); // 10 >= 2 T_high moves without anybody below T_low
        row(&[10, 10, 10], 1, 1); // all equal and at 2 T_high: it is among the least loaded itself
        row(&[9, 10, 11], 2, 0); // 11 >= 2 T_high
        row(&[11, 12, 10], 2, 2); // moves "to the least loaded", which is itself
        row(&[1, 9, 4], 2, 2); // another's overload does not matter to this target
    }

    #[test]
    fn first_assignment_goes_to_the_least_loaded() {
        let mut cluster = Cluster::new(3);
        set_load(&mut cluster, &[2, 1, 1]);
        let mut lard = Lard::new(&LardParams::default()).unwrap();
        let decision = lard.choose(&Request::of(0, A), &cluster, Time::ZERO);
        assert_eq!(decision, Decision::Assign(BackendId(1)));
    }

    /// Known targets take no turn.
    #[test]
    fn an_idle_cluster_gets_targets_in_turn() {
        let cluster = Cluster::new(3);
        let mut lard = Lard::new(&LardParams::default()).unwrap();
        let mut choose = |target| lard.choose(&Request::of(0, TargetId(target)), &cluster, Time::ZERO);
        for (target, expected) in [(0, 0), (1, 1), (0, 0), (2, 2), (3, 0), (1, 1), (4, 1)] {
            assert_eq!(choose(target), Decision::Assign(BackendId(expected)), "{target}");
        }
    }

    #[test]
    fn weights_scale_the_thresholds() {
        let mut cluster = Cluster::new(2);
        cluster.set_weight(BackendId(0), crate::weight::Weight::new(2.0).unwrap());
        let mut lard = Lard::new(&LardParams { t_low: 2, t_high: 5, ..LardParams::default() }).unwrap();
        let mut choose = |c: &Cluster| lard.choose(&Request::of(0, A), c, Time::ZERO);
        assert_eq!(choose(&cluster), Decision::Assign(BackendId(0)));
        set_load(&mut cluster, &[10, 0]);
        assert_eq!(choose(&cluster), Decision::Assign(BackendId(0)), "10 on weight 2 is 5, not above T_high");
        set_load(&mut cluster, &[11, 0]);
        assert_eq!(choose(&cluster), Decision::Assign(BackendId(1)));
    }

    #[test]
    fn a_failed_backend_forgets_its_targets_even_when_it_returns() {
        let mut cluster = Cluster::new(2);
        let mut lard = Lard::new(&LardParams::default()).unwrap();
        let b = BackendId(0);
        assert_eq!(lard.choose(&Request::of(0, A), &cluster, Time::ZERO), Decision::Assign(b));
        cluster.set_health(b, Health::Down);
        lard.on_membership(b, Change::Health(Health::Down), &cluster, Time::ZERO);
        cluster.set_health(b, Health::Up);
        cluster.assign(b);
        assert_eq!(lard.choose(&Request::of(1, A), &cluster, Time::ZERO), Decision::Assign(BackendId(1)));
    }

    #[test]
    fn a_draining_backend_hands_its_targets_over_as_they_are_requested() {
        let mut cluster = Cluster::new(2);
        let mut lard = Lard::new(&LardParams::default()).unwrap();
        lard.choose(&Request::of(0, A), &cluster, Time::ZERO);
        cluster.set_health(BackendId(0), Health::Draining);
        assert_eq!(lard.choose(&Request::of(1, A), &cluster, Time::ZERO), Decision::Assign(BackendId(1)));
        assert_eq!(lard.server_set(A)[..], [BackendId(1)]);
    }

    #[test]
    fn t_high_must_be_above_t_low() {
        let error = Lard::new(&LardParams { t_low: 65, t_high: 65, ..LardParams::default() }).err().unwrap();
        assert!(error.to_string().contains("`t_high = 65` must be above `t_low = 65`"));
    }
}
