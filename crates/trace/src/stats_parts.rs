//! Parts of the statistics: arrivals over time, size classes, the popularity law, exact medians.

use serde::Serialize;

use crate::error::TraceError;
use crate::time::NS_PER_S;
use crate::trace::Trace;

/// The most bins of arrivals; longer traces get wider bins.
const MAX_BINS: u64 = 4096;

/// Width of the bins to begin with, in seconds.
const BIN_S: u64 = 60;

/// Requests per bin of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArrivalBins {
    /// Start of the first bin in seconds since the trace's origin, a multiple of 60.
    pub start_s: u64,
    /// Width of a bin in seconds: 60, doubled until at most 4,096 bins cover the trace.
    pub bin_s: u64,
    /// Requests in each bin, up to the last that has any.
    pub requests: Vec<u64>,
}

impl ArrivalBins {
    pub(crate) fn new(first_ns: u64) -> Self {
        Self { start_s: first_ns / NS_PER_S / BIN_S * BIN_S, bin_s: BIN_S, requests: Vec::new() }
    }

    pub(crate) fn add(&mut self, time_ns: u64) {
        let since_s = time_ns / NS_PER_S - self.start_s;
        while since_s / self.bin_s >= MAX_BINS {
            self.bin_s *= 2;
            let pairs = self.requests.chunks(2).map(|pair| pair.iter().sum());
            self.requests = pairs.collect();
        }
        let bin = (since_s / self.bin_s) as usize;
        if bin >= self.requests.len() {
            self.requests.resize(bin + 1, 0);
        }
        self.requests[bin] += 1;
    }
}

/// The number of sizes in one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SizeBin {
    /// Smallest size of the class in bytes: 0 or a power of two.
    pub from_bytes: u64,
    /// Size in bytes below which the class ends: 1 or the next power of two.
    pub below_bytes: u64,
    /// How many sizes lie in the class.
    pub count: u64,
}

/// Counts sizes by powers of two: class 0 holds size 0, class k sizes from 2^(k-1) up to 2^k.
#[derive(Debug, Clone)]
pub(crate) struct SizeCounts([u64; 65]);

impl Default for SizeCounts {
    fn default() -> Self {
        Self([0; 65])
    }
}

impl SizeCounts {
    pub(crate) fn add(&mut self, size_bytes: u64) {
        self.0[(u64::BITS - size_bytes.leading_zeros()) as usize] += 1;
    }

    /// The classes from the smallest to the largest that has any size.
    pub(crate) fn bins(&self) -> Vec<SizeBin> {
        let used = |count: &u64| *count > 0;
        let (Some(first), Some(last)) = (self.0.iter().position(used), self.0.iter().rposition(used)) else {
            return Vec::new();
        };
        (first..=last)
            .map(|class| SizeBin {
                from_bytes: if class == 0 { 0 } else { 1 << (class - 1) },
                below_bytes: 1u64.checked_shl(class as u32).unwrap_or(u64::MAX),
                count: self.0[class],
            })
            .collect()
    }
}

/// Mean of the two middle request sizes in bytes, or the middle one; 0 without requests.
///
/// Exact in constant memory: the class of the wanted rank is divided further, with another pass
/// over the trace each time, until it holds a single size.
pub(crate) fn median_request_bytes(trace: &Trace, bins: &[SizeBin]) -> Result<f64, TraceError> {
    let requests = trace.len();
    if requests == 0 {
        return Ok(0.0);
    }
    let low = size_at(trace, bins, (requests - 1) / 2)?;
    let high = if requests.is_multiple_of(2) { size_at(trace, bins, requests / 2)? } else { low };
    Ok((low as f64 + high as f64) / 2.0)
}

/// The request size in bytes that has `rank` (from 0) when sorted.
fn size_at(trace: &Trace, bins: &[SizeBin], mut rank: u64) -> Result<u64, TraceError> {
    /// The number of parts into which one pass divides a class.
    const PARTS: u64 = 1 << 16;
    let (mut from, mut width) = (0, 1);
    for bin in bins {
        if rank < bin.count {
            (from, width) = (bin.from_bytes, bin.below_bytes - bin.from_bytes);
            break;
        }
        rank -= bin.count;
    }
    while width > 1 {
        let part_bytes = width.div_ceil(PARTS);
        let mut counts = vec![0u64; width.div_ceil(part_bytes) as usize];
        for record in trace.open_as_stamped() {
            let size = record?.size_bytes;
            if size >= from && size - from < width {
                counts[((size - from) / part_bytes) as usize] += 1;
            }
        }
        let mut part = 0;
        while part + 1 < counts.len() && rank >= counts[part] {
            rank -= counts[part];
            part += 1;
        }
        from += part as u64 * part_bytes;
        width = part_bytes;
    }
    Ok(from)
}

/// Exponent of the Zipf law that fits the popularity of targets best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ZipfFit {
    /// The exponent s of popularity ~ rank^-s.
    pub exponent: f64,
    /// The fit is over ranks from 1 to this one, the last with at least ten requests: below, chance
    /// decides the order of targets and bends the curve.
    pub ranks: u64,
}

impl ZipfFit {
    /// Maximum likelihood over the ranks with at least ten requests, `counts` falling: the exponent
    /// at which the expected logarithm of the rank of a request to one of them equals the mean
    /// found (Clauset, Shalizi and Newman, SIAM Review 51, 2009, for a bounded range).
    ///
    /// `None` with fewer than ten such targets.
    pub(crate) fn of(counts: &[u64]) -> Option<Self> {
        const LEAST_REQUESTS: u64 = 10;
        const LEAST_RANKS: usize = 10;
        let ranks = counts.partition_point(|&count| count >= LEAST_REQUESTS);
        if ranks < LEAST_RANKS {
            return None;
        }
        let logs: Vec<f64> = (1..=ranks).map(|rank| libm::log(rank as f64)).collect();
        let requests: u64 = counts[..ranks].iter().sum();
        let found =
            logs.iter().zip(counts).map(|(log, &count)| log * count as f64).sum::<f64>() / requests as f64;
        let expected = |exponent: f64| {
            let (mut weights, mut weighted) = (0.0, 0.0);
            for log in &logs {
                let weight = libm::exp(-exponent * log);
                weights += weight;
                weighted += weight * log;
            }
            weighted / weights
        };
        // The expected logarithm falls as the exponent grows; forty halvings reach 1e-11.
        let (mut low, mut high) = (0.0, 10.0);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if expected(middle) > found {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(Self { exponent: (low + high) / 2.0, ranks: ranks as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng as _, SeedableRng as _};

    #[test]
    fn bins_widen_when_the_trace_is_long() {
        let mut arrivals = ArrivalBins::new(125 * NS_PER_S);
        assert_eq!(arrivals.start_s, 120);
        for s in [125, 179, 180, 120 + 60 * 4095] {
            arrivals.add(s * NS_PER_S);
        }
        assert_eq!((arrivals.bin_s, arrivals.requests.len()), (60, 4096));
        assert_eq!(arrivals.requests[..2], [2, 1]);
        arrivals.add((120 + 60 * 4096) * NS_PER_S);
        assert_eq!((arrivals.bin_s, arrivals.requests.len()), (120, 2049));
        assert_eq!(arrivals.requests[0], 3);
        arrivals.add(u64::MAX);
        assert!(arrivals.requests.len() <= 4096);
        assert_eq!(arrivals.requests.iter().sum::<u64>(), 6);
    }

    #[test]
    fn classes_are_powers_of_two() {
        let mut classes = SizeCounts::default();
        assert!(classes.bins().is_empty());
        for size in [1, 4, 7, 8, u64::MAX] {
            classes.add(size);
        }
        let bins = classes.bins();
        let counted: Vec<_> = bins.iter().filter(|b| b.count > 0).copied().collect();
        let bin = |from_bytes, below_bytes, count| SizeBin { from_bytes, below_bytes, count };
        assert_eq!(counted, [bin(1, 2, 1), bin(4, 8, 2), bin(8, 16, 1), bin(1 << 63, u64::MAX, 1)]);
        classes.add(0);
        assert_eq!(classes.bins()[0], bin(0, 1, 1));
    }

    #[test]
    fn medians_are_exact_for_any_size() {
        let sizes_list: [&[u64]; 6] = [
            &[5],
            &[0, 0, 1],
            &[3, 1, 2, 9],
            &[1_000_003, 7, 1_000_001, 1_000_002],
            &[1 << 53, (1 << 53) - 1, (1 << 53) - 3, 0],
            &[0, 8_000_000_000],
        ];
        for sizes in sizes_list {
            let mut targets = crate::TargetTable::new();
            targets.intern(b"/");
            let records = sizes.iter().map(|&size_bytes| crate::Record {
                time_ns: 0,
                size_bytes,
                service_ns: 0,
                target: 0,
                client: 0,
                class: 0,
                kind: crate::RecordKind::Static,
                ..crate::Record::default()
            });
            let trace = Trace::from_records(targets, records).unwrap();
            let mut classes = SizeCounts::default();
            sizes.iter().for_each(|&size| classes.add(size));
            let mut sorted = sizes.to_vec();
            sorted.sort_unstable();
            let half = sorted.len() / 2;
            let expected = if sorted.len() % 2 == 1 {
                sorted[half] as f64
            } else {
                (sorted[half - 1] as f64 + sorted[half] as f64) / 2.0
            };
            assert_eq!(median_request_bytes(&trace, &classes.bins()).unwrap(), expected, "{sizes:?}");
        }
    }

    /// Counts of `requests` draws from a Zipf law over `targets` ranks, falling.
    fn zipf_counts(exponent: f64, targets: usize, requests: usize) -> Vec<u64> {
        let mut sum = 0.0;
        let cumulative: Vec<f64> = (1..=targets)
            .map(|rank| {
                sum += libm::pow(rank as f64, -exponent);
                sum
            })
            .collect();
        let mut random = rand_pcg::Pcg64::seed_from_u64(3);
        let mut counts = vec![0; targets];
        for _ in 0..requests {
            let draw = random.next_u64() as f64 / u64::MAX as f64 * sum;
            counts[cumulative.partition_point(|&c| c < draw).min(targets - 1)] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    #[test]
    fn the_exponent_of_a_known_law_is_found() {
        for exponent in [0.6, 0.9, 1.2] {
            let fit = ZipfFit::of(&zipf_counts(exponent, 20_000, 500_000)).unwrap();
            assert!((fit.exponent - exponent).abs() < 0.03, "{exponent}: {fit:?}");
            assert!(fit.ranks > 1000);
        }
        let exact: Vec<u64> = (1..=1000).map(|rank| 1_000_000 / rank).collect();
        let fit = ZipfFit::of(&exact).unwrap();
        assert!((fit.exponent - 1.0).abs() < 0.001, "{fit:?}");
    }

    #[test]
    fn few_targets_have_no_exponent() {
        assert_eq!(ZipfFit::of(&[]), None);
        assert_eq!(ZipfFit::of(&[50; 9]), None);
        assert_eq!(ZipfFit::of(&[9; 50]), None);
        assert!(ZipfFit::of(&[50; 10]).unwrap().exponent < 1e-9);
    }
}
