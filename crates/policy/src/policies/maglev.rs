//! Maglev hashing: a table with an almost equal number of slots for each back-end, in which the target's hash looks its back-end up.
//!
//! Citation: Eisenbud, Yi, Contavalli, Smith, Kononov, Mann-Hielscher, Cilingiroglu, Cheyney, Shang and Hosein, "Maglev: a fast and
//! reliable software network load balancer", NSDI 2016, section 3.4.
//!
//! ```text
//! M <- a prime number of slots, at least 100 times the number of back-ends
//! for each back-end b: offset[b] <- hash1(b) mod M, skip[b] <- hash2(b) mod (M - 1) + 1
//!                      preference list of b: offset, offset + skip, offset + 2 skip, ... (mod M)
//! until every slot is taken
//!     the back-ends take turns, in proportion to weight: each takes the first free slot in its preference list
//! n <- table[hash(r.target) mod M]
//! send r to n
//! ```
//!
//! `slots` is doubled until it is 100 times the number of back-ends, those that are down among them, so that a failure never changes
//! M, and a back-end that joins or leaves hardly ever: all targets move with M.
//!
//! Hashes are of a back-end's key, not its index, and turns go in the order of keys: so front-ends that know the same back-ends
//! have the same table.

use crate::capability::ShowsState;
use crate::cluster::{BackendId, ClusterView};
use crate::decision::{Decision, assign_or_reject};
use crate::load_use::LoadUse;
use crate::params::{ParamSet, Params as _};
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::{Request, TargetId};
use crate::rng::mix;
use crate::time::Time;

crate::params! {
    /// Parameters of Maglev hashing.
    pub struct MaglevParams {
        /// M: slots of the table, doubled until they are 100 times the number of back-ends; the next prime number at or above is taken.
        slots: u32 = 65537, 101..=10000000, "slots";
    }
}

/// Separates the hash of the steps from that of the offsets.
const SKIP: u64 = 0x6D61_676C_6576;

/// So many slots make parts almost equal (section 5.3 of the paper).
const SLOTS_PER_BACKEND: u64 = 100;

/// A slot's back-end before it is filled.
const FREE: BackendId = BackendId(u16::MAX);

/// A back-end's preference list, as far as it has been read.
struct Preferences {
    backend: BackendId,
    /// The next slot that it wants.
    next: u64,
    skip: u64,
    /// Its weight in proportion to the largest.
    share: f64,
    /// Turns that it has saved up.
    credit: f64,
}

/// See the module's documentation.
pub struct Maglev {
    /// As configured.
    least_slots: u64,
    /// M.
    slots: u64,
    /// Keys and weights of the back-ends that the table is made of, in the order of keys.
    members: Vec<(u64, BackendId, u32)>,
    table: Vec<BackendId>,
    generation: Option<u64>,
    rebuilt: u64,
    /// Share of the slots that got another back-end when the table was last made.
    moved: f64,
}

impl Maglev {
    /// With these parameters.
    #[must_use]
    pub fn new(params: &MaglevParams) -> Self {
        let least_slots = u64::from(params.slots);
        let slots = prime_slots(least_slots, 0);
        Self {
            least_slots,
            slots,
            members: Vec::new(),
            table: Vec::new(),
            generation: None,
            rebuilt: 0,
            moved: 0.0,
        }
    }

    /// Makes the table anew if back-ends or weights are not those that it was made of.
    fn refresh(&mut self, view: &ClusterView) {
        self.generation = Some(view.generation());
        let mut members: Vec<_> =
            view.ids_for_tables().map(|b| (view.key(b), b, view.weight(b).steps())).collect();
        members.sort_unstable();
        let known = view.ids().filter(|&b| !view.has_left(b)).count();
        let slots = prime_slots(self.least_slots, known as u64);
        if members == self.members && slots == self.slots {
            return;
        }
        // All targets move with M.
        if slots != self.slots {
            self.table.clear();
        }
        self.slots = slots;
        let table = filled(preferences(&members, self.slots), self.slots);
        let moved = self.table.iter().zip(&table).filter(|(old, new)| old != new).count();
        self.moved = if self.table.is_empty() { 1.0 } else { moved as f64 / self.slots as f64 };
        self.rebuilt += 1;
        (self.members, self.table) = (members, table);
    }

    fn look_up(&self, target: TargetId, view: &ClusterView) -> Option<BackendId> {
        let at = (mix(target.0) % self.slots) as usize;
        let owner = *self.table.get(at)?;
        if view.is_eligible(owner) {
            return Some(owner);
        }
        // It failed this request: the next slot of another one.
        let following = self.table[at..].iter().chain(&self.table[..at]);
        following.copied().find(|&b| view.is_eligible(b))
    }
}

/// The table of a consistent hash with so many slots, a prime number, for back-ends given by key, index and weight in steps. The
/// order in which they are given does not matter. Empty without back-ends.
#[must_use]
pub fn table_of(members: &[(u64, BackendId, u32)], slots: u64) -> Vec<BackendId> {
    let mut members: Vec<_> = members.iter().copied().filter(|&(_, _, weight)| weight > 0).collect();
    members.sort_unstable();
    filled(preferences(&members, slots), slots)
}

/// The preference lists of back-ends given by key, index and weight.
fn preferences(members: &[(u64, BackendId, u32)], slots: u64) -> Vec<Preferences> {
    let most = members.iter().map(|&(_, _, weight)| weight).max().unwrap_or(1);
    let list = |&(key, backend, weight): &(u64, BackendId, u32)| Preferences {
        backend,
        next: mix(key) % slots,
        skip: mix(key ^ SKIP) % (slots - 1) + 1,
        share: f64::from(weight) / f64::from(most),
        credit: 0.0,
    };
    members.iter().map(list).collect()
}

/// The table; empty without back-ends.
fn filled(mut all: Vec<Preferences>, slots: u64) -> Vec<BackendId> {
    if all.is_empty() {
        return Vec::new();
    }
    let mut table = vec![FREE; slots as usize];
    let mut free = slots;
    // The back-end with the most weight takes a slot in every round, so this ends.
    loop {
        for p in &mut all {
            p.credit += p.share;
            if p.credit < 1.0 {
                continue;
            }
            p.credit -= 1.0;
            while table[p.next as usize] != FREE {
                p.advance(slots);
            }
            table[p.next as usize] = p.backend;
            p.advance(slots);
            free -= 1;
            if free == 0 {
                return table;
            }
        }
    }
}

impl Preferences {
    fn advance(&mut self, slots: u64) {
        self.next += self.skip;
        if self.next >= slots {
            self.next -= slots;
        }
    }
}

/// M for so many back-ends.
fn prime_slots(least: u64, backends: u64) -> u64 {
    let mut slots = least.max(2);
    while slots < SLOTS_PER_BACKEND * backends {
        slots *= 2;
    }
    (slots..).find(|&n| is_prime(n)).unwrap_or(slots)
}

fn is_prime(n: u64) -> bool {
    n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

impl Policy for Maglev {
    #[inline]
    fn choose(&mut self, request: &Request, view: &ClusterView, _: Time) -> Decision {
        if self.generation != Some(view.generation()) {
            self.refresh(view);
        }
        assign_or_reject(self.look_up(request.target, view))
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl ShowsState for Maglev {
    fn stats(&self) -> Vec<(&'static str, f64)> {
        vec![("slots", self.slots as f64), ("tables", self.rebuilt as f64), ("moved_ratio", self.moved)]
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities =
    Capabilities::NONE.shows_state::<Maglev>().needs_content("the target that a request asks for");

fn build(_: &BuildContext, params: &ParamSet) -> Built {
    Ok(Box::new(Maglev::new(&MaglevParams::of(params))))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "maglev",
    aliases: &["maglev_hash"],
    summary: "the target's hash decides, by a table with equal parts for all back-ends",
    source: "Eisenbud et al., NSDI 2016, section 3.4",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::None,
    weighted: true,
    params: MaglevParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Health};
    use crate::weight::Weight;

    fn table(cluster: &Cluster) -> Vec<BackendId> {
        let mut policy = Maglev::new(&MaglevParams::default());
        policy.refresh(cluster);
        policy.table
    }

    fn counts(table: &[BackendId], backends: usize) -> Vec<usize> {
        let mut counts = vec![0; backends];
        table.iter().for_each(|b| counts[b.index()] += 1);
        counts
    }

    /// The paper's table 1: seven slots, three back-ends with offsets and skips, and then without the second one.
    #[test]
    fn the_papers_example() {
        let list = |(backend, next, skip)| Preferences {
            backend: BackendId(backend),
            next,
            skip,
            share: 1.0,
            credit: 0.0,
        };
        let table = |lists: &[(u16, u64, u64)]| {
            filled(lists.iter().copied().map(list).collect(), 7).iter().map(|b| b.0).collect::<Vec<_>>()
        };
        assert_eq!(table(&[(0, 3, 4), (1, 0, 2), (2, 3, 1)]), [1, 0, 1, 0, 2, 2, 0]);
        assert_eq!(table(&[(0, 3, 4), (2, 3, 1)]), [0, 0, 0, 0, 2, 2, 2]);
    }

    #[test]
    fn slots_are_even_and_follow_weights() {
        let mut cluster = Cluster::new(7);
        // In turns: no two differ by more than one.
        let even = counts(&table(&cluster), 7);
        assert!(even.iter().all(|&n| n == 9362 || n == 9363), "{even:?}");
        cluster.set_weight(BackendId(3), Weight::new(3.0).unwrap());
        cluster.set_weight(BackendId(5), Weight::new(0.5).unwrap());
        // 65,537 slots for weights of 8.5 in all.
        let weighted = counts(&table(&cluster), 7);
        assert!(weighted[3].abs_diff(23_131) <= 3 && weighted[5].abs_diff(3_855) <= 3, "{weighted:?}");
    }

    #[test]
    fn there_are_slots_for_all() {
        assert_eq!(
            [0, 1, 2, 3, 655, 656].map(|n| prime_slots(65_537, n)),
            [65_537, 65_537, 65_537, 65_537, 65_537, 131_101]
        );
        assert_eq!([1, 2, 4, 5, 200].map(|n| prime_slots(101, n)), [101, 211, 409, 809, 25_867]);
        let mut cluster = Cluster::new(200);
        let mut policy = Maglev::new(&MaglevParams { slots: 101 });
        policy.refresh(&cluster);
        let even = counts(&policy.table, 200);
        assert!(even.iter().all(|&n| n == 129 || n == 130), "{even:?}");
        // One that fails changes no number of slots.
        (0..150).for_each(|b| cluster.set_health(BackendId(b), Health::Down));
        policy.refresh(&cluster);
        assert_eq!(policy.slots, 25_867);
    }

    /// The paper's minimal disruption: what the one that goes had moves, and little else.
    #[test]
    fn a_back_end_that_goes_moves_few_targets_of_the_others() {
        let mut cluster = Cluster::new(10);
        let before = table(&cluster);
        cluster.set_health(BackendId(4), Health::Down);
        let after = table(&cluster);
        let kept = before.iter().filter(|&&b| b != BackendId(4)).count();
        let moved = before.iter().zip(&after).filter(|&(&old, new)| old != BackendId(4) && old != *new);
        let share = moved.count() as f64 / kept as f64;
        assert!(share < 0.025, "{share}");
        assert!(!after.contains(&BackendId(4)));
        cluster.set_health(BackendId(4), Health::Up);
        assert_eq!(table(&cluster), before);
    }

    #[test]
    fn the_table_does_not_depend_on_indices() {
        let mut one = Cluster::new(0);
        let mut other = Cluster::new(0);
        let keys: Vec<u64> = (1..6).map(mix).collect();
        keys.iter().for_each(|&key| _ = one.join(Weight::ONE, key));
        keys.iter().rev().for_each(|&key| _ = other.join(Weight::ONE, key));
        let keys_of = |cluster: &Cluster| table(cluster).iter().map(|&b| cluster.key(b)).collect::<Vec<_>>();
        assert_eq!(keys_of(&one), keys_of(&other));
    }

    #[test]
    fn a_request_that_failed_goes_to_another_and_the_table_stays() {
        let mut cluster = Cluster::new(3);
        let mut policy = Maglev::new(&MaglevParams { slots: 101 });
        policy.refresh(&cluster);
        let target = TargetId(5);
        let first = policy.look_up(target, &cluster).unwrap();
        assert!(cluster.exclude(&[first]));
        let second = policy.look_up(target, &cluster).unwrap();
        assert_ne!(first, second);
        cluster.readmit(&[first]);
        assert_eq!(policy.look_up(target, &cluster), Some(first));
        // Three back-ends need 300.
        assert_eq!(policy.stats(), [("slots", 409.0), ("tables", 1.0), ("moved_ratio", 1.0)]);
        assert_eq!(Maglev::new(&MaglevParams { slots: 1000 }).slots, 1009, "the next prime");
    }
}
