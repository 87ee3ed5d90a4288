//! The accesses of the prototype: arrivals and service times of the synthetic workloads, and what a server's full load is.

use plimsoll_policy::Rng;
use plimsoll_studies::fine_grain::Grain;

use super::access::PlannedAccess;
use crate::ExperimentError;

/// A server is fully loaded when this share of its accesses is completed within [`FULL_WITHIN_NS`] (section 4).
pub(super) const FULL_SHARE: f64 = 0.98;
pub(super) const FULL_WITHIN_NS: u64 = 2_000_000_000;

/// Arrivals and service times in nanoseconds, in order.
#[derive(Debug, Clone)]
pub(super) struct Sequence(Vec<(u64, u64)>);

impl Sequence {
    /// The first accesses of a workload.
    pub(super) fn new(grain: Grain, requests: usize, seed: u64) -> Result<Self, ExperimentError> {
        let ((name, generator), requests) = (grain.workload(), requests.max(2).to_string());
        // No cache is measured here, and a workload has no fewer requests than targets.
        let parameters = [("generator", generator), ("requests", requests.as_str()), ("targets", "2")];
        let made = plimsoll_synth::build(name, &parameters, seed);
        let made = made.map_err(|e| ExperimentError::Failed(format!("the workload {name}: {e}")))?;
        let all: Vec<(u64, u64)> = made.records().map(|r| (r.time_ns, r.service_ns)).collect();
        let first_ns = all.first().map_or(0, |(time_ns, _)| *time_ns);
        Ok(Self(all.into_iter().map(|(time_ns, service_ns)| (time_ns - first_ns, service_ns)).collect()))
    }

    /// The same with times stretched so that `servers` servers have work for this share of the time. Exactly so: in a short run the
    /// work that comes by chance would differ from that by more than policies do.
    pub(super) fn stretched(&self, utilization: f64, servers: usize) -> Self {
        let work_ns: f64 = self.0.iter().map(|(_, service_ns)| *service_ns as f64).sum();
        let span_ns = self.0.last().map_or(1.0, |(time_ns, _)| (*time_ns).max(1) as f64);
        let factor = work_ns / (utilization * servers as f64 * span_ns);
        let stretch = |&(time_ns, service_ns): &(u64, u64)| ((time_ns as f64 * factor) as u64, service_ns);
        Self(self.0.iter().map(stretch).collect())
    }

    /// Response times in nanoseconds of one server that works in order of arrival (Lindley 1952).
    pub(super) fn responses_ns(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().scan(0, |free_from_ns: &mut u64, &(time_ns, service_ns)| {
            *free_from_ns = (*free_from_ns).max(time_ns) + service_ns;
            Some((time_ns, *free_from_ns - time_ns))
        })
    }

    /// The share of the accesses that one server completes within the time of full load, without those that arrive before.
    pub(super) fn share_completed(&self, from_ns: u64) -> f64 {
        let counted = self.responses_ns().filter(|(time_ns, _)| *time_ns >= from_ns);
        let (all, within) = counted.fold((0_u64, 0_u64), |(all, within), (_, response_ns)| {
            (all + 1, within + u64::from(response_ns <= FULL_WITHIN_NS))
        });
        within as f64 / all.max(1) as f64
    }

    /// The highest utilization at which one server completes the share of full load.
    pub(super) fn full_utilization(&self) -> f64 {
        let (mut low, mut high) = (0.1, 1.0);
        for _ in 0..20 {
            let middle = f64::midpoint(low, high);
            let is_full = self.stretched(middle, 1).share_completed(0) < FULL_SHARE;
            *(if is_full { &mut high } else { &mut low }) = middle;
        }
        low
    }

    /// The accesses of each of `clients` clients, dealt at random, with a server for each if there is one for all.
    pub(super) fn dealt(&self, clients: usize, seed: u64) -> Vec<Vec<PlannedAccess>> {
        /// Stream of the seed.
        const STREAM: u64 = 0x6465_616C;
        let mut rng = Rng::new(seed, STREAM);
        let mut plans = vec![Vec::new(); clients];
        for &(due_ns, service_ns) in &self.0 {
            let client = rng.below(clients as u64) as usize;
            plans[client].push(PlannedAccess { due_ns, service_ns, server: None });
        }
        plans
    }

    /// All accesses, for this server.
    pub(super) fn told(&self, server: usize) -> impl Iterator<Item = PlannedAccess> + '_ {
        let told = move |&(due_ns, service_ns): &(u64, u64)| PlannedAccess {
            due_ns,
            service_ns,
            server: Some(server),
        };
        self.0.iter().map(told)
    }
}

/// How many accesses come to `servers` servers in this time at this utilization.
pub(super) fn accesses_in(grain: Grain, seconds: f64, utilization: f64, servers: usize) -> usize {
    (seconds * utilization * servers as f64 / grain.service_s()).ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_by_hand() {
        let sequence = Sequence(vec![(0, 10), (5, 10), (40, 2)]);
        let responses: Vec<u64> = sequence.responses_ns().map(|(_, response_ns)| response_ns).collect();
        assert_eq!(responses, [10, 15, 2]);
        assert!((sequence.share_completed(0) - 1.0).abs() < 1e-9);
        // 22 ns of work over two servers that are busy for half of 22 ns.
        let stretched = sequence.stretched(0.5, 2);
        assert_eq!(stretched.0.iter().map(|(time_ns, _)| *time_ns).collect::<Vec<_>>(), [0, 2, 22]);
    }

    #[test]
    fn full_load_of_poisson_exp_is_that_of_theory() {
        // Response times of M/M/1 are exponential: exp(−2 s (1 − ρ) / 50 ms) is 2 % at ρ = 0.902.
        let full = Sequence::new(Grain::PoissonExp, 200_000, 3).unwrap().full_utilization();
        assert!((full - 0.902).abs() < 0.01, "{full}");
        // Requests of 209 ms wait for long in far shorter queues.
        let medium = Sequence::new(Grain::Medium, 100_000, 3).unwrap().full_utilization();
        assert!(medium < 0.87, "{medium}");
    }

    #[test]
    fn clients_share_all_accesses() {
        let sequence = Sequence::new(Grain::Fine, 1000, 1).unwrap().stretched(0.9, 16);
        let plans = sequence.dealt(6, 1);
        assert_eq!(plans.iter().map(Vec::len).sum::<usize>(), 1000);
        assert!(plans.iter().all(|plan| plan.len() > 100 && plan.is_sorted_by_key(|access| access.due_ns)));
        let span_s = sequence.0[999].0 as f64 / 1e9;
        assert!((accesses_in(Grain::Fine, span_s, 0.9, 16) as f64 / 1000.0 - 1.0).abs() < 0.05);
        assert!(sequence.told(3).all(|access| access.server == Some(3)));
    }
}
