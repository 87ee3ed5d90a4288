//! Demands where the log's times are too coarse to tell who waited for whom: from means alone, by theory.
//!
//! The mean number of requests at a back-end is the sum of their durations by the time that the log covers (Little). Where requests share
//! cores equally, each takes longer by the same factor. Where they are served in turn by one worker, a request waits for what is left of
//! the one before it, in the order of the log: its duration less the time between the two arrivals, of which the rate is known. Which of
//! the two holds shows in how durations of cheap and of expensive URIs change from one second to the next: in proportion, or alike.

use std::collections::BTreeMap;

use crate::learn::demand_method::DemandMethod;
use crate::learn::discipline::QueueDiscipline;
use crate::learn::log_traits::LogTraits;
use crate::learn::samples::Sample;
use crate::learn::statistic::DemandSums;

/// Corrected demands and how they were found.
pub(crate) struct CoarseCorrection {
    pub(crate) demands_s: Vec<f32>,
    pub(crate) method: DemandMethod,
}

/// Of two halves of the requests, the sum and the number of residuals.
type SumAndCount = [(f64, f64); 2];

/// Means of one back-end.
#[derive(Debug, Clone, Copy, Default)]
struct LogMeans {
    /// Requests per second.
    rate: f64,
    /// Requests there on average.
    present: f64,
    workers: f64,
}

/// Corrects durations by the mean load of each back-end.
pub(crate) fn correct(samples: &[Sample], log: &LogTraits) -> CoarseCorrection {
    // The last group is that of all requests without one.
    let mut groups = vec![DemandSums::default(); log.groups + 1];
    for sample in samples {
        groups[(sample.group as usize).min(log.groups)].add(duration_s(sample));
    }
    let (rest, known) =
        groups.split_last().map_or((DemandSums::default(), &[][..]), |(rest, known)| (*rest, known));
    let means = means(samples, log);
    let of = |sample: &Sample| means.get(usize::from(sample.backend)).copied().unwrap_or_default();
    let workers = log.workers.unwrap_or(1);
    let (demands_s, discipline) = match (waits_alike(samples, known), workers) {
        (false, cores) => {
            let factors: Vec<f64> = means.iter().map(LogMeans::factor).collect();
            let factor = |s: &Sample| factors.get(usize::from(s.backend)).copied().unwrap_or(1.0);
            (
                samples.iter().map(|s| (duration_s(s) * factor(s)) as f32).collect(),
                QueueDiscipline::Shared { cores },
            )
        }
        (true, 1) => {
            let rates: Vec<f64> = means.iter().map(|means| means.rate).collect();
            (after_the_one_before(samples, &rates), QueueDiscipline::InTurn { workers })
        }
        (true, _) => {
            let all: Vec<DemandSums> = known.iter().copied().chain([rest]).collect();
            let waits_s: Vec<f64> = means.iter().map(|means| means.wait_s(&all)).collect();
            let wait_s = |s: &Sample| waits_s.get(usize::from(s.backend)).copied().unwrap_or(0.0);
            let demands_s = samples.iter().map(|s| (duration_s(s) - wait_s(s)) as f32).collect();
            (demands_s, QueueDiscipline::InTurn { workers })
        }
    };
    // As a request sees it on average.
    let present = samples.iter().map(|s| of(s).present).sum::<f64>() / samples.len().max(1) as f64;
    let method = DemandMethod::FromMeans { discipline, present, given: log.workers.is_some() };
    CoarseCorrection { demands_s, method }
}

fn duration_s(sample: &Sample) -> f64 {
    sample.takes_ns as f64 / 1e9
}

/// The means of each back-end over the time of the log.
fn means(samples: &[Sample], log: &LogTraits) -> Vec<LogMeans> {
    let first_ns = samples.iter().map(|s| s.begins_ns).min().unwrap_or(0);
    let last_ns = samples.iter().map(Sample::ends_ns).max().unwrap_or(0);
    // The last begin is rounded down.
    let span_s = (last_ns.saturating_sub(first_ns) as f64 / 1e9).max(log.resolution.begins_ns as f64 / 1e9);
    let workers = f64::from(log.workers.unwrap_or(1));
    let mut means = vec![LogMeans { workers, ..LogMeans::default() }; log.backends.max(1)];
    for sample in samples {
        if let Some(mean) = means.get_mut(usize::from(sample.backend)) {
            mean.rate += 1.0 / span_s;
            mean.present += duration_s(sample) / span_s;
        }
    }
    means
}

/// Demands where one worker serves requests in the order of the log. If the one before took T and the next one came A later, that one
/// waited for what was left of T. Of A, its rate is known, and that it does not depend on T, if arrivals are random (Poisson): so the
/// mean of what was left is T - (1 - exp(-rate·T)) / rate. The mean over many requests of a class is right; the demand of one is not.
fn after_the_one_before(samples: &[Sample], mean_rates: &[f64]) -> Vec<f32> {
    /// Rates are taken over blocks of so many seconds.
    const BLOCK_S: u64 = 60;
    let block = |sample: &Sample| sample.ends_ns() / 1_000_000_000 / BLOCK_S;
    let mut counts: BTreeMap<(u16, u64), f64> = BTreeMap::new();
    let (mut first, mut last) = (u64::MAX, 0);
    for sample in samples {
        *counts.entry((sample.backend, block(sample))).or_default() += 1.0;
        (first, last) = (first.min(block(sample)), last.max(block(sample)));
    }
    let mut before_s: BTreeMap<u16, f64> = BTreeMap::new();
    let mut demand = |sample: &Sample| {
        let takes_s = duration_s(sample);
        // The log may begin and end within a block.
        let inside = block(sample) > first && block(sample) < last;
        let count = counts.get(&(sample.backend, block(sample))).filter(|_| inside);
        let mean_rate = mean_rates.get(usize::from(sample.backend)).copied().unwrap_or(1.0);
        let rate = count.map_or(mean_rate, |count| count / BLOCK_S as f64);
        let left_s = before_s
            .insert(sample.backend, takes_s)
            .map_or(0.0, |before_s| before_s - (1.0 - (-rate * before_s).exp()) / rate);
        (takes_s - left_s) as f32
    };
    samples.iter().map(&mut demand).collect()
}

/// Whether durations of cheap and expensive URIs rise and fall by the same time, and not in proportion.
fn waits_alike(samples: &[Sample], groups: &[DemandSums]) -> bool {
    // Groups in order of their mean, divided where half of the requests are.
    let mut by_mean: Vec<(f64, f64, usize)> =
        groups.iter().enumerate().map(|(at, g)| (g.mean_s(), g.count, at)).collect();
    by_mean.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = by_mean.iter().map(|(_, count, _)| count).sum::<f64>() / 2.0;
    let mut side = vec![(false, 0.0); groups.len()];
    let mut so_far = 0.0;
    let (mut cheap, mut dear) = (DemandSums::default(), DemandSums::default());
    for (mean_s, count, at) in by_mean {
        let is_dear = so_far >= half;
        so_far += count;
        side[at] = (is_dear, mean_s);
        let sums = if is_dear { &mut dear } else { &mut cheap };
        sums.count += count;
        sums.sum_s += mean_s * count;
    }
    let ratio = dear.mean_s() / cheap.mean_s().max(1e-12);
    if cheap.count == 0.0 || dear.count == 0.0 || ratio < 1.2 {
        // Waits hide the difference of costs, or there is none.
        return follow_one_another(samples, groups);
    }
    // Residuals in each second at each back-end, of every other request apart: what both have in common is no chance.
    let mut seconds: BTreeMap<(u16, u64), [SumAndCount; 2]> = BTreeMap::new();
    let mut turn = [false; 2];
    for sample in samples {
        let Some((is_dear, mean_s)) = side.get(sample.group as usize) else { continue };
        let sums = seconds.entry((sample.backend, sample.ends_ns() / 1_000_000_000)).or_default();
        let turn = &mut turn[usize::from(*is_dear)];
        let (sum, count) = &mut sums[usize::from(*is_dear)][usize::from(*turn)];
        *turn = !*turn;
        *sum += duration_s(sample) - mean_s;
        *count += 1.0;
    }
    let common = |is_dear: usize| {
        let pairs = seconds.values().map(|sums| sums[is_dear]).filter(|[a, b]| a.1 > 0.0 && b.1 > 0.0);
        let (sum, weight) = pairs.fold((0.0, 0.0), |(sum, weight), [a, b]| {
            let each = a.1.min(b.1);
            (sum + each * (a.0 / a.1) * (b.0 / b.1), weight + each)
        });
        if weight > 0.0 { (sum / weight).max(0.0).sqrt() } else { 0.0 }
    };
    let (of_cheap, of_dear) = (common(0), common(1));
    of_cheap > 0.0 && of_dear / of_cheap < ratio.sqrt()
}

/// Whether the duration of a request is much like that of the one before it in the log, beside what its URI tells: a long wait ends by and
/// by, while requests that share cores end in any order.
fn follow_one_another(samples: &[Sample], groups: &[DemandSums]) -> bool {
    let mut before: BTreeMap<u16, f64> = BTreeMap::new();
    let (mut both, mut squares) = (0.0, 0.0);
    for sample in samples {
        let Some(group) = groups.get(sample.group as usize) else { continue };
        let residual_s = duration_s(sample) - group.mean_s();
        squares += residual_s * residual_s;
        both += before.insert(sample.backend, residual_s).map_or(0.0, |before_s| before_s * residual_s);
    }
    both > 0.5 * squares
}

impl LogMeans {
    /// The probability that all workers are busy (Erlang), where they are busy for `load` workers' time.
    fn busy(&self, load: f64) -> f64 {
        let utilization = load / self.workers;
        if utilization >= 1.0 {
            return 1.0;
        }
        let (mut term, mut sum) = (1.0, 0.0);
        let mut at = 0.0;
        while at < self.workers {
            sum += term;
            at += 1.0;
            term *= load / at;
        }
        let all = term / (1.0 - utilization);
        all / (sum + all)
    }

    /// Demand by duration where requests share cores equally: N = load · (1 + busy / (workers − load)).
    fn factor(&self) -> f64 {
        let present = |load: f64| load * (1.0 + self.busy(load) / (self.workers - load).max(1e-9));
        let load = bisect(0.0, self.workers * (1.0 - 1e-6), |load| present(load) - self.present);
        if self.present > 0.0 { (load / self.present).min(1.0) } else { 1.0 }
    }

    /// The mean wait in seconds where requests are served in turn: that of the M/G/k queue, by Allen and Cunneen.
    fn wait_s(&self, groups: &[DemandSums]) -> f64 {
        let all = groups.iter().map(|g| g.count).sum::<f64>().max(1.0);
        let mean_s = groups.iter().map(|g| g.sum_s).sum::<f64>() / all;
        let excess = |wait_s: f64| {
            let demand_s = mean_s - wait_s;
            let load = self.rate * demand_s;
            if load >= self.workers {
                return -1.0;
            }
            // Waits are spread about as an exponential time with an atom at 0.
            let busy = self.busy(load).max(1e-9);
            let wait_variance = wait_s * wait_s * (2.0 / busy - 1.0);
            let square = |g: &DemandSums| {
                let mean_s = (g.mean_s() - wait_s).max(0.0);
                let variance = (g.within() / g.count.max(1.0) - wait_variance).max(0.0);
                g.count * (mean_s * mean_s + variance)
            };
            let square = groups.iter().map(square).sum::<f64>() / all;
            wait_s - busy * square / demand_s / 2.0 / (self.workers - load)
        };
        bisect(0.0, mean_s * (1.0 - 1e-6), excess)
    }
}

/// Where a rising function is 0.
fn bisect(mut low: f64, mut high: f64, rising: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if rising(middle) < 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}
