//! How the mix of requests changes over the day: which targets make up the peaks.
//!
//! Without drift every target's requests are spread over the trace in proportion to all requests. With it there are
//! three kinds of targets:
//! - *Steady* ones, rare or large: their rate in time follows the power `1 - surge` of the rate of all requests, so
//!   that at a surge of 1 they are asked for as often by night as during a match.
//! - *Bursting* ones, small and rare: each is asked for in one of [`BURSTS`] bursts only and nowhere else.
//! - *Popular* ones: they take what is left of each minute, and so make up the peaks.
//!
//! Each kind has a monotone map from its own places (uniform over 0 to 1) to places in the trace. The three densities
//! add up to that of all requests in every minute, so arrivals per minute stay what the profile says.

use super::parameters::DRIFT_OFF;
use super::spec::Parameters;

/// Bursts of new files; each has its share of the bursting targets.
pub(super) const BURSTS: usize = 6;
/// Minute of the day in which the first begins, minutes from one to the next, and minutes that each lasts: all within
/// the time from 35,000 to 45,300 s in which the study observed sharp oscillations.
const BURST_MINUTES: (usize, usize, usize) = (600, 30, 5);
/// Minutes of the day that these are given in.
const DAY_MINUTES: usize = 1_440;

/// When a target is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DriftKind {
    /// Makes up the peaks.
    Popular,
    /// Has a smaller part in the peaks.
    Steady,
    /// Requested in one burst only.
    Bursting,
}

const KINDS: usize = 3;

/// A monotone, piecewise linear map of the interval from 0 to 1 onto itself.
#[derive(Debug, Clone)]
struct Warp {
    /// Own places at the ends of the minutes.
    from: Vec<f64>,
    /// Places in the trace there.
    to: Vec<f64>,
}

impl Warp {
    /// `own` and `all` are the requests of each minute.
    fn new(own: &[f64], all: &[f64]) -> Self {
        Self { from: running_shares(own), to: running_shares(all) }
    }

    fn place(&self, own: f64) -> f64 {
        let last = self.from.len() - 1;
        let at = self.from.partition_point(|&end| end < own).clamp(1, last);
        let (low, high) = (self.from[at - 1], self.from[at]);
        let within = if high > low { ((own - low) / (high - low)).clamp(0.0, 1.0) } else { 1.0 };
        self.to[at - 1] + within * (self.to[at] - self.to[at - 1])
    }
}

/// From 0 to exactly 1, one more than there are weights.
fn running_shares(weights: &[f64]) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    let mut running = 0.0;
    let mut shares = vec![0.0];
    for weight in weights {
        running += weight;
        shares.push((running / sum).min(1.0));
    }
    if let Some(last) = shares.last_mut() {
        *last = 1.0;
    }
    shares
}

/// See the module's documentation.
#[derive(Debug, Clone)]
pub(super) struct Drift {
    surge: f64,
    /// Files above this take no part in peaks.
    large_bytes: f64,
    /// By target.
    kinds: Vec<DriftKind>,
    warps: [Warp; KINDS],
}

impl Drift {
    /// The drift by these parameters, over a day with this profile. `order` has the targets by falling
    /// popularity.
    pub(super) fn new(
        parameters: &Parameters,
        profile: &[u64],
        (order, counts, sizes): (&[u32], &[u64], &[f64]),
    ) -> Option<Self> {
        let (surge, burst_share) = (parameters.get("surge"), parameters.get("burst_share"));
        if surge <= DRIFT_OFF && burst_share <= DRIFT_OFF {
            return None;
        }
        let (rank, bytes) = (parameters.get("surge_rank") as usize, parameters.get("surge_size_bytes"));
        let mut kinds = vec![DriftKind::Popular; counts.len()];
        let mut wanted = (burst_share * order.len() as f64) as usize;
        // Start with the rarest: targets requested only in bursts are not popular.
        for (at, &target) in order.iter().enumerate().rev() {
            let small = sizes[target as usize] <= bytes;
            kinds[target as usize] = if small && at >= rank && wanted > 0 {
                wanted -= 1;
                DriftKind::Bursting
            } else if at >= rank || !small {
                DriftKind::Steady
            } else {
                DriftKind::Popular
            };
        }
        let warps = warps(surge, &kinds, counts, profile);
        Some(Self { surge, large_bytes: bytes, kinds, warps })
    }

    /// The same targets on a day with another profile.
    pub(super) fn over(&mut self, counts: &[u64], profile: &[u64]) {
        self.warps = warps(self.surge, &self.kinds, counts, profile);
    }

    pub(super) fn is_large(&self, size_bytes: f64) -> bool {
        size_bytes > self.large_bytes
    }

    pub(super) fn kind(&self, target: u32) -> DriftKind {
        self.kinds.get(target as usize).copied().unwrap_or(DriftKind::Popular)
    }

    /// Place in the trace of what lies at `own` among the requests of the target's kind.
    pub(super) fn place(&self, target: u32, own: f64) -> f64 {
        self.warps[self.kind(target) as usize].place(own)
    }
}

fn warps(surge: f64, kinds: &[DriftKind], counts: &[u64], profile: &[u64]) -> [Warp; KINDS] {
    let mut requests = [0.0; KINDS];
    for (&kind, &count) in kinds.iter().zip(counts) {
        requests[kind as usize] += count as f64;
    }
    let sum: f64 = profile.iter().map(|&minute| minute as f64).sum();
    let total: f64 = requests.iter().sum();
    let all: Vec<f64> = profile.iter().map(|&minute| minute as f64 / sum * total).collect();
    let steady = all.iter().map(|&minute| if minute > 0.0 { libm::pow(minute, 1.0 - surge) } else { 0.0 });
    let steady = scaled(&steady.collect::<Vec<_>>(), requests[DriftKind::Steady as usize], &all);
    let bursts = (0..all.len()).map(|minute| if in_burst(minute, all.len()) { all[minute] } else { 0.0 });
    let room: Vec<f64> = all.iter().zip(&steady).map(|(all, steady)| all - steady).collect();
    let bursting = scaled(&bursts.collect::<Vec<_>>(), requests[DriftKind::Bursting as usize], &room);
    let left: Vec<f64> = room.iter().zip(&bursting).map(|(room, taken)| (room - taken).max(0.0)).collect();
    [Warp::new(&or_all(left, &all), &all), Warp::new(&or_all(steady, &all), &all), {
        Warp::new(&or_all(bursting, &all), &all)
    }]
}

/// If nothing is left for a kind, spreads it like all requests.
fn or_all(own: Vec<f64>, all: &[f64]) -> Vec<f64> {
    if own.iter().sum::<f64>() > 0.0 { own } else { all.to_vec() }
}

fn in_burst(minute: usize, minutes: usize) -> bool {
    let (first, step, length) = BURST_MINUTES;
    let of_day = minute * DAY_MINUTES / minutes.max(1);
    of_day >= first && (of_day - first) / step < BURSTS && (of_day - first) % step < length
}

/// Scales `shape` to the sum `requests`, but nowhere above nine tenths of `most`; the excess goes elsewhere
/// in proportion, as far as there is room.
fn scaled(shape: &[f64], requests: f64, most: &[f64]) -> Vec<f64> {
    const ROUNDS: usize = 30;
    let mut out = vec![0.0; shape.len()];
    for _ in 0..ROUNDS {
        let missing = requests - out.iter().sum::<f64>();
        let open: f64 = shape
            .iter()
            .zip(&out)
            .zip(most)
            .filter(|((_, out), most)| **out < 0.9 * **most)
            .map(|((s, _), _)| s)
            .sum();
        if missing <= 1e-9 * requests || open <= 0.0 {
            break;
        }
        for ((value, shape), most) in out.iter_mut().zip(shape).zip(most) {
            if *value < 0.9 * most {
                *value = (*value + missing * shape / open).min(0.9 * most);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warp_is_monotone_and_meets_its_knots() {
        let warp = Warp::new(&[1.0, 0.0, 3.0], &[1.0, 1.0, 2.0]);
        for (own, place) in [(0.0, 0.0), (0.125, 0.125), (0.25, 0.25), (0.625, 0.75), (1.0, 1.0)] {
            assert!((warp.place(own) - place).abs() < 1e-12, "{own}: {}", warp.place(own));
        }
        assert!((0..=100).map(|i| warp.place(f64::from(i) / 100.0)).is_sorted());
    }

    #[test]
    fn what_does_not_fit_goes_elsewhere() {
        let out = scaled(&[1.0, 1.0, 0.0], 10.0, &[4.0, 20.0, 20.0]);
        assert!((out[0] - 3.6).abs() < 1e-9 && (out[1] - 6.4).abs() < 1e-6, "{out:?}");
        assert_eq!(out[2], 0.0);
    }

    #[test]
    fn kinds_add_up_to_the_profile() {
        let kinds = [DriftKind::Popular, DriftKind::Steady, DriftKind::Bursting];
        let counts = [700, 292, 8];
        let profile: Vec<u64> = (0..1_440).map(|m| if m / 60 == 17 { 600 } else { 100 }).collect();
        let warps = warps(1.0, &kinds, &counts, &profile);
        // Requests of each kind up to a place, by inverting its map; together they are uniform.
        for place in [0.1, 0.42, 0.5, 0.75, 0.9] {
            let below: f64 = warps
                .iter()
                .zip(counts)
                .map(|(warp, count)| {
                    let steps = 100_000;
                    let inside =
                        (0..steps).filter(|&i| warp.place(f64::from(i) / f64::from(steps)) < place).count();
                    inside as f64 / f64::from(steps) * count as f64
                })
                .sum();
            assert!((below - 1_000.0 * place).abs() < 1.0, "{place}: {below}");
        }
        // A surge of 1: the same in each minute, whatever its arrivals.
        let steady = &warps[1];
        assert!(
            (steady.place(0.5) - running_shares(&profile.iter().map(|&p| p as f64).collect::<Vec<_>>())[720])
                .abs()
                < 1e-3
        );
    }

    #[test]
    fn bursts_lie_where_they_are_said_to() {
        let minutes: Vec<usize> = (0..1_440).filter(|&m| in_burst(m, 1_440)).collect();
        assert_eq!(minutes.len(), 30);
        assert_eq!((minutes[0], minutes[29]), (600, 754));
        assert_eq!((0..144).filter(|&m| in_burst(m, 144)).count(), 6);
    }
}
