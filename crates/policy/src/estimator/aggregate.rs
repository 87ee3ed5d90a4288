//! From cost boards to weights: the aggregation of Hyun et al., section 3.3 and figure 5.

/// Where miss ratios and loads count as low, medium and high.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadThresholds {
    /// Miss ratios, rising.
    pub miss: [f64; 3],
    /// CPU loads of the cluster, rising: CPU time in a period over the time of all CPUs.
    pub load: [f64; 3],
}

impl Default for LoadThresholds {
    /// The paper names none. These follow its words, and results hardly depend on them.
    fn default() -> Self {
        Self { miss: [0.2, 0.3, 0.5], load: [0.5, 0.8, 0.9] }
    }
}

/// The state of the cluster in recent periods.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ClusterState {
    /// MR: misses over static requests.
    pub miss_ratio: f64,
    /// `C_p` as a share: CPU time of all requests of a period over the time of all CPUs.
    pub load: f64,
    /// `C_r`: CPU time of a request, in seconds.
    pub request_cpu_s: f64,
    /// `C_m`: disk time of a miss, in seconds.
    pub miss_disk_s: f64,
}

/// What is on the boards of one back-end, in seconds, and its own miss ratio.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BoardTotals {
    /// CPU time in the next period, in the one after it, and in all.
    pub cpu_s: [f64; 3],
    /// Disk time in the next period, in the one after it, and in all.
    pub disk_s: [f64; 3],
    /// `MR_k`.
    pub miss_ratio: f64,
}

/// `L_k`: the load of a back-end, in requests.
///
/// ```text
/// if MR < miss_l
///     L <- CPU time of the next period (C_p < load_l), of two (C_p < load_m), or of all, over C_r
///     if MR_k > miss_m:  L <- L + disk time of two periods / C_m
/// else
///     L <- disk time of all periods / C_m
///     if MR < miss_h
///         L <- L + CPU time of the next period / C_r
///         if C_p > load_h or (C_p > load_m and MR < miss_m):  L <- L + CPU time of the period after it / C_r
/// ```
#[must_use]
pub fn load_index(cluster: &ClusterState, of: &BoardTotals, thresholds: &LoadThresholds) -> f64 {
    let ([miss_l, miss_m, miss_h], [load_l, load_m, load_h]) = (thresholds.miss, thresholds.load);
    let ([next_cpu, after_cpu, all_cpu], [next_disk, after_disk, all_disk]) = (of.cpu_s, of.disk_s);
    let requests = |cpu_s: f64| over(cpu_s, cluster.request_cpu_s);
    let misses = |disk_s: f64| over(disk_s, cluster.miss_disk_s);
    if cluster.miss_ratio < miss_l {
        let cpu_s = match cluster.load {
            load if load < load_l => next_cpu,
            load if load < load_m => next_cpu + after_cpu,
            _ => all_cpu,
        };
        let disk = if of.miss_ratio > miss_m { misses(next_disk + after_disk) } else { 0.0 };
        return requests(cpu_s) + disk;
    }
    let mut index = misses(all_disk);
    if cluster.miss_ratio < miss_h {
        index += requests(next_cpu);
        if cluster.load > load_h || (cluster.load > load_m && cluster.miss_ratio < miss_m) {
            index += requests(after_cpu);
        }
    }
    index
}

fn over(time_s: f64, unit_s: f64) -> f64 {
    if unit_s > 0.0 { time_s / unit_s } else { 0.0 }
}

/// `W_k` of each back-end: `most`, less the difference of its load from the least one, all differences reduced in proportion so that none
/// is above `t_diff`. `fineness` is the units of weight to a request, 1 in the paper.
#[must_use]
pub fn weights(loads: &[f64], t_diff: f64, most: u32, fineness: f64) -> Vec<u32> {
    // Figure 5 begins with 0, by which the least load would be 0 whatever the loads are.
    let least = loads.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = loads.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let spread = highest - least;
    let reduced = if spread <= t_diff { 1.0 } else { t_diff / spread };
    loads.iter().map(|load| below(most, (load - least) * reduced * fineness)).collect()
}

/// Weights that level the loads: each back-end gets connections until all have as many, as far as `connections` of one period
/// reach. Differences beyond that count no more, while smaller ones are met in full.
#[must_use]
pub fn level(loads: &[f64], connections: f64, most: u32) -> Vec<u32> {
    let mut sorted = loads.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(&least) = sorted.first() else { return Vec::new() };
    // The level up to which `connections` fill the loads from below.
    let (mut filled, mut level) = (0.0, least);
    for (below, &load) in sorted.iter().enumerate().skip(1) {
        let step = (load - level) * below as f64;
        if filled + step >= connections {
            break;
        }
        (filled, level) = (filled + step, load);
    }
    let under = sorted.iter().filter(|&&load| load <= level).count();
    level += (connections - filled).max(0.0) / under as f64;
    loads.iter().map(|load| below(most, load.min(level) - least)).collect()
}

/// `most` less `units`, and at least 1.
fn below(most: u32, units: f64) -> u32 {
    let units = units.clamp(0.0, f64::from(u32::MAX)).round() as u32;
    most.saturating_sub(units).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTALS: BoardTotals =
        BoardTotals { cpu_s: [0.2, 0.1, 0.7], disk_s: [0.16, 0.08, 0.32], miss_ratio: 0.1 };

    fn index(miss_ratio: f64, load: f64, own_miss_ratio: f64) -> f64 {
        let cluster = ClusterState { miss_ratio, load, request_cpu_s: 0.01, miss_disk_s: 0.016 };
        let totals = BoardTotals { miss_ratio: own_miss_ratio, ..TOTALS };
        (load_index(&cluster, &totals, &LoadThresholds::default()) * 1e6).round() / 1e6
    }

    #[test]
    fn figure_5_case_by_case() {
        // Few misses: CPU time of one period, of two, of all.
        assert_eq!([index(0.1, 0.4, 0.1), index(0.1, 0.7, 0.1), index(0.1, 0.85, 0.1)], [20.0, 30.0, 70.0]);
        // One back-end that misses more than the others: disk time of two periods.
        assert_eq!(index(0.1, 0.4, 0.31), 20.0 + 15.0);
        // Many misses: all disk time, and CPU time of one period, of two.
        assert_eq!(index(0.25, 0.7, 0.1), 20.0 + 20.0);
        assert_eq!(index(0.25, 0.85, 0.1), 20.0 + 30.0);
        assert_eq!([index(0.4, 0.85, 0.1), index(0.4, 0.95, 0.1)], [40.0, 50.0]);
        // Nearly all miss: the disk alone.
        assert_eq!(index(0.6, 0.95, 0.1), 20.0);
    }

    #[test]
    fn without_requests_there_is_no_load() {
        let nothing = ClusterState::default();
        assert_eq!(load_index(&nothing, &TOTALS, &LoadThresholds::default()), 0.0);
    }

    #[test]
    fn differences_are_reduced_in_proportion() {
        assert_eq!(weights(&[7.0, 10.0, 27.0], 50.0, 1000, 1.0), [1000, 997, 980]);
        assert_eq!(weights(&[7.0, 10.0, 27.0], 10.0, 1000, 1.0), [1000, 998, 990]);
        assert_eq!(weights(&[7.0, 10.0, 27.0], 10.0, 1000, 10.0), [1000, 985, 900]);
        assert_eq!(weights(&[3.0, 3.0], 0.0, 5, 1.0), [5, 5]);
        assert_eq!(weights(&[0.0, 100.0], 50.0, 8, 1.0), [8, 1]);
        assert!(weights(&[], 1.0, 1, 1.0).is_empty());
    }

    #[test]
    fn levelling_fills_from_below() {
        // 3 connections lift the first to 10; 5 more lift both to 12.5.
        assert_eq!(level(&[7.0, 10.0, 27.0], 3.0, 100), [100, 97, 97]);
        assert_eq!(level(&[7.0, 10.0, 27.0], 8.0, 100), [100, 97, 94]);
        // Enough for all: differences in full.
        assert_eq!(level(&[7.0, 10.0, 27.0], 1000.0, 100), [100, 97, 80]);
        assert_eq!(level(&[5.0], 3.0, 9), [9]);
        assert!(level(&[], 3.0, 9).is_empty());
    }
}
