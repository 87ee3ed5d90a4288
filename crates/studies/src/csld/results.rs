//! The runs of one seed, with queries for claims and figures.

use std::collections::BTreeMap;

use plimsoll_report::{Align, Run, Table};

use super::plan::WebRun;
use crate::seed_mean::SeedMean;

/// What connections have shown in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct WebMeasures {
    /// Mean time from a request's arrival at the front-end to the first segment of its answer.
    pub(super) server_latency_s: f64,
    /// Mean time from a client's first packet to the last byte.
    pub(super) user_latency_s: f64,
    /// Connections that were asked for, each counted once.
    pub(super) opened: u64,
    /// Refused attempts.
    pub(super) refused: u64,
    /// Connections refused at every attempt.
    pub(super) given_up: u64,
}

impl WebMeasures {
    /// `None` of a model without connections.
    pub(super) fn of(run: &Run) -> Option<Self> {
        let of = run.connections.as_ref()?;
        Some(Self {
            server_latency_s: of.server_latency_s?.mean,
            user_latency_s: of.user_latency_s?.mean,
            opened: of.opened,
            refused: of.refusals.iter().sum(),
            given_up: of.given_up,
        })
    }

    /// Attempts to connect.
    fn attempts(&self) -> u64 {
        self.opened + self.refused - self.given_up
    }
}

/// See the module's documentation.
pub(super) struct CsldResults {
    pub(super) seed: u64,
    pub(super) runs: BTreeMap<WebRun, (Run, WebMeasures)>,
}

impl CsldResults {
    fn measures(&self, run: WebRun) -> Option<&WebMeasures> {
        self.runs.get(&run).map(|(_, measures)| measures)
    }

    /// Mean server latency in seconds.
    pub(super) fn latency_s(&self, run: WebRun) -> Option<f64> {
        self.measures(run).map(|measures| measures.server_latency_s)
    }

    /// Mean latency that users see, in seconds.
    pub(super) fn user_latency_s(&self, run: WebRun) -> Option<f64> {
        self.measures(run).map(|measures| measures.user_latency_s)
    }

    /// Server latency of one run over that of another.
    pub(super) fn ratio(&self, run: WebRun, over: WebRun) -> Option<f64> {
        Some(self.latency_s(run)? / self.latency_s(over)?)
    }

    /// Refused attempts, in per cent of all attempts.
    pub(super) fn refused_percent(&self, run: WebRun) -> Option<f64> {
        let measures = self.measures(run)?;
        Some(100.0 * measures.refused as f64 / measures.attempts().max(1) as f64)
    }

    /// Refused attempts.
    pub(super) fn refused(&self, run: WebRun) -> Option<f64> {
        self.measures(run).map(|measures| measures.refused as f64)
    }

    /// Connections that were refused at every attempt, in per cent of those asked for.
    pub(super) fn lost_percent(&self, run: WebRun) -> Option<f64> {
        let measures = self.measures(run)?;
        Some(100.0 * measures.given_up as f64 / measures.opened.max(1) as f64)
    }

    /// Answers per second.
    pub(super) fn throughput_rps(&self, run: WebRun) -> Option<f64> {
        self.runs.get(&run).map(|(run, _)| run.throughput_rps)
    }

    /// Answers for each connection.
    pub(super) fn requests_per_connection(&self, run: WebRun) -> Option<f64> {
        let (run, measures) = self.runs.get(&run)?;
        Some(run.completed as f64 / measures.opened.max(1) as f64)
    }

    /// Disk reads for each request, in per cent.
    pub(super) fn miss_percent(&self, run: WebRun) -> Option<f64> {
        Some(100.0 * self.runs.get(&run)?.0.miss_ratio?)
    }

    /// Share of time that CPUs were busy, in per cent.
    pub(super) fn cpu_percent(&self, run: WebRun) -> Option<f64> {
        self.runs.get(&run).map(|(run, _)| 100.0 * run.utilization.cpu)
    }

    /// Predictions of misses, by whether one was expected and whether there was one; `None` without any.
    pub(super) fn predictions(&self, run: WebRun) -> Option<[[f64; 2]; 2]> {
        let predictions = self.runs.get(&run)?.0.connections.as_ref()?.predictions;
        let made: u64 = predictions.iter().flatten().sum();
        (made > 0).then(|| predictions.map(|row| row.map(|count| count as f64)))
    }
}

/// Mean of a value over the seeds, with its confidence interval.
pub(super) fn seed_mean(
    seeds: &[CsldResults],
    value: impl Fn(&CsldResults) -> Option<f64>,
) -> Option<SeedMean> {
    let values: Vec<f64> = seeds.iter().filter_map(value).filter(|value| value.is_finite()).collect();
    SeedMean::of(&values)
}

/// That as the cell of a table.
pub(super) fn seed_cell(
    seeds: &[CsldResults],
    (scale, decimals): (f64, usize),
    value: impl Fn(&CsldResults) -> Option<f64>,
) -> String {
    seed_mean(seeds, value).map_or_else(|| "–".to_owned(), |mean| mean.words(scale, decimals))
}

/// The least of some values; `None` where one is missing.
pub(super) fn least(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    values.into_iter().try_fold(f64::INFINITY, |least, value| Some(least.min(value?)))
}

/// The greatest of some values; `None` where one is missing.
pub(super) fn most(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    values.into_iter().try_fold(f64::NEG_INFINITY, |most, value| Some(most.max(value?)))
}

/// A table of such columns, all numbers, behind one of names.
pub(super) fn columns(names: impl IntoIterator<Item = String>) -> Table {
    let first = std::iter::once((String::new(), Align::Left));
    Table::new(first.chain(names.into_iter().map(|name| (name, Align::Right))))
}
