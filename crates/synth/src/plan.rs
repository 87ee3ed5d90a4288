//! From parameters to a workload: popularity, numbering, sizes, windows, arrivals.

use super::answers::AnswerMix;
use super::arrivals::{ArrivalProcess, day_of};
use super::day::{self, DayFigures};
use super::drift::{BURSTS, Drift, DriftKind};
use super::error::SynthError;
use super::popularity::{Popularity, apportion_at_least_one};
use super::random::{Purpose, permutation, stream, uniform};
use super::service;
use super::sizes::{Copula, CoveragePoint, SizeLaw, bisect, fit_coverage, round_with_carry};
use super::spec::{Parameters, WorkloadSpec};
use super::units::MIB;
use super::window::ActiveWindow;
use super::workload::{SyntheticWorkload, per_minute};
use crate::coverage::by_falling_count;

/// Longest trace in seconds whose times fit 64 bits of nanoseconds with room to spare.
const LONGEST_S: f64 = 1e10;

/// Builds a workload from checked parameters.
pub(super) fn build(
    spec: &'static WorkloadSpec,
    parameters: Parameters,
    seed: u64,
) -> Result<SyntheticWorkload, SynthError> {
    let targets = parameters.get("targets") as u32;
    let base_requests = parameters.get("requests") as u64;
    check(&parameters)?;
    let (hot, hot_counts) = hot_counts(&parameters, base_requests);
    let numbers = permutation(targets + hot, &mut stream(seed, Purpose::Numbering));
    let (base, hot_numbers) = numbers.split_at(targets as usize);

    // Sizes are fitted at the published length even when fewer requests are asked for: a shorter
    // run then has the same documents, and the guarantee of one request each cannot distort them.
    let weights = popularity(&parameters).weights(targets);
    let fitted_requests = spec
        .parameter("requests")
        .map_or(base_requests, |declared| base_requests.max(declared.default as u64));
    let by_rank = apportion_at_least_one(&weights, fitted_requests);
    let mut counts = vec![0_u64; numbers.len()];
    let mut sizes = vec![0.0; numbers.len()];
    let drawn = draw_sizes(&parameters, &by_rank, seed)?;
    for ((&number, &count), size) in base.iter().zip(&by_rank).zip(drawn) {
        counts[number as usize] = count;
        sizes[number as usize] = size;
    }
    let mut order = by_falling_count(&counts);
    order.truncate(base.len());
    let corrections = fit_sizes(&parameters, &mut sizes, &counts, &order)?;

    if fitted_requests > base_requests {
        for (&number, count) in base.iter().zip(apportion_at_least_one(&weights, base_requests)) {
            counts[number as usize] = count;
        }
    }
    for (&number, &count) in hot_numbers.iter().zip(&hot_counts) {
        counts[number as usize] = count;
        sizes[number as usize] = parameters.get("hot_size_bytes");
    }
    let mut hot: Vec<u32> = hot_numbers.to_vec();
    hot.sort_unstable();
    let requests = base_requests + hot_counts.iter().sum::<u64>();
    let rate = parameters.get("rate");
    let arrivals = if let Some(gap) = service::arrivals(&parameters) {
        ArrivalProcess::Renewal(gap)
    } else if rate > 0.0 {
        ArrivalProcess::Poisson { gap_ns: 1e9 / rate }
    } else {
        per_minute(&day_of(spec.name), requests, parameters.get("minute_s"))
    };
    let drift = Drift::new(&parameters, &day_of(spec.name), (base, &counts, &sizes));
    let mut windows = draw_windows(&parameters, base, &counts, seed);
    if let Some(drift) = &drift {
        give_bursts(&mut windows, base, drift, &sizes);
    }
    Ok(SyntheticWorkload {
        spec,
        windows,
        drift,
        seed,
        sizes: sizes.iter().map(|&size| size as u64).collect(),
        counts,
        hot,
        arrivals,
        service: service::service(&parameters),
        answers: AnswerMix::new(&parameters),
        clients: parameters.get("clients") as u32,
        corrections,
        requests,
        parameters,
    })
}

/// Checks that the parameters are consistent.
fn check(parameters: &Parameters) -> Result<(), SynthError> {
    let value = |name| parameters.get(name);
    let refuse = |reason: String| Err(parameters.contradiction(reason));
    if value("requests") < value("targets") {
        return refuse(format!(
            "requests = {} is less than targets = {}, but every target is requested at least \
             once; for a shorter excerpt, take the first requests of the full workload",
            value("requests"),
            value("targets")
        ));
    }
    if value("window_min") > value("window_max") {
        return refuse("window_min is greater than window_max".to_owned());
    }
    let mean_bytes = value("total_mib") * MIB / value("targets");
    if mean_bytes > 0.5 * value("size_max_mib") * MIB || mean_bytes < 64.0 {
        return refuse(format!(
            "total_mib = {} over {} targets is {mean_bytes:.0} bytes each; the mean must lie \
             between 64 bytes and half of size_max_mib = {}",
            value("total_mib"),
            value("targets"),
            value("size_max_mib")
        ));
    }
    service::check(parameters)?;
    AnswerMix::check(parameters)?;
    let rate = value("rate");
    if rate > 0.0 && value("requests") / rate > LONGEST_S {
        return refuse(format!(
            "at rate = {rate} requests per second the workload would last more than 300 years"
        ));
    }
    Ok(())
}

fn popularity(parameters: &Parameters) -> Popularity {
    Popularity {
        exponent: parameters.get("exponent"),
        shift: parameters.get("shift"),
        break_rank: parameters.get("break_rank"),
        tail_exponent: parameters.get("tail_exponent"),
        stretch_rank: parameters.get("stretch_rank"),
        stretch: parameters.get("stretch"),
    }
}

/// Number of hot targets and the requests of each: as many as give them together their share of
/// all requests when they are added to the others.
fn hot_counts(parameters: &Parameters, base_requests: u64) -> (u32, Vec<u64>) {
    let targets = parameters.get("hot_targets");
    if targets < 1.0 {
        return (0, Vec::new());
    }
    let share = parameters.get("hot_share");
    let added = (base_requests as f64 * share / (1.0 - share)).round() as u64;
    let equal = vec![1.0; targets as usize];
    (targets as u32, apportion_at_least_one(&equal, added.max(equal.len() as u64)))
}

/// The size statistics of a day, for the workload that declares them.
fn day_figures(parameters: &Parameters) -> Option<DayFigures> {
    let request_median_bytes = parameters.get("request_median_bytes");
    (request_median_bytes > 0.0).then(|| DayFigures {
        total_bytes: parameters.get("total_mib") * MIB,
        file_median_bytes: parameters.get("file_median_bytes"),
        file_max_bytes: parameters.get("size_max_mib") * MIB,
        request_mean_bytes: parameters.get("request_mean_bytes"),
        request_median_bytes,
    })
}

/// Sizes in bytes by rank, not yet fitted.
fn draw_sizes(parameters: &Parameters, counts_by_rank: &[u64], seed: u64) -> Result<Vec<f64>, SynthError> {
    let figures = day_figures(parameters);
    // Where the largest size is published, no other file may reach it once they are fitted.
    let below_largest = if figures.is_some() { 0.7 } else { 1.0 };
    let law = SizeLaw {
        sigma: parameters.get("size_sigma"),
        tail_share: parameters.get("size_tail_share"),
        tail_exponent: parameters.get("size_tail_exponent"),
        max_bytes: below_largest * parameters.get("size_max_mib") * MIB,
    };
    let total = parameters.get("total_mib") * MIB;
    let count = counts_by_rank.len();
    let mut ascending = law.draw(count, total, &mut stream(seed, Purpose::Sizes));
    let mut pairing = stream(seed, Purpose::Pairing);
    if let Some(figures) = figures {
        day::fit_files(&mut ascending, &figures).map_err(|reason| parameters.contradiction(reason))?;
        return Ok(day::pair(&ascending, counts_by_rank, &figures, &mut pairing));
    }
    let copula = Copula::draw(count, &mut pairing);
    let mean_bytes = parameters.get("request_mean_bytes");
    if mean_bytes > 0.0 {
        return pair_to_mean(&copula, &ascending, counts_by_rank, mean_bytes)
            .map_err(|reason| parameters.contradiction(reason));
    }
    let (correlation, flat_share) = (parameters.get("correlation"), parameters.get("flat_share"));
    Ok(copula.pair(&ascending, correlation, flat_share))
}

/// Sizes by rank, so correlated with it that a request has this mean size.
fn pair_to_mean(
    copula: &Copula,
    ascending: &[f64],
    counts_by_rank: &[u64],
    mean_bytes: f64,
) -> Result<Vec<f64>, String> {
    let requests: u64 = counts_by_rank.iter().sum();
    let mean = |sizes: &[f64]| {
        let sent: f64 = sizes.iter().zip(counts_by_rank).map(|(size, &count)| size * count as f64).sum();
        sent / requests as f64
    };
    // The more correlated, the smaller the popular ones.
    let paired = |correlation| copula.pair(ascending, correlation, 0.0);
    let sizes = paired(bisect(|correlation| mean(&paired(correlation)) > mean_bytes));
    let found_bytes = mean(&sizes);
    if (found_bytes / mean_bytes - 1.0).abs() > 0.01 {
        return Err(format!(
            "request_mean_bytes = {mean_bytes} cannot be had of these files; the nearest mean is {found_bytes:.0}"
        ));
    }
    Ok(sizes)
}

/// The last step of the calibration; returns the factors it applied.
fn fit_sizes(
    parameters: &Parameters,
    sizes: &mut [f64],
    counts: &[u64],
    order: &[usize],
) -> Result<Vec<f64>, SynthError> {
    if let Some(figures) = day_figures(parameters) {
        return day::fit_day(sizes, counts, &figures).map_err(|reason| parameters.contradiction(reason));
    }
    let published = [
        (0.97, parameters.get("cover97_mib")),
        (0.98, parameters.get("cover98_mib")),
        (0.99, parameters.get("cover99_mib")),
        (1.0, parameters.get("total_mib")),
    ];
    let points: Vec<CoveragePoint> = published
        .iter()
        .filter(|(_, mib)| *mib > 0.0)
        .map(|&(share, mib)| CoveragePoint { share, bytes: mib * MIB })
        .collect();
    if !points.is_sorted_by(|a, b| a.bytes < b.bytes) {
        return Err(parameters.contradiction(
            "cover97_mib, cover98_mib, cover99_mib and total_mib must rise in this order".into(),
        ));
    }
    let factors = fit_coverage(sizes, counts, order, &points);
    round_with_carry(sizes, order);
    Ok(factors)
}

/// The window of every target, by number; hot targets live throughout.
fn draw_windows(parameters: &Parameters, base: &[u32], counts: &[u64], seed: u64) -> Vec<ActiveWindow> {
    let mut windows = vec![ActiveWindow::WHOLE; counts.len()];
    let mut rng = stream(seed, Purpose::Windows);
    let (shortest, longest) = (parameters.get("window_min"), parameters.get("window_max"));
    // Workloads without windows declare no such rank.
    let Some(steady) = (parameters.get("window_from_rank") as usize).checked_sub(1) else { return windows };
    for &number in base.iter().skip(steady) {
        let target = number as usize;
        let length = shortest * libm::pow(longest / shortest, uniform(&mut rng));
        let (start, dither) = (1.0 - uniform(&mut rng), 1.0 - uniform(&mut rng));
        windows[target] = ActiveWindow::new(start, length, counts[target], dither);
    }
    windows
}

/// Deals bursting targets to the bursts in turn; large ones live throughout, for the few largest decide on how much
/// sizes vary.
fn give_bursts(windows: &mut [ActiveWindow], base: &[u32], drift: &Drift, sizes: &[f64]) {
    for &target in base.iter().filter(|&&target| drift.is_large(sizes[target as usize])) {
        windows[target as usize] = ActiveWindow::WHOLE;
    }
    let bursting = base.iter().filter(|&&target| drift.kind(target) == DriftKind::Bursting);
    for (turn, &target) in bursting.enumerate() {
        let burst = (turn % BURSTS) as f64;
        let (start, end) = (burst / BURSTS as f64, (burst + 1.0) / BURSTS as f64);
        windows[target as usize] = ActiveWindow { start, end, ..ActiveWindow::WHOLE };
    }
}
