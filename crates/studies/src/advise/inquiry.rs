//! The questions that an advice answers one after the other: how much memory, how many back-ends, which policy.

use super::facts::LogFacts;
use super::finals::{FinalFigures, FinalSetting, finals};
use super::memory::{MemoryStep, enough_bytes, provisional_bytes, spare_bytes, steps};
use super::plan::{AdviseBench, AdviseLoad, RunPlan};
use super::question::AdviseQuestion;
use super::sizing::{Demand, MOST_UTILIZATION, PolicySize, carrier_instead, idle_p99_s, sizes};
use super::verdict::{AdviseVerdict, verdict};
use crate::scenario::ScenarioError;

/// With fewer back-ends none could fail.
const LEAST_BACKENDS: usize = 2;
/// Where nothing says how many there should be.
const USUAL_BACKENDS: usize = 4;

/// What the cluster is to carry, as it was understood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdviseTarget {
    /// Requests per second at the peak.
    pub peak_rps: f64,
    /// Over the log's own peak; `None` where the log has no times.
    pub times_own_peak: Option<f64>,
    /// Whether nobody said what is to be carried, and the log does not tell: then it is a share of what the cluster can serve.
    pub assumed: bool,
    /// The longest 99th percentile that is wanted, in seconds.
    pub p99_s: f64,
    /// The 99th percentile of an idle cluster in seconds, where that is longer already.
    pub idle_p99_s: Option<f64>,
}

/// Memory of each back-end, what was tried for it on how many, and the sizes of clusters with it.
pub(super) struct MemoryAndSizes {
    pub(super) memory_bytes: u64,
    pub(super) memory_steps: Vec<MemoryStep>,
    pub(super) memory_backends: usize,
    pub(super) sizes: Vec<PolicySize>,
}

/// A question while it is answered.
pub(super) struct AdviseInquiry<'a> {
    pub(super) bench: &'a AdviseBench<'a>,
    /// The same for a part of the log, for what is asked first.
    pub(super) brief: &'a AdviseBench<'a>,
    pub(super) facts: &'a LogFacts,
    pub(super) question: &'a AdviseQuestion,
    /// Requests per second at the peak.
    pub(super) wanted: Option<f64>,
    pub(super) idle_p99_s: Option<f64>,
    pub(super) holds_all: bool,
}

impl AdviseInquiry<'_> {
    pub(super) fn memory_and_sizes(&mut self) -> Result<MemoryAndSizes, ScenarioError> {
        let documents = self.facts.documents_bytes;
        let given = self.question.memory.map(|memory| memory.bytes(documents));
        let least = spare_bytes(self.question.hardware);
        let first = given.unwrap_or_else(|| provisional_bytes(documents, least));
        self.keeps_p99_when_idle(first)?;
        if given.is_some() || self.holds_all {
            let sizes = self.sizes(self.bench, first, true)?;
            let memory_backends = self.backends(&sizes);
            return Ok(MemoryAndSizes {
                memory_bytes: first,
                memory_steps: Vec::new(),
                memory_backends,
                sizes,
            });
        }
        let memory_backends = self.backends(&self.sizes(self.brief, first, false)?);
        let memory_steps = steps(self.bench, documents, memory_backends, self.question.seed)?;
        let enough = enough_bytes(&memory_steps, least).unwrap_or(first);
        // More than enough for throughput may be what the slowest of idle back-ends ask for.
        let more = memory_steps.iter().map(|step| step.memory_bytes).filter(|&bytes| bytes > enough);
        let mut memory_bytes = enough;
        if !self.keeps_p99_when_idle(enough)? {
            let with_enough = self.idle_p99_s;
            for bytes in more {
                if self.keeps_p99_when_idle(bytes)? {
                    memory_bytes = bytes;
                    break;
                }
            }
            // Where none does, the advice tells of what is enough for throughput.
            if memory_bytes == enough {
                self.idle_p99_s = with_enough;
            }
        }
        Ok(MemoryAndSizes {
            memory_bytes,
            memory_steps,
            memory_backends,
            sizes: self.sizes(self.bench, memory_bytes, true)?,
        })
    }

    /// Whether the 99th percentile that is wanted can be had with this memory at all.
    fn keeps_p99_when_idle(&mut self, memory_bytes: u64) -> Result<bool, ScenarioError> {
        let idle_s = idle_p99_s(self.bench, memory_bytes, self.question.seed)?;
        self.idle_p99_s = Some(idle_s).filter(|&idle_s| idle_s > self.question.p99_s);
        Ok(self.idle_p99_s.is_none())
    }

    /// The sizes that all policies need, and where `shown` also what they can serve on some others.
    fn sizes(
        &self,
        bench: &AdviseBench<'_>,
        memory_bytes: u64,
        shown: bool,
    ) -> Result<Vec<PolicySize>, ScenarioError> {
        let p99_s = Some(self.question.p99_s).filter(|_| self.idle_p99_s.is_none());
        let demand = self.wanted.map(|peak_rps| Demand { peak_rps, p99_s });
        sizes(bench, memory_bytes, demand, shown, self.question.seed)
    }

    /// As many back-ends as the policy needs that needs the fewest.
    fn backends(&self, sizes: &[PolicySize]) -> usize {
        let fewest = sizes.iter().filter_map(|size| size.fewest).min();
        // Where not even the most suffice, policies are judged on so many.
        let most = self.bench.most_backends();
        let otherwise = if self.wanted.is_some() { most } else { USUAL_BACKENDS.min(most) };
        self.question.backends.unwrap_or_else(|| fewest.unwrap_or(otherwise).max(LEAST_BACKENDS))
    }

    /// The number of back-ends, the load on them, all policies there, and which one to take.
    pub(super) fn cluster(
        &self,
        memory_bytes: u64,
        sizes: &[PolicySize],
    ) -> Result<(usize, AdviseTarget, Vec<FinalFigures>, AdviseVerdict), ScenarioError> {
        let mut backends = self.backends(sizes);
        let searched = self.question.backends.is_none();
        // What needs at least twice as many back-ends is no choice beside what carries the load.
        let most = if searched { 2 * backends - 1 } else { backends };
        loop {
            let target = self.target(memory_bytes, backends)?;
            let seed = self.question.seed;
            let own_times = self.facts.peak_rps.filter(|_| target.times_own_peak.is_some());
            let speed = own_times.map(|own_rps| target.peak_rps / own_rps);
            let setting = FinalSetting { backends, memory_bytes, peak_rps: target.peak_rps, speed, seed };
            let all = finals(self.bench, setting)?;
            let mut verdict = verdict(&all, target.peak_rps, self.holds_all, seed);
            let load_decides = self.wanted.is_some() && !self.holds_all;
            if load_decides && let Some(policy) = carrier_instead(sizes, verdict.policy, most) {
                verdict = verdict.of_carrier(policy, &all, target.peak_rps, seed);
            }
            // The policy to take may need more back-ends than the one that needs the fewest.
            let needed = sizes.iter().find(|size| size.policy == verdict.policy).and_then(|size| size.fewest);
            match needed.filter(|&needed| needed > backends && searched) {
                Some(needed) => backends = needed,
                None => return Ok((backends, target, all, verdict)),
            }
        }
    }

    fn target(&self, memory_bytes: u64, backends: usize) -> Result<AdviseTarget, ScenarioError> {
        let (peak_rps, assumed) = match self.wanted {
            Some(peak_rps) => (peak_rps, false),
            None => {
                let load = AdviseLoad::Saturated;
                let plan = RunPlan::new("lard_r", backends, memory_bytes, load, self.question.seed);
                (MOST_UTILIZATION * self.bench.run(&plan)?.throughput_rps, true)
            }
        };
        Ok(AdviseTarget {
            peak_rps,
            times_own_peak: self.facts.peak_rps.map(|own_rps| peak_rps / own_rps),
            assumed,
            p99_s: self.question.p99_s,
            idle_p99_s: self.idle_p99_s,
        })
    }
}
