//! What each back-end did, derived from the client's view of every request.

use std::ops::Range;

use plimsoll_origin::{CpuModel, DiskModel};

use crate::load::CacheStatus;

/// A request at a back-end, in seconds since the start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit {
    pub(super) start_s: f64,
    pub(super) end_s: f64,
    pub(super) size_bytes: u64,
    pub(super) cached: CacheStatus,
}

/// What one back-end did during the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BackendShare {
    /// Requests complete.
    pub requests: u64,
    /// Disk reads per request; `None` without any request.
    pub miss_ratio: Option<f64>,
    /// Share of the measurement that its emulated disk worked on the completed requests, at most 1. Computed
    /// from the model's times, not from a clock of the origin.
    pub disk_busy: f64,
    /// Like `disk_busy`, for its emulated CPU.
    pub cpu_busy: f64,
    /// Requests under way, on average.
    pub mean_load: f64,
    /// Share of the time with fewer requests under way than `idle_below`.
    pub idle_ratio: f64,
}

/// All requests that succeeded, by back-end.
pub(super) struct Visits(Vec<Vec<Visit>>);

impl Visits {
    pub(super) fn new(backends: usize) -> Self {
        Self(vec![Vec::new(); backends])
    }

    pub(super) fn add(&mut self, backend: usize, visit: Visit) {
        if let Some(visits) = self.0.get_mut(backend) {
            visits.push(visit);
        }
    }

    /// Requests complete before this time.
    pub(super) fn before(&self, at_s: f64) -> u64 {
        self.0.iter().flatten().filter(|visit| visit.end_s < at_s).count() as u64
    }

    /// What each back-end did within the window.
    pub(super) fn shares(
        &self,
        window: &Range<f64>,
        disk: DiskModel,
        cpu: CpuModel,
        idle_below: f64,
    ) -> Vec<BackendShare> {
        let length_s = (window.end - window.start).max(f64::MIN_POSITIVE);
        let of = |visits: &Vec<Visit>| {
            let mut share = BackendShare::default();
            let (mut reads, mut disk_s, mut cpu_s) = (0u64, 0.0, 0.0);
            for visit in visits.iter().filter(|visit| window.contains(&visit.end_s)) {
                share.requests += 1;
                cpu_s += (cpu.connect + cpu.send_time(visit.size_bytes)).as_secs_f64();
                if matches!(visit.cached, CacheStatus::Miss | CacheStatus::Bypass) {
                    reads += 1;
                    disk_s += disk.read_time(visit.size_bytes).as_secs_f64();
                }
            }
            share.miss_ratio = (share.requests > 0).then(|| reads as f64 / share.requests as f64);
            share.disk_busy = (disk_s / length_s).min(1.0);
            share.cpu_busy = (cpu_s / length_s).min(1.0);
            (share.mean_load, share.idle_ratio) = loads(visits, window, idle_below);
            share
        };
        self.0.iter().map(of).collect()
    }

    /// Mean load of each back-end in each second of the window.
    pub(super) fn load_per_second(&self, window: &Range<f64>) -> Vec<Vec<f64>> {
        let seconds = (window.end - window.start).floor().clamp(0.0, 86_400.0) as usize;
        let of = |visits: &Vec<Visit>| {
            let mut load = vec![0.0; seconds];
            for visit in visits {
                let (start, end) = (visit.start_s - window.start, visit.end_s - window.start);
                let first = start.max(0.0) as usize;
                for (second, load) in load.iter_mut().enumerate().skip(first) {
                    let second = second as f64;
                    if second >= end {
                        break;
                    }
                    *load += (end.min(second + 1.0) - start.max(second)).max(0.0);
                }
            }
            load
        };
        self.0.iter().map(of).collect()
    }
}

/// Mean load within the window, and the share of it with a load below `idle_below`.
fn loads(visits: &[Visit], window: &Range<f64>, idle_below: f64) -> (f64, f64) {
    let mut changes = Vec::with_capacity(2 * visits.len());
    for visit in visits {
        let (start, end) = (visit.start_s.max(window.start), visit.end_s.min(window.end));
        if start < end {
            changes.push((start, 1i64));
            changes.push((end, -1));
        }
    }
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    changes.push((window.end, 0));
    let (mut at, mut load, mut area, mut idle) = (window.start, 0i64, 0.0, 0.0);
    for (time, change) in changes {
        area += load as f64 * (time - at);
        if (load as f64) < idle_below {
            idle += time - at;
        }
        (at, load) = (time, load + change);
    }
    let length = (window.end - window.start).max(f64::MIN_POSITIVE);
    (area / length, idle / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(start_s: f64, end_s: f64, cached: CacheStatus) -> Visit {
        Visit { start_s, end_s, size_bytes: 8192, cached }
    }

    #[test]
    fn one_back_end_by_hand() {
        let mut visits = Visits::new(2);
        // From second 1 to second 5; loads 1, 2, 1, 0 in each.
        visits.add(0, visit(0.0, 3.0, CacheStatus::Miss));
        visits.add(0, visit(2.0, 4.0, CacheStatus::Hit));
        visits.add(0, visit(0.0, 0.5, CacheStatus::Hit));
        visits.add(7, visit(0.0, 9.0, CacheStatus::Hit));
        let window = 1.0..5.0;
        let shares = visits.shares(&window, DiskModel::lard98(), CpuModel::lard98(), 1.5);
        assert_eq!((shares[0].requests, shares[0].miss_ratio), (2, Some(0.5)));
        assert!((shares[0].mean_load - 1.0).abs() < 1e-9, "{shares:?}");
        assert!((shares[0].idle_ratio - 0.75).abs() < 1e-9, "{shares:?}");
        // One read of 28.82 ms and two transmissions of 930 µs in four seconds.
        assert!((shares[0].disk_busy - 0.02882 / 4.0).abs() < 1e-9);
        assert!((shares[0].cpu_busy - 0.00186 / 4.0).abs() < 1e-9);
        assert_eq!((shares[1].requests, shares[1].miss_ratio), (0, None));
        assert!((shares[1].idle_ratio - 1.0).abs() < 1e-9);
        assert_eq!(visits.load_per_second(&window), [[1.0, 2.0, 1.0, 0.0], [0.0; 4]]);
        assert_eq!(visits.before(1.0), 1);
    }
}
