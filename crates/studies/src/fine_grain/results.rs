//! The runs of one seed, with queries for claims and figures.

use std::collections::BTreeMap;

use plimsoll_report::Run;

use super::index_age::QueueLength;
use super::plan::{FineGrainRun, Grain};

/// Ages of the load index in figure 2, in mean service times.
pub(super) const AGES: [f64; 12] = [0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0];

/// Loads of figure 2, in per cent.
pub(super) const AGE_LOADS: [u32; 2] = [50, 90];

/// See the module's documentation.
pub(super) struct FineGrainResults {
    pub(super) seed: u64,
    pub(super) runs: BTreeMap<FineGrainRun, Run>,
    /// Inaccuracy of the load index by workload, load in per cent, and place of the age.
    pub(super) inaccuracy: BTreeMap<(Grain, u32, usize), f64>,
}

impl FineGrainResults {
    /// Mean response time in seconds.
    pub(super) fn response_s(&self, run: FineGrainRun) -> Option<f64> {
        Some(self.runs.get(&run)?.response_time_s?.mean)
    }

    /// Mean response time of one run over that of another.
    pub(super) fn ratio(&self, run: FineGrainRun, over: FineGrainRun) -> Option<f64> {
        Some(self.response_s(run)? / self.response_s(over)?)
    }

    /// Mean response time over that of the ideal run of its load.
    pub(super) fn over_ideal(&self, run: FineGrainRun) -> Option<f64> {
        self.ratio(run, FineGrainRun::ideal(run.grain, run.load_percent))
    }

    /// Messages per second.
    pub(super) fn messages_rps(&self, run: FineGrainRun) -> Option<f64> {
        Some(self.runs.get(&run)?.load_traffic.as_ref()?.messages_rps)
    }

    /// Messages per second that one client sends or takes.
    pub(super) fn client_messages_rps(&self, run: FineGrainRun) -> Option<f64> {
        Some(self.messages_rps(run)? / f64::from(run.clients))
    }

    /// CPU time of inquiries and announcements at one server, as a share of its time.
    pub(super) fn server_cpu(&self, run: FineGrainRun) -> Option<f64> {
        Some(self.runs.get(&run)?.load_traffic.as_ref()?.cpu)
    }

    /// CPU time of inquiries and announcements at all servers, per second.
    pub(super) fn servers_cpu(&self, run: FineGrainRun) -> Option<f64> {
        Some(self.server_cpu(run)? * run.servers as f64)
    }

    /// Mean time in seconds for which requests waited for loads.
    pub(super) fn poll_time_s(&self, run: FineGrainRun) -> Option<f64> {
        Some(self.runs.get(&run)?.load_traffic.as_ref()?.poll_time_s?.mean)
    }

    /// The inaccuracy of an index of this age.
    pub(super) fn inaccuracy(&self, grain: Grain, load_percent: u32, age: f64) -> Option<f64> {
        let place = AGES.iter().position(|&known| known == age)?;
        self.inaccuracy.get(&(grain, load_percent, place)).copied()
    }

    /// Measures figure 2.
    pub(super) fn measure_ages(&mut self, grain: Grain, requests: &[plimsoll_sim::SimRequest]) {
        for load in AGE_LOADS {
            let Some(queue) = QueueLength::new(requests, f64::from(load) / 100.0) else { continue };
            for (place, &age) in AGES.iter().enumerate() {
                let inaccuracy = queue.inaccuracy(age);
                self.inaccuracy.extend(inaccuracy.map(|value| ((grain, load, place), value)));
            }
        }
    }
}

/// The least of some values.
pub(super) fn least(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    values.into_iter().try_fold(f64::INFINITY, |least, value| Some(least.min(value?)))
}

/// The greatest of some values.
pub(super) fn most(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    values.into_iter().try_fold(f64::NEG_INFINITY, |most, value| Some(most.max(value?)))
}

/// The mean over the seeds; `None` without a value.
pub(super) fn mean(
    seeds: &[FineGrainResults],
    value: impl Fn(&FineGrainResults) -> Option<f64>,
) -> Option<f64> {
    let values: Vec<f64> = seeds.iter().filter_map(value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
