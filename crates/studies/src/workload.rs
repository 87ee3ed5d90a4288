//! A workload ready for simulation: a trace that was read or synthesized, and its targets.

use std::sync::Arc;

use plimsoll_policy::estimator::ClassCost;
use plimsoll_policy::{Kind, TargetId};
use plimsoll_report::TraceInfo;
use plimsoll_sim::{SimRequest, Targets, TimeDistribution};
use plimsoll_synth::SynthError;
use plimsoll_trace::{Record, TargetTable, Trace, TraceError};

use crate::workload_requests::WorkloadRequests;

/// See the module's documentation.
#[derive(Debug)]
pub struct Workload {
    /// Short name: the file, or the synthetic workload with its generator.
    pub name: String,
    /// Its origin, for results.
    pub info: TraceInfo,
    /// Its targets, for the simulator.
    pub targets: Targets,
    /// The requests.
    pub trace: Trace,
    /// Classes of its requests, in place of those of the trace.
    pub classes: Option<WorkloadClasses>,
}

/// Classes of a workload's requests.
#[derive(Debug, Clone)]
pub struct WorkloadClasses {
    /// The class of each target; 0 for none.
    pub of_target: Arc<[u16]>,
    /// What requests of each class cost, from class 1 on, as policies know it beforehand.
    pub costs: Arc<[ClassCost]>,
    /// From class 1 on, how long a back-end works on a request, in place of what the trace says; `None` leaves that.
    pub service: Arc<[Option<TimeDistribution>]>,
}

/// Why a workload could not be made.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// Its parameters are wrong.
    #[error(transparent)]
    Synth(#[from] SynthError),
    /// Its records could not be kept.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The stress matrix has none of this name.
    #[error("the stress matrix has no workload `{0}`")]
    Unknown(String),
}

impl Workload {
    /// The workload of a trace.
    #[must_use]
    pub fn from_trace(trace: Trace) -> Self {
        let name = trace.report.paths.join(" ");
        let info = TraceInfo {
            path: name.clone(),
            sha256: trace.report.sha256.clone(),
            lines_rejected: trace.report.lines_rejected,
        };
        Self::new(name, info, trace)
    }

    /// A synthetic workload with these parameters.
    ///
    /// # Errors
    /// On an unknown name or parameter, or when the records cannot be kept.
    pub fn synthesize(name: &str, overrides: &[(&str, &str)], seed: u64) -> Result<Self, WorkloadError> {
        Self::synthesize_first(name, overrides, seed, None)
    }

    /// The first `limit` requests of a synthetic workload; all of them with `None`.
    ///
    /// # Errors
    /// Like [`Workload::synthesize`].
    pub fn synthesize_first(
        name: &str,
        overrides: &[(&str, &str)],
        seed: u64,
        limit: Option<u64>,
    ) -> Result<Self, WorkloadError> {
        Ok(Self::of_synthetic(&plimsoll_synth::build(name, overrides, seed)?, limit)?)
    }

    /// The first `limit` requests of a built synthetic workload; all of them with `None`.
    ///
    /// # Errors
    /// When the records cannot be kept.
    pub fn of_synthetic(
        made: &plimsoll_synth::SyntheticWorkload,
        limit: Option<u64>,
    ) -> Result<Self, TraceError> {
        let name = made.spec().name;
        let mut table = TargetTable::new();
        for target in 0..made.target_count() {
            if table.intern(made.target_name(target).as_bytes()).is_some() {
                table.set_document_size(target, made.document_size_bytes(target));
            }
        }
        let limit = limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
        let trace = Trace::from_records(table, made.records().take(limit))?;
        let info = TraceInfo { path: name.to_owned(), sha256: None, lines_rejected: 0 };
        Ok(Self::new(format!("{name}/{}", made.generator()), info, trace))
    }

    /// So many requests for one document of this size.
    ///
    /// # Errors
    /// When the records cannot be kept.
    pub(crate) fn of_one_document(size_bytes: u64, requests: u32) -> Result<Self, TraceError> {
        let mut table = TargetTable::new();
        let target = table.intern(b"/document").unwrap_or_default();
        table.set_document_size(target, size_bytes);
        let record = Record { size_bytes, target, ..Record::default() };
        let records = (0..requests).map(|n| Record { time_ns: n.into(), ..record });
        let name = format!("{size_bytes} bytes");
        let info = TraceInfo { path: name.clone(), sha256: None, lines_rejected: 0 };
        Ok(Self::new(name, info, Trace::from_records(table, records)?))
    }

    pub(crate) fn new(name: String, info: TraceInfo, trace: Trace) -> Self {
        let table = &trace.targets;
        let ids = 0..table.len() as u32;
        let requests: Vec<u64> = ids.clone().map(|t| table.requests(t)).collect();
        let sizes = ids.clone().map(|t| table.document_size_bytes(t)).collect();
        let names = ids.map(|t| TargetId::from_key(table.name(t))).collect();
        Self { name, info, targets: Targets::new(names, sizes, &requests), trace, classes: None }
    }

    /// The sizes of all targets together, in bytes.
    #[must_use]
    pub fn working_set_bytes(&self) -> u64 {
        self.targets.size_bytes.iter().fold(0, |sum, size| sum.saturating_add(*size))
    }

    /// Document sizes in bytes of static requests with the number of requests for each. Dynamic requests are
    /// drawn from `seed` as in a run.
    ///
    /// # Errors
    /// When the kept records cannot be read.
    pub fn static_sizes(&self, dynamic_share: f64, seed: u64) -> Result<Vec<(u64, u64)>, TraceError> {
        let mut requests = vec![0; self.targets.len()];
        for request in self.requests()?.with_dynamic(dynamic_share, seed) {
            let request: SimRequest = request?;
            requests[request.target as usize] += u64::from(request.kind == Kind::Static);
        }
        let counted = self.targets.size_bytes.iter().copied().zip(requests);
        Ok(counted.filter(|&(_, requests)| requests > 0).collect())
    }

    /// Iterates over the requests from the first. May be called repeatedly and from several threads.
    ///
    /// # Errors
    /// When the kept records cannot be read.
    pub fn requests<E: From<TraceError>>(&self) -> Result<WorkloadRequests<E>, TraceError> {
        let classes = self.classes.as_ref().map(|classes| Arc::clone(&classes.of_target));
        Ok(WorkloadRequests::new(self.trace.open()?).with_classes(classes))
    }
}
