//! A workload that is ready to be streamed, and its exact statistics.

use super::answers::{AnswerMix, share_percent};
use super::arrivals::ArrivalProcess;
use super::drift::Drift;
use super::error::SynthError;
use super::popularity::apportion;
use super::record::RecordFields;
use super::service;
use super::spec::{Parameter, Parameters, PublishedFigure, WorkloadSpec};
use super::units::MIB;
use super::window::ActiveWindow;
use crate::coverage::coverage_bytes;
use crate::times::TimeDistribution;

/// A synthetic workload: how often each target is requested, its size, and when.
///
/// The numbers of requests are assigned, not sampled, so every statistic that does not depend on
/// the order of the requests is exact before the first of them is made. Memory is proportional to
/// the number of targets.
#[derive(Debug, Clone)]
pub struct SyntheticWorkload {
    pub(super) spec: &'static WorkloadSpec,
    pub(super) parameters: Parameters,
    pub(super) seed: u64,
    /// By target.
    pub(super) counts: Vec<u64>,
    /// By target, in bytes.
    pub(super) sizes: Vec<u64>,
    /// By target.
    pub(super) windows: Vec<ActiveWindow>,
    /// How the mix changes over the day, if it does.
    pub(super) drift: Option<Drift>,
    /// Artificial hot targets, in rising order.
    pub(super) hot: Vec<u32>,
    pub(super) arrivals: ArrivalProcess,
    /// Service times, for services whose cost is one.
    pub(super) service: Option<TimeDistribution>,
    /// What requests are answered, for sites of which that is known.
    pub(super) answers: Option<AnswerMix>,
    /// Clients, of which each request has one at random; 0 where none is named.
    pub(super) clients: u32,
    pub(super) corrections: Vec<f64>,
    pub(super) requests: u64,
}

impl SyntheticWorkload {
    /// Number of targets.
    #[must_use]
    pub fn target_count(&self) -> u32 {
        // The largest permitted number of targets fits many times.
        self.counts.len() as u32
    }

    /// Name of a target, such as `/rice/00017.html`. The number says nothing of its popularity.
    #[must_use]
    pub fn target_name(&self, target: u32) -> String {
        let digits = self.counts.len().saturating_sub(1).to_string().len().max(5);
        let kind = if self.hot.binary_search(&target).is_ok() { "hot-" } else { "" };
        format!("/{}/{kind}{target:0digits$}.html", self.spec.name)
    }

    /// Size of a target's document in bytes; 0 for a number that is no target.
    #[must_use]
    pub fn document_size_bytes(&self, target: u32) -> u64 {
        self.sizes.get(target as usize).copied().unwrap_or(0)
    }

    /// Exact number of requests for a target; 0 for a number that is no target.
    #[must_use]
    pub fn requests(&self, target: u32) -> u64 {
        self.counts.get(target as usize).copied().unwrap_or(0)
    }

    /// Number of requests.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.requests
    }

    /// Whether there is no request; never the case for a workload from [`super::build`].
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// The optional fields that its records fill. It makes records until each field that may be filled has been, which mostly is one of the first.
    #[must_use]
    pub fn fields(&self) -> RecordFields {
        let possible = RecordFields {
            kind: self.answers.as_ref().is_some_and(AnswerMix::has_dynamic),
            class: false,
            service: self.service.is_some(),
            client: self.clients > 1,
        };
        let mut fields = RecordFields::default();
        let mut records = self.records();
        while fields != possible {
            let Some(record) = records.next() else { break };
            fields.add(&record);
        }
        fields
    }

    /// The declaration this workload was built from.
    #[must_use]
    pub fn spec(&self) -> &'static WorkloadSpec {
        self.spec
    }

    /// Name of the generator that was chosen.
    #[must_use]
    pub fn generator(&self) -> &'static str {
        self.spec.generators[self.parameters.get("generator") as usize].name
    }

    /// Every parameter with the value in force.
    #[must_use]
    pub fn parameters(&self) -> &[(Parameter, f64)] {
        self.parameters.all()
    }

    /// The seed it was built with.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What the source publishes of the original trace.
    #[must_use]
    pub fn published(&self) -> &'static [PublishedFigure] {
        self.spec.published
    }

    /// Factors by which the last step of the calibration multiplied the drawn sizes, by band of
    /// popularity (or of size, for the World Cup day); near 1 when the drawn sizes fitted already.
    #[must_use]
    pub fn size_corrections(&self) -> &[f64] {
        &self.corrections
    }

    /// Replaces the arrival times by a profile: `requests_per_minute[i]` is the weight of minute
    /// `i`. The workload keeps its number of requests, which is divided over the minutes in
    /// proportion (largest remainder); within a minute the times are uniform. The length of a
    /// minute is the parameter `minute_s`.
    ///
    /// # Errors
    /// When the profile is empty or holds no request at all.
    pub fn with_requests_per_minute(mut self, requests_per_minute: &[u64]) -> Result<Self, SynthError> {
        if requests_per_minute.iter().all(|&requests| requests == 0) {
            return Err(SynthError::EmptyProfile { minutes: requests_per_minute.len() });
        }
        self.arrivals = per_minute(requests_per_minute, self.requests, self.parameters.get("minute_s"));
        if let Some(drift) = &mut self.drift {
            drift.over(&self.counts, requests_per_minute);
        }
        Ok(self)
    }

    /// This workload's own value of a published figure, computed from the exact numbers of
    /// requests and sizes, or, of intervals and service times, from all requests,
    /// of shares of requests from the first 500,000; `None` for a name that is no figure. Artificial hot targets are left
    /// out, since the figures are those of the trace they were added to.
    #[must_use]
    pub fn measured(&self, name: &str) -> Option<f64> {
        let (counts, sizes): (Vec<u64>, Vec<u64>) = (0..self.target_count())
            .filter(|target| self.hot.binary_search(target).is_err())
            .map(|target| (self.requests(target), self.document_size_bytes(target)))
            .unzip();
        let requests: u64 = counts.iter().sum();
        let total: u64 = sizes.iter().sum();
        let cover = |share| coverage_bytes(&counts, &sizes, &[share])[0] as f64 / MIB;
        let largest = |values: &[u64]| values.iter().copied().max().unwrap_or(0) as f64;
        let transferred =
            || -> f64 { counts.iter().zip(&sizes).map(|(&count, &size)| count as f64 * size as f64).sum() };
        Some(match name {
            "targets" => counts.len() as f64,
            "requests" => requests as f64,
            "total_mib" => total as f64 / MIB,
            "cover97_mib" => cover(0.97),
            "cover98_mib" => cover(0.98),
            "cover99_mib" => cover(0.99),
            "top_share" => largest(&counts) / requests as f64,
            "file_mean_bytes" => total as f64 / counts.len() as f64,
            "file_median_bytes" => median(&sizes, &vec![1; sizes.len()]),
            "file_max_mib" => largest(&sizes) / MIB,
            "request_mean_bytes" => transferred() / requests as f64,
            "request_median_bytes" => median(&sizes, &counts),
            _ if self.answers.is_some() => return share_percent(name, self.records()),
            _ => return service::moment(name, self.service.map(|_| self.records())?),
        })
    }
}

/// Divides `requests` over the minutes of a profile.
pub(super) fn per_minute(profile: &[u64], requests: u64, minute_s: f64) -> ArrivalProcess {
    let weights: Vec<f64> = profile.iter().map(|&weight| weight as f64).collect();
    ArrivalProcess::PerMinute { requests: apportion(&weights, requests), minute_ns: minute_s * 1e9 }
}

/// The smallest value at which half of the weight is reached.
fn median(values: &[u64], weights: &[u64]) -> f64 {
    let mut pairs: Vec<(u64, u64)> = values.iter().copied().zip(weights.iter().copied()).collect();
    pairs.sort_unstable();
    let total: u64 = weights.iter().sum();
    let mut seen = 0;
    for (value, weight) in pairs {
        seen += weight;
        if seen * 2 >= total {
            return value as f64;
        }
    }
    0.0
}
