//! The demand of each request.

use std::collections::BTreeMap;

use crate::learn::coarse::{self, CoarseCorrection};
use crate::learn::demand_method::DemandMethod;
use crate::learn::discipline::{InferredDiscipline, infer};
use crate::learn::log_traits::LogTraits;
use crate::learn::samples::Sample;
use crate::learn::slowness;

/// A response up to this size leaves the server at once: it fits into send buffers.
const AT_ONCE_BYTES: u64 = 64 << 10;

/// So many responses of a URI that leave at once are enough to go by them.
const AT_ONCE_ENOUGH: usize = 20;

/// Demands, and how they were found.
pub(crate) struct EstimatedDemands {
    pub(crate) demands_s: Vec<f32>,
    pub(crate) method: DemandMethod,
    /// Requests whose duration was replaced because it says most of the client.
    pub(crate) slow_clients: u64,
    /// By back-end, how many times as long as on average requests take there; empty where back-ends are alike.
    pub(crate) slowness: Vec<f64>,
}

/// Estimates the demand of each request.
pub(crate) fn estimate(samples: &mut [Sample], log: &LogTraits) -> EstimatedDemands {
    let slow_clients = without_clients(samples);
    let mean_ns = samples.iter().map(|s| s.takes_ns as f64).sum::<f64>() / samples.len().max(1) as f64;
    // Rounded to more than half a duration, begins say nothing of who waited for whom.
    if log.resolution.begins_ns as f64 * 2.0 > mean_ns {
        let CoarseCorrection { mut demands_s, method } = coarse::correct(samples, log);
        let slowness = slowness::take_out(&mut demands_s, samples, log);
        return EstimatedDemands { demands_s, method, slow_clients, slowness };
    }
    // Begin and duration are each rounded.
    let tolerance_ns = log.resolution.begins_ns.max(log.resolution.takes_ns) * 2;
    let found = infer(samples, log, if tolerance_ns == 2 { 0 } else { tolerance_ns });
    let InferredDiscipline { discipline, demands_s, dependence, dependence_before, slowness } = found;
    let method = DemandMethod::Reconstructed { discipline, dependence, dependence_before };
    EstimatedDemands { demands_s, method, slow_clients, slowness }
}

/// Shortens durations of large responses to what small responses of the group take, or else to what its fastest tenth takes, and tells how
/// many.
fn without_clients(samples: &mut [Sample]) -> u64 {
    let mut durations: BTreeMap<u32, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    for sample in samples.iter().filter(|s| s.with_client && s.size_bytes > AT_ONCE_BYTES) {
        durations.entry(sample.group).or_default().1.push(sample.takes_ns);
    }
    for sample in samples.iter().filter(|s| s.size_bytes <= AT_ONCE_BYTES) {
        if let Some((at_once, _)) = durations.get_mut(&sample.group) {
            at_once.push(sample.takes_ns);
        }
    }
    let quantile = |mut list: Vec<u64>, share: f64| {
        list.sort_unstable();
        list.get((list.len() as f64 * share) as usize).copied().unwrap_or(u64::MAX)
    };
    let limits: BTreeMap<u32, u64> = durations
        .into_iter()
        .map(|(uri, (at_once, large))| {
            let enough = at_once.len() >= AT_ONCE_ENOUGH;
            (uri, if enough { quantile(at_once, 0.5) } else { quantile(large, 0.1) })
        })
        .collect();
    let mut shortened = 0;
    for sample in samples.iter_mut().filter(|s| s.with_client && s.size_bytes > AT_ONCE_BYTES) {
        if let Some(limit_ns) = limits.get(&sample.group).filter(|limit| **limit < sample.takes_ns) {
            sample.takes_ns = *limit_ns;
            shortened += 1;
        }
    }
    shortened
}
