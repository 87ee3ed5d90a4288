//! LARD with replication: each target has a server set that grows under imbalance and shrinks when it has been quiet.
//!
//! Citation: Pai et al., ASPLOS 1998, section 2.5, figure 3.
//!
//! ```text
//! if serverSet[r.target] is empty
//!     n, serverSet[r.target] <- least loaded back-end
//! else
//!     n <- least loaded of serverSet[r.target]
//!     m <- most loaded of serverSet[r.target]
//!     if (n.load > T_high and some back-end has load < T_low) or n.load >= 2 * T_high
//!         p <- least loaded back-end
//!         add p to serverSet[r.target]
//!         n <- p
//!     if |serverSet[r.target]| > 1 and now - serverSet[r.target].lastMod > K
//!         remove m from serverSet[r.target]
//! send r to n
//! if serverSet[r.target] changed in this iteration
//!     serverSet[r.target].lastMod <- now
//! ```
//!
//! Taken literally: m is chosen before p is added and K is tested against the old lastMod, so the first imbalance
//! after K moves a target and only a second one within K replicates it. Ties: within a server set n is the lowest index and m
//! the highest; the least loaded back-end is taken in turn (see `lard.rs`).

use smallvec::SmallVec;

use super::lard::Imbalance;
use crate::capability::{BadState, SavesState, ShowsState};
use crate::cluster::{BackendId, Change, ClusterView, Health};
use crate::decision::{Decision, assign_or_reject};
use crate::load_use::LoadUse;
use crate::lru_map::LruMap;
use crate::params::{ParamError, ParamSet, Params as _};
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::{Request, TargetId};
use crate::saved::{StateReader, StateWriter};
use crate::thresholds::Thresholds;
use crate::time::{Nanos, Time};
use crate::turn::Turn;

crate::params! {
    /// Parameters of LARD with replication; defaults from sections 2.4 and 2.5.
    pub struct LardRParams {
        /// T_low: load below which a back-end is likely to have idle resources.
        t_low: u32 = 25, 1..=1000000, "requests";
        /// T_high: load above which a back-end is likely to delay requests substantially; above t_low.
        t_high: u32 = 65, 2..=1000000, "requests", above t_low "LARD, section 2.4";
        /// K: a server set that has not changed for longer than this loses its most loaded member.
        k_s: Nanos = Nanos::from_secs(20), 0.0..=1e9, "s";
        /// Targets whose server set is remembered; the least recently requested is forgotten.
        max_targets: u64 = 1_000_000, 1..=4000000000, "targets";
    }
}

#[derive(Default)]
struct ServerSet {
    /// In order of joining. Four fit without a heap allocation, and few targets ever have more.
    members: SmallVec<[BackendId; 4]>,
    last_mod: Time,
}

/// See the module's documentation.
pub struct LardR {
    imbalance: Imbalance,
    k: Nanos,
    server_set: LruMap<ServerSet>,
    turn: Turn,
    counters: ServerSetCounters,
}

#[derive(Default)]
struct ServerSetCounters {
    members: u64,
    assignments: u64,
    additions: u64,
    removals: u64,
    forgotten: u64,
}

impl LardR {
    /// With these parameters.
    ///
    /// # Errors
    /// Unless `t_low < t_high` and all are within their ranges.
    pub fn new(params: &LardRParams) -> Result<Self, ParamError> {
        params.to_set()?;
        Ok(Self {
            imbalance: Imbalance::new(Thresholds { t_low: params.t_low, t_high: params.t_high }),
            k: params.k_s,
            server_set: LruMap::new(params.max_targets as usize),
            turn: Turn::default(),
            counters: ServerSetCounters::default(),
        })
    }
}

impl ServerSet {
    /// Drops members that take no new requests and returns their number.
    fn drop_ineligible(&mut self, view: &ClusterView) -> u64 {
        let before = self.members.len();
        self.members.retain(|b| view.is_eligible(*b));
        (before - self.members.len()) as u64
    }

    /// The body of figure 3 for a set that is not empty.
    fn choose(
        &mut self,
        imbalance: Imbalance,
        k: Nanos,
        turn: &mut Turn,
        counters: &mut ServerSetCounters,
        view: &ClusterView,
        now: Time,
    ) -> Option<BackendId> {
        let key = |b: &BackendId| (view.relative_load(*b), *b);
        let mut n = *self.members.iter().min_by_key(|b| key(b))?;
        let m = *self.members.iter().max_by_key(|b| key(b))?;
        let mut changed = false;
        if imbalance.is_significant(n, view) {
            let p = turn.next_unless(n, view)?;
            if !self.members.contains(&p) {
                self.members.push(p);
                counters.additions += 1;
                counters.members += 1;
                changed = true;
            }
            n = p;
        }
        if self.members.len() > 1 && now.since(self.last_mod) > k {
            self.members.retain(|b| *b != m);
            counters.removals += 1;
            counters.members -= 1;
            changed = true;
        }
        if changed {
            self.last_mod = now;
        }
        Some(n)
    }
}

impl Policy for LardR {
    fn choose(&mut self, request: &Request, view: &ClusterView, now: Time) -> Decision {
        if view.eligible() == 0 {
            return Decision::Reject;
        }
        let (set, forgotten) = self.server_set.get_or_insert_with(request.target, ServerSet::default);
        if let Some(forgotten) = forgotten {
            self.counters.forgotten += 1;
            self.counters.members -= forgotten.members.len() as u64;
        }
        self.counters.members -= set.drop_ineligible(view);
        if !set.members.is_empty() {
            let chosen = set.choose(self.imbalance, self.k, &mut self.turn, &mut self.counters, view, now);
            return assign_or_reject(chosen);
        }
        let Some(n) = self.turn.next(view) else {
            return Decision::Reject;
        };
        set.members.push(n);
        set.last_mod = now;
        self.counters.members += 1;
        self.counters.assignments += 1;
        Decision::Assign(n)
    }

    fn on_membership(&mut self, backend: BackendId, change: Change, _: &ClusterView, _: Time) {
        if change == Change::Health(Health::Down) {
            let members = &mut self.counters.members;
            self.server_set.retain(|_, set| {
                let before = set.members.len();
                set.members.retain(|b| *b != backend);
                *members -= (before - set.members.len()) as u64;
                !set.members.is_empty()
            });
        }
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl ShowsState for LardR {
    fn server_set(&self, target: TargetId) -> Vec<BackendId> {
        self.server_set.peek(target).map(|set| set.members.to_vec()).unwrap_or_default()
    }

    fn tracked_targets(&self) -> usize {
        self.server_set.len()
    }

    fn stats(&self) -> Vec<(&'static str, f64)> {
        let c = &self.counters;
        let targets = self.server_set.len() as f64;
        vec![
            ("targets", targets),
            ("replicas_mean", if targets > 0.0 { c.members as f64 / targets } else { 0.0 }),
            ("assignments", c.assignments as f64),
            ("additions", c.additions as f64),
            ("removals", c.removals as f64),
            ("forgotten", c.forgotten as f64),
        ]
    }
}

impl SavesState for LardR {
    fn save(&self) -> Vec<u8> {
        let mut out = StateWriter::default();
        let ServerSetCounters { members, assignments, additions, removals, forgotten } = self.counters;
        out.words([self.turn.word(), members, assignments, additions, removals, forgotten]);
        self.server_set.save(&mut out, |set, out| {
            out.words([set.last_mod.as_nanos(), set.members.len() as u64]);
            out.words(set.members.iter().map(|b| u64::from(b.0)));
        });
        out.finish()
    }

    fn restore(&mut self, saved: &[u8]) -> Result<(), BadState> {
        let mut from = StateReader::new(saved);
        let turn = Turn::of_word(from.word()?);
        let counters = ServerSetCounters {
            members: from.word()?,
            assignments: from.word()?,
            additions: from.word()?,
            removals: from.word()?,
            forgotten: from.word()?,
        };
        let server_set = self.server_set.restored(&mut from, |from| {
            let last_mod = Time::from_nanos(from.word()?);
            let members = (0..from.count()?).map(|_| from.backend()).collect::<Result<_, _>>()?;
            Ok(ServerSet { members, last_mod })
        })?;
        from.finish()?;
        (self.turn, self.counters, self.server_set) = (turn, counters, server_set);
        Ok(())
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities = Capabilities::NONE
    .shows_state::<LardR>()
    .saves_state::<LardR>()
    .needs_content("the target that a request asks for");

fn build(context: &BuildContext, params: &ParamSet) -> Built {
    let mut policy = LardR::new(&LardRParams::of(params))?;
    policy.server_set.reseed(context.table_seed);
    Ok(Box::new(policy))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "lard_r",
    aliases: &["lardr", "lard_with_replication"],
    summary: "each target on a set of back-ends that grows under imbalance and shrinks when quiet",
    source: "Pai et al., ASPLOS 1998, section 2.5",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::View,
    weighted: true,
    params: LardRParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;

    const A: TargetId = TargetId(1);

    /// A policy with T_low = 2, T_high = 5, K = 20 s, driven by hand.
    struct Bench {
        cluster: Cluster,
        policy: LardR,
    }

    impl Bench {
        fn new(backends: usize) -> Self {
            let params = LardRParams { t_low: 2, t_high: 5, ..LardRParams::default() };
            Self { cluster: Cluster::new(backends), policy: LardR::new(&params).unwrap() }
        }

        /// With these loads at this second, the request goes to `expected` and leaves the server set `set`.
        fn step(&mut self, at_s: u64, loads: &[u32], expected: u16, set: &[u16]) {
            for (i, &wanted) in loads.iter().enumerate() {
                let b = BackendId::new(i);
                while self.cluster.load(b) < wanted {
                    self.cluster.assign(b);
                }
                while self.cluster.load(b) > wanted {
                    self.cluster.complete(b);
                }
            }
            let now = Time::ZERO + Nanos::from_secs(at_s);
            let decision = self.policy.choose(&Request::of(0, A), &self.cluster, now);
            assert_eq!(decision, Decision::Assign(BackendId(expected)), "at {at_s} s, {loads:?}");
            let got: Vec<u16> = self.policy.server_set(A).iter().map(|b| b.0).collect();
            assert_eq!(got, set, "at {at_s} s, {loads:?}");
        }
    }

    /// Worked by hand from figure 3.
    #[test]
    fn decision_table() {
        let mut b = Bench::new(4);
        b.step(0, &[1, 0, 0, 1], 1, &[1]); // first: least loaded, in turn from 0
        b.step(1, &[1, 5, 1, 1], 1, &[1]); // 5 is not > T_high
        b.step(2, &[2, 6, 2, 2], 1, &[1]); // nobody < T_low
        b.step(3, &[2, 6, 1, 1], 2, &[1, 2]); // imbalance within K of the change at 0: replicate
        b.step(4, &[0, 3, 3, 3], 1, &[1, 2]); // least loaded of the set, lowest index on ties
        b.step(5, &[9, 10, 11, 9], 3, &[1, 2, 3]); // n.load = 10 >= 2 T_high: add the least loaded, of which 3 follows 2
        b.step(25, &[3, 3, 3, 3], 1, &[1, 2, 3]); // 20 s since the change is not > K; ties to the lowest index
        b.step(26, &[3, 3, 3, 3], 1, &[1, 2]); // 21 s > K: the most loaded, highest index on ties, goes
        b.step(27, &[0, 4, 0, 0], 2, &[1, 2]); // lastMod was renewed at 26
        b.step(47, &[0, 4, 0, 0], 2, &[2]); // 21 s later the most loaded goes
        b.step(99, &[0, 4, 0, 0], 2, &[2]); // the last one stays
    }

    #[test]
    fn an_idle_cluster_gets_targets_in_turn() {
        let mut b = Bench::new(3);
        let mut choose = |target| b.policy.choose(&Request::of(0, TargetId(target)), &b.cluster, Time::ZERO);
        for (target, expected) in [(0, 0), (1, 1), (0, 0), (2, 2), (3, 0)] {
            assert_eq!(choose(target), Decision::Assign(BackendId(expected)), "{target}");
        }
    }

    #[test]
    fn equal_loads_above_all_thresholds_add_nobody() {
        let mut b = Bench::new(3);
        b.step(0, &[0, 0, 0], 0, &[0]);
        b.step(1, &[10, 10, 10], 0, &[0]);
        b.step(2, &[11, 10, 10], 1, &[0, 1]);
    }

    #[test]
    fn the_first_imbalance_after_k_moves_the_target() {
        let mut b = Bench::new(3);
        b.step(0, &[0, 0, 0], 0, &[0]);
        b.step(21, &[6, 1, 1], 1, &[1]); // added 1, removed m = 0, chosen before the addition
        b.step(22, &[1, 6, 1], 2, &[1, 2]); // a second one within K replicates
    }

    #[test]
    fn adding_a_member_that_is_there_changes_nothing() {
        let mut b = Bench::new(2);
        b.step(0, &[0, 0], 0, &[0]);
        b.step(1, &[6, 1], 1, &[0, 1]);
        // Both at 2 T_high or above: p is member 0 already; lastMod stays at 1, so at 22 the set shrinks.
        b.step(10, &[10, 11], 0, &[0, 1]);
        b.step(22, &[3, 2], 1, &[1]);
    }

    #[test]
    fn k_zero_never_keeps_two_for_long() {
        let params = LardRParams { t_low: 2, t_high: 5, k_s: Nanos::ZERO, ..LardRParams::default() };
        let mut b = Bench { cluster: Cluster::new(2), policy: LardR::new(&params).unwrap() };
        b.step(0, &[0, 0], 0, &[0]);
        b.step(0, &[6, 1], 1, &[0, 1]); // same instant: 0 is not > K = 0
        b.step(1, &[3, 2], 1, &[1]);
    }

    #[test]
    fn a_failed_member_leaves_every_set() {
        let mut b = Bench::new(3);
        b.step(0, &[0, 0, 0], 0, &[0]);
        b.step(1, &[6, 1, 1], 1, &[0, 1]);
        b.cluster.set_health(BackendId(1), Health::Down);
        let change = Change::Health(Health::Down);
        b.policy.on_membership(BackendId(1), change, &b.cluster, Time::ZERO);
        b.step(2, &[3, 1, 3], 0, &[0]);
        assert_eq!(b.policy.stats()[1], ("replicas_mean", 1.0));
        b.cluster.set_health(BackendId(0), Health::Down);
        b.policy.on_membership(BackendId(0), change, &b.cluster, Time::ZERO);
        assert_eq!(b.policy.tracked_targets(), 0);
        b.step(3, &[0, 0, 3], 2, &[2]);
    }
}
