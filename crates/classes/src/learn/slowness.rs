//! How much longer than elsewhere the same requests take at each back-end.

use crate::learn::log_traits::LogTraits;
use crate::learn::samples::Sample;

/// Below this ratio between the slowest and the fastest back-end all count as equal.
const RATIO_LEAST: f64 = 1.15;
/// Requests of a back-end below which it counts as an average one.
const REQUESTS_LEAST: f64 = 100.0;
/// Means of groups and slowness are found in turn, so many times.
const ROUNDS: usize = 4;

/// Takes the slowness of back-ends out of demands, and returns it by back-end, relative to the geometric mean; empty where back-ends are
/// alike.
pub(crate) fn take_out(demands_s: &mut [f32], samples: &[Sample], log: &LogTraits) -> Vec<f64> {
    let mut slowness = vec![1.0f64; log.backends.max(1)];
    if slowness.len() < 2 {
        return Vec::new();
    }
    let known = || samples.iter().zip(demands_s.iter()).filter(|(s, _)| (s.group as usize) < log.groups);
    for _ in 0..ROUNDS {
        let mut groups = vec![(0.0f64, 0.0f64); log.groups];
        for (sample, demand_s) in known() {
            let of = slowness.get(usize::from(sample.backend)).copied().unwrap_or(1.0);
            let (sum, count) = &mut groups[sample.group as usize];
            (*sum, *count) = (*sum + f64::from(*demand_s) / of, *count + 1.0);
        }
        let mut backends = vec![(0.0f64, 0.0f64, 0.0f64); slowness.len()];
        for (sample, demand_s) in known() {
            let (sum, count) = groups[sample.group as usize];
            if let Some((found, expected, requests)) = backends.get_mut(usize::from(sample.backend)) {
                *found += f64::from(*demand_s);
                *expected += sum / count;
                *requests += 1.0;
            }
        }
        let ratio = |(found, expected, requests): &(f64, f64, f64)| {
            if *requests < REQUESTS_LEAST || *found <= 0.0 || *expected <= 0.0 {
                1.0
            } else {
                found / expected
            }
        };
        slowness = backends.iter().map(ratio).collect();
        let mean = (slowness.iter().map(|s| s.ln()).sum::<f64>() / slowness.len() as f64).exp();
        slowness.iter_mut().for_each(|s| *s /= mean);
    }
    let (least, most) = slowness.iter().fold((f64::INFINITY, 0.0f64), |(a, b), s| (a.min(*s), b.max(*s)));
    if most / least < RATIO_LEAST {
        return Vec::new();
    }
    for (sample, demand_s) in samples.iter().zip(demands_s) {
        *demand_s /= slowness.get(usize::from(sample.backend)).copied().unwrap_or(1.0) as f32;
    }
    slowness
}
