//! Reconstructs from begins and ends what requests waited for one another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::learn::samples::Sample;

/// The requests of each back-end in the order in which they began and in which they ended.
pub(crate) struct Timeline {
    backends: Vec<BackendOrder>,
    /// How many other requests the back-end had when each request arrived.
    pub(crate) others_at_arrival: Vec<u32>,
}

struct BackendOrder {
    by_begin: Vec<u32>,
    by_end: Vec<u32>,
}

/// Durations with what was waiting taken away.
pub(crate) struct Reconstruction {
    /// Of each request, in seconds.
    pub(crate) demands_s: Vec<f32>,
    /// Share of requests that ended before the discipline could have let them begin.
    pub(crate) impossible: f64,
}

impl Timeline {
    pub(crate) fn new(samples: &[Sample], backends: usize) -> Self {
        let mut by_backend: Vec<Vec<u32>> = vec![Vec::new(); backends.max(1)];
        for (at, sample) in samples.iter().enumerate() {
            if let Some(list) = by_backend.get_mut(usize::from(sample.backend)) {
                // There are fewer samples than 32 bits count.
                list.push(at as u32);
            }
        }
        let of = |at: &u32| &samples[*at as usize];
        let order = |mut by_begin: Vec<u32>| {
            by_begin.sort_by_key(|at| (of(at).begins_ns, of(at).ends_ns(), *at));
            let mut by_end = by_begin.clone();
            by_end.sort_by_key(|at| (of(at).ends_ns(), of(at).begins_ns, *at));
            BackendOrder { by_begin, by_end }
        };
        let backends: Vec<BackendOrder> = by_backend.into_iter().map(order).collect();
        let mut out = Self { backends, others_at_arrival: Vec::new() };
        let mut others = vec![0; samples.len()];
        for backend in &out.backends {
            backend.sweep(
                samples,
                |at, event| {
                    if let LoadEvent::Begin { others: count, .. } = event {
                        others[at] = count;
                    }
                },
                |_| 1.0,
            );
        }
        out.others_at_arrival = others;
        out
    }

    /// Demands if all requests of a back-end share so many cores equally.
    pub(crate) fn shared(&self, samples: &[Sample], cores: u32) -> Reconstruction {
        let mut progress_ns = vec![0.0f64; samples.len()];
        let rate = |count: u32| if count <= cores { 1.0 } else { f64::from(cores) / f64::from(count) };
        for backend in &self.backends {
            backend.sweep(
                samples,
                |at, event| match event {
                    LoadEvent::Begin { progress_ns: now, .. } => progress_ns[at] = now,
                    LoadEvent::End { progress_ns: now } => progress_ns[at] = now - progress_ns[at],
                },
                rate,
            );
        }
        let demands_s = progress_ns.into_iter().map(|ns| (ns.max(0.0) / 1e9) as f32).collect();
        Reconstruction { demands_s, impossible: 0.0 }
    }

    /// Demands if each back-end has so many workers, which take requests in the order of their arrival.
    pub(crate) fn in_turn(&self, samples: &[Sample], workers: u32, tolerance_ns: u64) -> Reconstruction {
        let mut demands_s = vec![0.0f32; samples.len()];
        let (mut impossible, mut count) = (0u64, 0u64);
        for backend in &self.backends {
            let mut free: BinaryHeap<Reverse<u64>> = (0..workers).map(|_| Reverse(0)).collect();
            // With several workers a later one may end first.
            let unsure_ns = if workers == 1 { tolerance_ns } else { 0 };
            for at in &backend.by_arrival(samples, unsure_ns) {
                let sample = &samples[*at as usize];
                let Some(Reverse(free_ns)) = free.pop() else { continue };
                let ends_ns = sample.ends_ns();
                let starts_ns = sample.begins_ns.max(free_ns);
                impossible += u64::from(starts_ns > ends_ns.saturating_add(tolerance_ns));
                count += 1;
                demands_s[*at as usize] = (ends_ns.saturating_sub(starts_ns) as f64 / 1e9) as f32;
                free.push(Reverse(ends_ns.max(free_ns)));
            }
        }
        Reconstruction { demands_s, impossible: impossible as f64 / count.max(1) as f64 }
    }
}

/// What happens to a request.
enum LoadEvent {
    Begin { others: u32, progress_ns: f64 },
    End { progress_ns: f64 },
}

impl BackendOrder {
    /// The order of arrival: that of begins, but among those that are nearer to each other than `unsure_ns`, that of ends.
    fn by_arrival(&self, samples: &[Sample], unsure_ns: u64) -> Vec<u32> {
        let mut order = self.by_begin.clone();
        if unsure_ns == 0 {
            return order;
        }
        for at in 1..order.len() {
            let mut to = at;
            while to > 0 {
                let (one, next) = (&samples[order[to - 1] as usize], &samples[order[to] as usize]);
                if one.ends_ns() <= next.ends_ns() || next.begins_ns.abs_diff(one.begins_ns) > unsure_ns {
                    break;
                }
                order.swap(to - 1, to);
                to -= 1;
            }
        }
        order
    }

    /// Tells each begin and end in the order of time, with the progress so far of a request that was there from the beginning, where
    /// `rate` is the progress per time among so many requests.
    fn sweep(&self, samples: &[Sample], mut tell: impl FnMut(usize, LoadEvent), rate: impl Fn(u32) -> f64) {
        let mut ends = self.by_end.iter().map(|at| *at as usize).peekable();
        let (mut now_ns, mut count, mut progress_ns) = (0u64, 0u32, 0.0f64);
        let mut pass = |to_ns: u64, count: u32| {
            if count > 0 {
                progress_ns += rate(count) * to_ns.saturating_sub(now_ns) as f64;
            }
            now_ns = now_ns.max(to_ns);
            progress_ns
        };
        for at in self.by_begin.iter().map(|at| *at as usize) {
            let begins_ns = samples[at].begins_ns;
            // A request that took no time begins before it ends.
            while let Some(ended) =
                ends.next_if(|&e| samples[e].ends_ns() <= begins_ns && samples[e].begins_ns < begins_ns)
            {
                let progress_ns = pass(samples[ended].ends_ns(), count);
                count = count.saturating_sub(1);
                tell(ended, LoadEvent::End { progress_ns });
            }
            let progress_ns = pass(begins_ns, count);
            tell(at, LoadEvent::Begin { others: count, progress_ns });
            count += 1;
        }
        for ended in ends {
            let progress_ns = pass(samples[ended].ends_ns(), count);
            count = count.saturating_sub(1);
            tell(ended, LoadEvent::End { progress_ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(list: &[(u64, u64)]) -> Vec<Sample> {
        let sample = |&(begins_ns, ends_ns)| Sample {
            begins_ns,
            takes_ns: ends_ns - begins_ns,
            size_bytes: 0,
            node: 0,
            combination: 0,
            group: 0,
            backend: 0,
            with_client: false,
        };
        list.iter().map(sample).collect()
    }

    fn ns(found: &Reconstruction) -> Vec<u64> {
        found.demands_s.iter().map(|s| (f64::from(*s) * 1e9).round() as u64).collect()
    }

    /// One worker: 10 at 0, 10 at 5 (waits 5), 5 at 30; the second cannot end before the first.
    #[test]
    fn requests_in_turn_begin_when_the_worker_is_free() {
        let samples = samples(&[(0, 10), (5, 20), (30, 35)]);
        let timeline = Timeline::new(&samples, 1);
        assert_eq!(timeline.others_at_arrival, [0, 1, 0]);
        let one = timeline.in_turn(&samples, 1, 0);
        assert_eq!((ns(&one), one.impossible), (vec![10, 10, 5], 0.0));
        let two = timeline.in_turn(&samples, 2, 0);
        assert_eq!(ns(&two), [10, 15, 5]);
        let overtaking = self::samples(&[(0, 10_000_000), (5_000_000, 8_000_000)]);
        assert_eq!(Timeline::new(&overtaking, 1).in_turn(&overtaking, 1, 0).impossible, 0.5);
    }

    #[test]
    fn who_arrived_at_the_same_time_is_taken_in_the_order_of_ends() {
        // The second one ends first, and both begin within a millisecond.
        let samples = samples(&[(0, 50_000_000), (100_000, 2_000_000), (20_000_000, 60_000_000)]);
        let found = Timeline::new(&samples, 1).in_turn(&samples, 1, 500_000);
        assert_eq!((ns(&found), found.impossible), (vec![48_000_000, 1_900_000, 10_000_000], 0.0));
    }

    /// One core: alone to 10, both to 30, alone to 40.
    #[test]
    fn requests_that_share_progress_at_equal_parts() {
        let samples = samples(&[(0, 40), (10, 30)]);
        let timeline = Timeline::new(&samples, 1);
        assert_eq!(ns(&timeline.shared(&samples, 1)), [30, 10]);
        assert_eq!(ns(&timeline.shared(&samples, 2)), [40, 20]);
    }

    #[test]
    fn back_ends_do_not_wait_for_each_other() {
        let mut samples = samples(&[(0, 10), (0, 10), (10, 10)]);
        samples[1].backend = 1;
        let timeline = Timeline::new(&samples, 2);
        assert_eq!(timeline.others_at_arrival, [0, 0, 0]);
        assert_eq!(ns(&timeline.shared(&samples, 1)), [10, 10, 0]);
    }
}
