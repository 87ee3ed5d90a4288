//! `AdaptLoad`: each back-end answers requests of an interval of sizes, set so that all get the same load.
//!
//! Citation: Zhang, Riska, Sun, Smirni and Ciardo, "Workload-aware load balancing for clustered web servers", IEEE
//! Transactions on Parallel and Distributed Systems 2005, sections 4 and 7. Figure 4:
//!
//! ```text
//! for each request r of size s, the size being known and r static:
//!     send r to the back-end whose interval holds s (bin s_n: up to n with probability p_n)
//!     O[bin of s] += s
//! for every other request:
//!     send r to the back-end with the shortest queue, ties at random
//! after K requests of known size:
//!     U <- O discounted with what was before; O <- 0
//!     set (s_1, p_1) .. (s_N-1, p_N-1) so that each back-end has 1/N of the sum of U
//! ```
//!
//! With weights, a back-end has its weight's share of the load. Until the first batch is whole, boundaries are set from
//! the requests so far, after 64 and at each doubling.

use crate::capability::{SharesState, ShowsState};
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
const STREAM: u64 = 0x6164_6c64;

crate::params! {
    /// Parameters of AdaptLoad; the paper's values.
    pub struct AdaptLoadParams {
        /// K: requests of known size after which the boundaries are set anew.
        batch: u64 = 32_768, 1..=1_073_741_824, "requests";
        /// How much earlier batches weigh: 0 for the last batch alone, 1 for all alike.
        alpha: f64 = 0.0, 0.0..=1.0, "";
        /// F: bins of the histogram.
        bins: u32 = 2048, 1..=65_535, "";
        /// C: each bin is this many times as wide as the one before.
        base: f64 = 1.02, 1.001..=16.0, "";
        /// Added to each size in the histogram: what a connection costs.
        connection_bytes: u64 = 0, 0..=1_073_741_824, "bytes";
    }
}

impl AdaptLoadParams {
    /// The parameters of the size-based distribution.
    #[must_use]
    pub fn sizing(&self) -> Sizing {
        let Self { batch, alpha, bins, base, connection_bytes } = *self;
        Sizing { batch, alpha, bins, base, connection_bytes }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct AdaptLoad(SizeBased);

impl AdaptLoad {
    /// Empty; draws random numbers from the stream of `seed`.
    #[must_use]
    pub fn new(params: &AdaptLoadParams, seed: u64) -> Self {
        Self(SizeBased::new(&params.sizing(), seed, STREAM))
    }
}

impl Policy for AdaptLoad {
    #[inline]
    fn choose(&mut self, request: &Request, view: &ClusterView, now: Time) -> Decision {
        assign_or_reject(self.0.choose(request, view, now))
    }

    #[inline]
    fn on_assign(&mut self, request: &Request, _: BackendId, _: &ClusterView, now: Time) {
        self.0.count(request, now);
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl SharesState for AdaptLoad {
    fn seen(&self) -> Vec<(u64, u64)> {
        self.0.seen()
    }

    fn on_shared(&mut self, sum: &[(u64, u64)], now: Time) {
        self.0.follow(sum, now);
    }
}

impl ShowsState for AdaptLoad {
    fn stats(&self) -> Vec<(&'static str, f64)> {
        self.0.stats()
    }

    fn tables(&self) -> Vec<PolicyTable> {
        self.0.tables()
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities = Capabilities::NONE
    .shares_state::<AdaptLoad>()
    .shows_state::<AdaptLoad>()
    .needs_content("the size of what a request asks for");

fn build(context: &BuildContext, params: &ParamSet) -> Built {
    Ok(Box::new(AdaptLoad::new(&AdaptLoadParams::of(params), context.seed)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "adaptload",
    aliases: &["adapt_load"],
    summary: "intervals of sizes with the same load each, from a histogram of recent requests",
    source: "AdaptLoad, section 4",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::View,
    weighted: true,
    params: AdaptLoadParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Health};
    use crate::core::{AdmissionControl, Core};
    use crate::request::{Kind, TargetId};

    fn front_end(params: AdaptLoadParams, backends: usize) -> Core {
        let policy = Box::new(AdaptLoad::new(&params, 1));
        Core::new(policy, Cluster::new(backends), AdmissionControl::UNLIMITED)
    }

    fn offer(fe: &mut Core, number: u64, size_bytes: Option<u64>, kind: Kind) -> Option<u16> {
        let request = Request { size_bytes, kind, ..Request::of(number, TargetId(number)) };
        fe.offer(&request, Time::from_nanos(number)).backend().map(|b| b.0)
    }

    fn sized(fe: &mut Core, number: u64, size_bytes: u64) -> u16 {
        offer(fe, number, Some(size_bytes), Kind::Static).unwrap()
    }

    #[test]
    fn after_a_batch_each_size_has_its_back_end() {
        let params = AdaptLoadParams { batch: 100, ..AdaptLoadParams::default() };
        let mut fe = front_end(params, 2);
        // 99 of 100 bytes and one of 9,900: half of the bytes each.
        for number in 0..100 {
            sized(&mut fe, number, if number == 50 { 9_900 } else { 100 });
        }
        let got: Vec<u16> =
            (100..110).map(|n| sized(&mut fe, n, if n % 2 == 0 { 100 } else { 9_900 })).collect();
        assert_eq!(got, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
        let stats = fe.policy().stats();
        assert_eq!((stats[0], stats[2]), (("batches", 1.0), ("sized_requests", 110.0)));
        let tables = fe.policy().tables();
        assert_eq!(tables.iter().map(|t| t.name).collect::<Vec<_>>(), ["boundaries", "histogram", "moves"]);
        assert_eq!((tables[0].rows.len(), tables[1].rows.len()), (2, 2));
        assert!(tables[0].rows.iter().all(|row| (row[3] - 0.5).abs() < 1e-9));
    }

    #[test]
    fn what_has_no_size_joins_the_shortest_queue() {
        let mut fe = front_end(AdaptLoadParams::default(), 3);
        for number in 0..30 {
            let (size, kind) = if number % 2 == 0 { (None, Kind::Static) } else { (Some(9), Kind::Dynamic) };
            offer(&mut fe, number, size, kind).unwrap();
        }
        let loads: Vec<u32> = fe.view().ids().map(|b| fe.view().load(b)).collect();
        assert_eq!(loads, [10, 10, 10]);
        assert_eq!(fe.policy().stats()[3], ("unsized_requests", 30.0));
        assert!(fe.policy().tables()[0].rows.is_empty(), "there is nothing to set boundaries by");
    }

    #[test]
    fn intervals_follow_the_membership() {
        let params = AdaptLoadParams { batch: 64, ..AdaptLoadParams::default() };
        let mut fe = front_end(params, 4);
        for n in 0..64 {
            sized(&mut fe, n, 1 << (n % 4 * 4));
        }
        fe.set_health(BackendId(0), Health::Down, Time::from_nanos(64));
        let got: Vec<u16> = (64..400).map(|n| sized(&mut fe, n, 1 << (n % 4 * 4))).collect();
        assert!([1, 2, 3].iter().all(|b| got.contains(b)) && !got.contains(&0), "{got:?}");
        for b in 1..4 {
            fe.set_health(BackendId(b), Health::Down, Time::from_nanos(400));
        }
        assert_eq!(offer(&mut fe, 400, Some(1), Kind::Static), None);
        fe.set_health(BackendId(2), Health::Up, Time::from_nanos(401));
        assert_eq!(sized(&mut fe, 401, 1 << 40), 2);
    }

    #[test]
    fn one_giant_document_among_small_ones_has_back_ends_of_its_own() {
        let params = AdaptLoadParams { batch: 128, ..AdaptLoadParams::default() };
        let mut fe = front_end(params, 8);
        for n in 0..128 {
            sized(&mut fe, n, if n == 7 { 1 << 30 } else { 1_000 });
        }
        let small: Vec<u16> = (128..200).map(|n| sized(&mut fe, n, 1_000)).collect();
        let giant: Vec<u16> = (200..255).map(|n| sized(&mut fe, n, 1 << 30)).collect();
        assert!(small.iter().all(|&b| b == 0) && (1..8).all(|b| giant.contains(&b)), "{giant:?}");
    }

    #[test]
    fn empty_documents_and_one_back_end() {
        let params = AdaptLoadParams { batch: 70, ..AdaptLoadParams::default() };
        let mut fe = front_end(params, 3);
        for n in 0..300 {
            sized(&mut fe, n, 0);
        }
        assert_eq!(fe.view().total_load(), 300);
        let mut fe = front_end(params, 1);
        assert!((0..300).all(|n| sized(&mut fe, n, n * n * n) == 0));
    }

    #[test]
    fn front_ends_that_share_what_they_have_seen_set_the_same_boundaries() {
        // The same three back-ends, which the two number differently.
        let front_end = |keys: [u64; 3]| {
            let mut cluster = Cluster::new(0);
            for key in keys {
                cluster.join(crate::weight::Weight::ONE, key);
            }
            let policy = Box::new(AdaptLoad::new(&AdaptLoadParams::default(), 1));
            Core::new(policy, cluster, AdmissionControl::UNLIMITED)
        };
        let mut both = [front_end([7, 8, 9]), front_end([9, 7, 8])];
        // One has seen small documents, the other large ones, as many bytes twice.
        for number in 0..200 {
            sized(&mut both[0], number, 100);
        }
        for number in 0..2 {
            sized(&mut both[1], number, 10_000);
            sized(&mut both[1], number, 40_000);
        }
        let mut load: Vec<(u64, u64)> = both.iter().flat_map(|fe| fe.policy().seen().unwrap()).collect();
        load.sort_unstable();
        assert_eq!(load.iter().map(|(_, bytes)| bytes).sum::<u64>(), 120_000);
        for fe in &mut both {
            fe.share(&load, Time::from_nanos(1000));
            // A third of 120,000 bytes ends in the 40,000-byte documents, as does the second.
            let key = |fe: &mut Core, number, size| {
                let b = sized(fe, number, size);
                fe.view().key(BackendId(b))
            };
            assert_eq!([key(fe, 1000, 100), key(fe, 1001, 10_000), key(fe, 1002, 1 << 40)], [7, 7, 9]);
        }
        let shares = |fe: &Core| -> Vec<Vec<f64>> {
            fe.policy().tables()[0].rows.iter().map(|row| row[1..].to_vec()).collect()
        };
        assert_eq!(shares(&both[0]), shares(&both[1]));
        // What one sees later changes nothing until it is told, not even when back-ends go.
        for number in 2000..2300 {
            sized(&mut both[0], number, 1_000_000);
        }
        both[0].set_health(BackendId(2), Health::Down, Time::from_nanos(3000));
        assert_eq!((sized(&mut both[0], 3000, 100), sized(&mut both[0], 3001, 1 << 40)), (0, 1));
        assert!((both[0].policy().tables()[0].rows[0][3] - 0.5).abs() < 1e-9);
    }
}
