//! `AdaptLoad` that also considers queues: where the intervals would leave queues uneven, it sets the
//! boundaries to even them out, and an idle back-end takes what a busy one would have to queue.
//!
//! Citation: Zhang, Riska, Sun, Smirni and Ciardo, "Workload-aware load balancing for clustered web servers", IEEE
//! Transactions on Parallel and Distributed Systems 2005, section 8, equations 1 and 2 and figure 13. After step 7 of
//! `adaptload`, at the end of a batch, with the requests per bin Y, the time T that a batch takes, and for back-end n its queue Q(n), its expected requests
//! L(n) and their mean size fs(n):
//!
//! ```text
//! Q'(n) <- max(0, Q(n) + L(n) - T mu(n) / fs(n))
//! if max Q' > TH1 and max Q' - min Q' > TH2:
//!     Q* <- mean of Q'(n)
//!     L'(n) <- max(0, Q* - Q(n) + T mu(n) / fs(n)), scaled so that they add up to the requests of Y
//!     set the boundaries so that back-end n has L'(n) of the requests in Y
//! for each request r:
//!     n <- as in adaptload; if n is busy and another back-end is idle: send r there
//! ```
//!
//! Both bounds at 0 and the scaling are ours: without them, a back-end that is expected to be idle asks for more requests
//! than there are, which takes them from those that are behind.

use crate::capability::ShowsState;
use crate::cluster::{BackendId, ClusterView};
use crate::data_histogram::DataHistogram;
use crate::decision::{Decision, PolicyTable};
use crate::load_use::LoadUse;
use crate::params::{ParamSet, Params as _};
use crate::policy::Capabilities;
use crate::policy::Policy;
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::Request;
use crate::size_based::{SizeBased, Sizing};
use crate::time::Time;

/// Stream of the run's seed that this policy draws from.
const STREAM: u64 = 0x616c_7175;

crate::params! {
    /// Parameters of AdaptLoad with queues; the paper's values.
    pub struct AdaptLoadQueueParams {
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
        /// TH1: queues up to this length are not adjusted.
        th_1: f64 = 4.0, 0.0..=1e9, "requests";
        /// TH2: nor are queues that differ by no more than this.
        th_2: f64 = 4.0, 0.0..=1e9, "requests";
        /// Requests at a back-end from which on an idle one gets the next.
        off_load_from: u32 = 1, 1..=1_000_000_000, "requests";
        /// mu: what a back-end of weight 1 sends in a second (the paper's network: 512 bytes in 40 microseconds).
        service_rate: f64 = 12_800_000.0, 1.0..=1e15, "bytes/s";
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct AdaptLoadQueue {
    sizes: SizeBased,
    /// Y: requests by bin.
    requests: DataHistogram,
    params: AdaptLoadQueueParams,
    /// When the batch under way began.
    batch_began: Option<Time>,
    /// T.
    batch_s: f64,
    second_scans: u64,
    to_idle: u64,
    counts: Vec<f64>,
}

impl AdaptLoadQueue {
    /// Empty; draws random numbers from the stream of `seed`.
    #[must_use]
    pub fn new(params: &AdaptLoadQueueParams, seed: u64) -> Self {
        let AdaptLoadQueueParams { batch, alpha, bins, base, connection_bytes, .. } = *params;
        let sizing = Sizing { batch, alpha, bins, base, connection_bytes };
        Self {
            sizes: SizeBased::new(&sizing, seed, STREAM),
            requests: DataHistogram::new(bins as usize, alpha),
            params: *params,
            batch_began: None,
            batch_s: 0.0,
            second_scans: 0,
            to_idle: 0,
            counts: Vec::new(),
        }
    }

    /// Ends a batch: sets T and Y for the next one, and evens out the queues if required.
    fn end_batch(&mut self, view: &ClusterView, now: Time) {
        let began = self.batch_began.replace(now).unwrap_or(now);
        if let Some((new, old)) = self.requests.end_batch() {
            self.batch_s = new * now.since(began).as_secs_f64() + old * self.batch_s;
        }
        self.requests.weights(&mut self.counts);
        if let Some(parts) = self.even_queues(view) {
            self.second_scans += 1;
            self.sizes.cut_as(&parts, Some(&self.counts), now);
        }
    }

    /// The shares of requests that would even out the queues; `None` if the present boundaries already do.
    fn even_queues(&self, view: &ClusterView) -> Option<Vec<f64>> {
        let eligible = self.sizes.eligible();
        let intervals = self.sizes.intervals();
        if !intervals.is_set() || eligible.len() < 2 {
            return None;
        }
        let expected = intervals.loads(&self.counts);
        let bytes = intervals.loads(self.sizes.weights());
        let (all_requests, all_bytes): (f64, f64) = (expected.iter().sum(), bytes.iter().sum());
        if all_requests <= 0.0 || all_bytes <= 0.0 {
            return None;
        }
        let queue = |n: usize| f64::from(view.load(eligible[n]));
        // T mu / fs: how many requests it can answer in the meantime.
        let answered: Vec<f64> = (0..eligible.len())
            .map(|n| {
                let (requests, bytes) = if expected[n] > 0.0 && bytes[n] > 0.0 {
                    (expected[n], bytes[n])
                } else {
                    (all_requests, all_bytes)
                };
                let rate = self.params.service_rate * view.weight(eligible[n]).as_f64();
                self.batch_s * rate * requests / bytes
            })
            .collect();
        let later: Vec<f64> =
            (0..eligible.len()).map(|n| (queue(n) + expected[n] - answered[n]).max(0.0)).collect();
        let most = later.iter().copied().fold(0.0, f64::max);
        let least = later.iter().copied().fold(f64::INFINITY, f64::min);
        if most <= self.params.th_1 || most - least <= self.params.th_2 {
            return None;
        }
        let mean = later.iter().sum::<f64>() / later.len() as f64;
        let wanted: Vec<f64> =
            (0..eligible.len()).map(|n| (mean - queue(n) + answered[n]).max(0.0)).collect();
        let sum: f64 = wanted.iter().sum();
        (sum > 0.0).then(|| wanted.iter().map(|w| w / sum).collect())
    }
}

impl Policy for AdaptLoadQueue {
    #[inline]
    fn choose(&mut self, request: &Request, view: &ClusterView, now: Time) -> Decision {
        let Some(chosen) = self.sizes.choose(request, view, now) else { return Decision::Reject };
        if view.load(chosen) >= self.params.off_load_from
            && let Some(idle) = view.least_loaded().filter(|&b| view.load(b) == 0)
        {
            self.to_idle += 1;
            return Decision::Assign(idle);
        }
        Decision::Assign(chosen)
    }

    #[inline]
    fn on_assign(&mut self, request: &Request, _: BackendId, view: &ClusterView, now: Time) {
        self.batch_began.get_or_insert(now);
        if let Some(size_bytes) = self.sizes.size_of(request) {
            self.requests.add(self.sizes.bins().bin(size_bytes), 1);
        }
        if self.sizes.count(request, now) {
            self.end_batch(view, now);
        }
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl ShowsState for AdaptLoadQueue {
    fn stats(&self) -> Vec<(&'static str, f64)> {
        let mut stats = self.sizes.stats();
        stats.push(("second_scans", self.second_scans as f64));
        stats.push(("to_idle", self.to_idle as f64));
        stats
    }

    fn tables(&self) -> Vec<PolicyTable> {
        self.sizes.tables()
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities =
    Capabilities::NONE.shows_state::<AdaptLoadQueue>().needs_content("the size of what a request asks for");

fn build(context: &BuildContext, params: &ParamSet) -> Built {
    Ok(Box::new(AdaptLoadQueue::new(&AdaptLoadQueueParams::of(params), context.seed)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "adaptload_queue",
    aliases: &["adaptload_improved"],
    summary: "adaptload with boundaries that even out queues, and idle back-ends put to use",
    source: "AdaptLoad, section 8",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::View,
    weighted: true,
    params: AdaptLoadQueueParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;
    use crate::core::{AdmissionControl, Assigned, Core, Ending, Offered};
    use crate::request::TargetId;

    fn request(number: u64, size_bytes: u64) -> Request {
        Request { size_bytes: Some(size_bytes), ..Request::of(number, TargetId(number)) }
    }

    fn offer(core: &mut Core, number: u64, size_bytes: u64, now: Time) -> Assigned {
        match core.offer(&request(number, size_bytes), now) {
            Offered::Assigned(assigned) => assigned,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_idle_back_end_takes_what_a_busy_one_would_queue() {
        let params = AdaptLoadQueueParams { batch: 64, ..AdaptLoadQueueParams::default() };
        let policy = Box::new(AdaptLoadQueue::new(&params, 1));
        let mut fe = Core::new(policy, Cluster::new(2), AdmissionControl::UNLIMITED);
        for number in 0..64 {
            let assigned = offer(&mut fe, number, if number % 2 == 0 { 10 } else { 1_000 }, Time::ZERO);
            fe.complete(&assigned, Ending::answered(None), Time::ZERO);
        }
        // 1,000 bytes belong to the second back-end (and part of them to the first).
        let first = offer(&mut fe, 100, 10, Time::ZERO).backend;
        let second = offer(&mut fe, 101, 10, Time::ZERO).backend;
        let third = offer(&mut fe, 102, 10, Time::ZERO).backend;
        assert_eq!((first.0, second.0, third.0), (0, 1, 0), "the second one was idle, then nobody");
        assert_eq!(fe.policy().stats().last(), Some(&("to_idle", 1.0)));
    }

    #[test]
    fn off_loading_can_begin_at_longer_queues() {
        let to_idle = |off_load_from: u32| {
            let params = AdaptLoadQueueParams { batch: 64, off_load_from, ..AdaptLoadQueueParams::default() };
            let mut fe = Core::new(
                Box::new(AdaptLoadQueue::new(&params, 1)),
                Cluster::new(2),
                AdmissionControl::UNLIMITED,
            );
            for number in 0..64 {
                let assigned = offer(&mut fe, number, if number % 2 == 0 { 10 } else { 1_000 }, Time::ZERO);
                fe.complete(&assigned, Ending::answered(None), Time::ZERO);
            }
            // 10 bytes belong to the first back-end; nothing is complete.
            (100..106).map(|number| offer(&mut fe, number, 10, Time::ZERO).backend.0).collect::<Vec<_>>()
        };
        assert_eq!(to_idle(1), [0, 1, 0, 0, 0, 0]);
        assert_eq!(to_idle(3), [0, 0, 0, 1, 0, 0]);
        assert_eq!(to_idle(1_000_000_000), [0; 6]);
    }

    /// Worked out by hand: two back-ends, 20 requests of 10 bytes and 2 of 100 in a batch of one second, so that
    /// the intervals are the two sizes; each back-end answers 100 bytes in a second, the first 10 requests, the second
    /// one. Queues are 0 and 0 at the end of the batch, so Q' = (10, 1): above TH1, and 9 apart. Q* = 5.5 and L' = (15.5,
    /// 6.5): of 22 requests by size, 15.5 go to the first back-end, which is 0.775 of the small ones.
    #[test]
    fn the_second_scan_evens_out_queues() {
        let params =
            AdaptLoadQueueParams { batch: 22, service_rate: 100.0, ..AdaptLoadQueueParams::default() };
        let mut policy = AdaptLoadQueue::new(&params, 1);
        let cluster = Cluster::new(2);
        policy.choose(&request(0, 10), &cluster, Time::ZERO);
        for number in 0..22u64 {
            let now = Time::from_nanos(number * 1_000_000_000 / 21);
            policy.on_assign(
                &request(number, if number % 11 == 5 { 100 } else { 10 }),
                BackendId(0),
                &cluster,
                now,
            );
        }
        let boundary = policy.sizes.intervals().boundaries()[0];
        assert_eq!(boundary.bin, policy.sizes.bins().bin(10));
        assert!((boundary.share - 0.775).abs() < 1e-9, "{boundary:?}");
        assert_eq!(policy.second_scans, 1);
    }

    #[test]
    fn short_queues_are_left_alone() {
        let params = AdaptLoadQueueParams { batch: 22, ..AdaptLoadQueueParams::default() };
        let mut policy = AdaptLoadQueue::new(&params, 1);
        let cluster = Cluster::new(2);
        policy.choose(&request(0, 10), &cluster, Time::ZERO);
        for number in 0..220u64 {
            let now = Time::from_nanos(number * 1_000_000);
            policy.on_assign(&request(number, 10 + number % 3), BackendId(0), &cluster, now);
        }
        assert_eq!((policy.sizes.stats()[0].1, policy.second_scans), (10.0, 0));
    }
}
