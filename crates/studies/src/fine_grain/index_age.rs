//! Figure 2: how far a server's queue length moves while its load index grows old.
//!
//! One server, first come first served: from arrival and service times follow all departures, and from these the queue length
//! at any time.

use plimsoll_sim::SimRequest;

/// The queue length over time.
pub(super) struct QueueLength {
    /// Arrivals and departures in seconds, each in order.
    arrivals: Vec<f64>,
    departures: Vec<f64>,
    mean_service_s: f64,
}

/// Instants at which the queue length is compared with a later one.
const SAMPLES: usize = 100_000;

impl QueueLength {
    /// Of a server at this load: the requests' own intervals are scaled to it.
    pub(super) fn new(requests: &[SimRequest], load: f64) -> Option<Self> {
        let (first, last) = (requests.first()?, requests.last()?);
        let count = requests.len() as f64;
        let mean_service_s = requests.iter().map(|r| r.service.as_secs_f64()).sum::<f64>() / count;
        let interval_s = last.time.since(first.time).as_secs_f64() / (count - 1.0);
        let scale = mean_service_s / load / interval_s;
        let arrivals: Vec<f64> =
            requests.iter().map(|r| scale * r.time.since(first.time).as_secs_f64()).collect();
        let mut free_s = 0.0;
        let departures = requests
            .iter()
            .zip(&arrivals)
            .map(|(request, &arrival_s)| {
                free_s = f64::max(free_s, arrival_s) + request.service.as_secs_f64();
                free_s
            })
            .collect();
        Some(Self { arrivals, departures, mean_service_s })
    }

    /// Requests at the server at this time.
    fn at(&self, time_s: f64) -> usize {
        let until = |times: &[f64]| times.partition_point(|&time| time <= time_s);
        until(&self.arrivals) - until(&self.departures)
    }

    /// The mean difference between the queue length at a time and one that is `age` mean service times later.
    pub(super) fn inaccuracy(&self, age: f64) -> Option<f64> {
        let (begin, end) = (self.arrivals.first()?, self.arrivals.last()?);
        // The queue is empty at first.
        let (begin, end) = (begin + 0.05 * (end - begin), end - age * self.mean_service_s);
        let step = (end - begin) / SAMPLES as f64;
        let difference = |sample: usize| {
            let time_s = begin + step * sample as f64;
            self.at(time_s).abs_diff(self.at(time_s + age * self.mean_service_s)) as f64
        };
        (step > 0.0).then(|| (0..SAMPLES).map(difference).sum::<f64>() / SAMPLES as f64)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_policy::{Nanos, Time};

    use super::*;

    #[test]
    fn the_queue_is_what_has_come_and_has_not_gone() {
        let request = |s: u64, service_s: u64| SimRequest {
            time: Time::ZERO + Nanos::from_secs(s),
            service: Nanos::from_secs(service_s),
            ..SimRequest::default()
        };
        // Mean service 2 s, mean interval 4 s: at load 0.5 times stay as they are.
        let queue = QueueLength::new(&[request(0, 3), request(1, 2), request(8, 1)], 0.5).unwrap();
        let lengths: Vec<usize> = [0.5, 1.5, 3.5, 5.5, 8.5, 9.5].map(|s| queue.at(s)).into();
        assert_eq!(lengths, [1, 2, 1, 0, 1, 0]);
        assert_eq!(queue.inaccuracy(0.0), Some(0.0));
    }
}
