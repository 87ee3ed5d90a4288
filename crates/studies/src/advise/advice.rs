//! From a log to an advice: memory, size of the cluster, policy, and what to mind.

use plimsoll_sim::hardware::HardwareSpec;

use super::contestants::CONTESTANTS;
use super::error::AdviseError;
use super::facts::{LEAST_REQUESTS, LogFacts};
use super::finals::FinalFigures;
use super::inquiry::{AdviseInquiry, AdviseTarget, MemoryAndSizes};
use super::levers::{AdviseLever, levers};
use super::memory::{MemoryStep, spare_bytes};
use super::plan::{AdviseBench, WARMUP};
use super::question::{AdviseQuestion, LEAST_RPS, MOST_RPS, TargetLoad};
use super::sample::{BriefLog, sample, twice};
use super::sizing::{MOST_UTILIZATION, PolicySize};
use super::stress::{BRIEF_REQUESTS, STRESS_RUNS, StressOutcome, stress};
use super::verdict::{AdviseVerdict, figures_of};
use crate::matrix::Progress;
use crate::workload::Workload;

/// The longest that a log's own times may last at the load that is asked for, in seconds: 30 years.
const LONGEST_S: f64 = 1e9;
/// See the module's documentation.
#[derive(Debug, Clone)]
pub struct Advice {
    /// What the log says.
    pub facts: LogFacts,
    /// Requests that were simulated, where the log is longer.
    pub sampled: Option<u64>,
    /// The same of those on which conditions were tried.
    pub briefly: Option<u64>,
    /// Hardware of the back-ends.
    pub hardware: &'static HardwareSpec,
    /// Costs that were given beside it.
    pub costs: Vec<String>,
    /// Requests per second that the networks of all back-ends can answer together, if all send as much.
    pub network_rps: f64,
    /// What is to be carried.
    pub target: AdviseTarget,
    /// Memory for documents of each back-end in bytes.
    pub memory_bytes: u64,
    /// Nobody said how much, and all documents fit into the least that such a machine has to spare: then memories are warm, and load alone decides.
    pub holds_all: bool,
    /// What more and less memory would make of it; empty where the memory was given, or holds all documents.
    pub memory_steps: Vec<MemoryStep>,
    /// The number of back-ends for which that was tried.
    pub memory_backends: usize,
    /// The number of back-ends.
    pub backends: usize,
    /// The most that the log suffices for, 256 where it suffices for more.
    pub most_backends: usize,
    /// Whether it was given.
    pub backends_given: bool,
    /// What each policy can serve and needs.
    pub sizes: Vec<PolicySize>,
    /// What each policy did on this cluster.
    pub finals: Vec<FinalFigures>,
    /// Which one to take.
    pub verdict: AdviseVerdict,
    /// All of them under other conditions.
    pub stress: Vec<StressOutcome>,
    /// What changes with each setting.
    pub levers: Vec<AdviseLever>,
    /// Whether targets are paths without their query.
    pub strips_query: bool,
    /// Seed of every random choice.
    pub seed: u64,
}

impl Advice {
    /// What the advised policy did.
    ///
    /// # Panics
    /// Never: a verdict names one of the policies.
    #[must_use]
    pub fn own(&self) -> &FinalFigures {
        figures_of(&self.finals, self.verdict.policy).expect("a verdict names one of the policies")
    }

    /// The fewest back-ends that a policy needs.
    #[must_use]
    pub fn fewest(&self, policy: &str) -> Option<usize> {
        self.sizes.iter().find(|size| size.policy == policy).and_then(|size| size.fewest)
    }

    /// Whether the advised cluster carries the peak as it should.
    #[must_use]
    pub fn carries(&self) -> bool {
        self.is_carried_by(self.own())
    }

    /// Whether it does with the policy of these figures. A number of back-ends that was given may be one that was not tried when the fewest were
    /// looked for: what the policy did on it decides.
    #[must_use]
    pub fn is_carried_by(&self, figures: &FinalFigures) -> bool {
        let in_time = self.target.idle_p99_s.is_some() || figures.peak_p99_s <= self.target.p99_s;
        match self.backends_given {
            _ if self.target.assumed => true,
            _ if self.overloads(figures) => false,
            true => self.target.peak_rps <= MOST_UTILIZATION * figures.capacity_rps && in_time,
            false => self.fewest(figures.policy).is_some_and(|fewest| fewest <= self.backends),
        }
    }

    /// Whether more arrives at the peak than this policy can serve: then queues grow as long as that lasts, and times say only how long the run was.
    #[must_use]
    pub fn overloads(&self, figures: &FinalFigures) -> bool {
        !figures.bears(self.target.peak_rps)
    }
}

/// About how many requests an advice simulates: the length of a progress bar.
#[must_use]
pub fn advise_requests(requests: u64, question: &AdviseQuestion) -> u64 {
    let policies = CONTESTANTS.len() as u64;
    let searched = if question.memory.is_none() { 7 * policies } else { 0 };
    let most = requests.min(question.most_requests);
    (searched + 16 * policies + 12) * most + STRESS_RUNS * most.min(BRIEF_REQUESTS)
}

/// Advice for the site that wrote this log.
///
/// # Errors
/// When the log is too short or says no sizes, when its peak is asked for and it has no times, or when a run fails.
pub fn advise(
    workload: &Workload,
    question: &AdviseQuestion,
    progress: &dyn Progress,
) -> Result<Advice, AdviseError> {
    let facts = LogFacts::of(&workload.trace)?;
    if facts.requests < LEAST_REQUESTS {
        return Err(AdviseError::TooShort { requests: facts.requests });
    }
    if facts.documents_bytes == 0 {
        return Err(AdviseError::NoSizes);
    }
    let part = sample(workload, question.most_requests, WARMUP)?;
    let workload = part.as_ref().unwrap_or(workload);
    let network_bytes_per_s = question.network_bits_per_s / 8.0;
    let bench = AdviseBench {
        workload,
        hardware: question.hardware,
        costs: &question.costs,
        network_bytes_per_s,
        warmup: WARMUP,
        starts_full: false,
        progress,
    };
    let wanted = wanted(question, &facts)?;
    let holds_all = question.memory.is_none() && facts.documents_bytes <= spare_bytes(question.hardware);
    let brief = BriefLog::of(workload, BRIEF_REQUESTS, WARMUP)?;
    let [brief_bench, warm_bench] = brief.benches(bench, holds_all);
    // What each back-end holds was read once, and never again.
    let again = if holds_all { Some(twice(workload)?) } else { None };
    let bench = match &again {
        Some((again, before)) => AdviseBench { workload: again, warmup: *before, starts_full: true, ..bench },
        None => bench,
    };
    let mut inquiry = AdviseInquiry {
        bench: &bench,
        brief: &brief_bench,
        facts: &facts,
        question,
        wanted,
        idle_p99_s: None,
        holds_all,
    };
    let MemoryAndSizes { memory_bytes, memory_steps, memory_backends, sizes } = inquiry.memory_and_sizes()?;
    let (backends, target, finals, verdict) = inquiry.cluster(memory_bytes, &sizes)?;
    let policy = verdict.policy;
    let own = figures_of(&finals, policy);
    let answer_bytes = own.map_or(1.0, |figures| figures.answer_mean_bytes).max(1.0);
    Ok(Advice {
        sampled: part.as_ref().map(|part| part.trace.len()),
        briefly: Some(BRIEF_REQUESTS).filter(|&most| workload.trace.len() > most),
        hardware: question.hardware,
        costs: question.costs.given().map(|(key, value)| format!("{key} = {value}")).collect(),
        network_rps: network_bytes_per_s / answer_bytes * backends as f64,
        target,
        memory_bytes,
        holds_all,
        memory_steps,
        memory_backends,
        backends,
        most_backends: bench.judged_backends(),
        backends_given: question.backends.is_some(),
        sizes,
        stress: stress([&brief_bench, &warm_bench], backends, memory_bytes, policy, question.seed)?,
        levers: levers(&bench, policy, backends, memory_bytes, question.seed)?,
        finals,
        verdict,
        facts,
        strips_query: question.strips_query,
        seed: question.seed,
    })
}

/// Requests per second at the peak that are to be carried, where that is known.
fn wanted(question: &AdviseQuestion, facts: &LogFacts) -> Result<Option<f64>, AdviseError> {
    if facts.duration_s > LONGEST_S {
        return Err(AdviseError::Span { duration_s: facts.duration_s });
    }
    let peak_rps = match (question.load, facts.peak_rps) {
        (TargetLoad::Rate(rps), _) => rps,
        (TargetLoad::Times(times), Some(peak_rps)) => times * peak_rps,
        (TargetLoad::Times(1.0), None) => return Ok(None),
        (TargetLoad::Times(_), None) if facts.has_one_time => return Err(AdviseError::OneTime),
        (TargetLoad::Times(_), None) => return Err(AdviseError::NoTimes),
    };
    let lasts_s = facts.peak_rps.map_or(0.0, |own_rps| facts.duration_s * own_rps / peak_rps);
    if !(LEAST_RPS..=MOST_RPS).contains(&peak_rps) || lasts_s > LONGEST_S {
        return Err(AdviseError::Load { peak_rps });
    }
    Ok(Some(peak_rps))
}

#[cfg(test)]
mod tests {
    use super::super::VerdictReason;
    use super::*;
    use crate::spec::values::CacheSize;
    use plimsoll_sim::hardware::PAPER;

    fn question() -> AdviseQuestion {
        AdviseQuestion { hardware: &PAPER, ..AdviseQuestion::default() }
    }

    #[test]
    fn small_memories_and_slow_disks_need_locality_and_the_same_log_gives_the_same_advice() {
        let workload = Workload::synthesize_first("rice", &[], 1, Some(20_000)).unwrap();
        let question = AdviseQuestion {
            memory: Some(CacheSize::Bytes(8 << 20)),
            backends: Some(4),
            load: TargetLoad::Rate(200.0),
            ..question()
        };
        let advice = advise(&workload, &question, &()).unwrap();
        assert_ne!(advice.verdict.reason, VerdictReason::Any);
        assert!(advice.own().miss_ratio < advice.finals[0].miss_ratio, "{:?}", advice.finals);
        assert_eq!((advice.backends, advice.memory_bytes, advice.sampled), (4, 8 << 20, None));
        assert!(advice.memory_steps.is_empty() && !advice.levers.is_empty() && !advice.stress.is_empty());
        let again = advise(&workload, &question, &()).unwrap();
        assert_eq!(format!("{advice:?}"), format!("{again:?}"));
    }

    #[test]
    fn where_everything_fits_any_policy_will_do() {
        let workload = Workload::synthesize_first("chess", &[], 1, Some(10_000)).unwrap();
        let question = AdviseQuestion {
            memory: Some(CacheSize::Bytes(1 << 40)),
            backends: Some(2),
            load: TargetLoad::Rate(20.0),
            hardware: plimsoll_sim::hardware::HARDWARE[0],
            ..question()
        };
        let advice = advise(&workload, &question, &()).unwrap();
        assert_ne!(advice.verdict.reason, VerdictReason::Locality);
    }

    #[test]
    fn a_machine_of_today_holds_small_sites_in_memory_and_then_load_alone_decides() {
        // 2,000 documents of 100 MiB at most, and no memory that was given.
        let workload = Workload::synthesize_first("chess", &[], 1, Some(4_000)).unwrap();
        let question = AdviseQuestion { load: TargetLoad::Rate(20.0), ..AdviseQuestion::default() };
        let advice = advise(&workload, &question, &()).unwrap();
        assert!(advice.holds_all && advice.memory_steps.is_empty(), "{:?}", advice.facts);
        assert_eq!((advice.memory_bytes, advice.verdict.reason), (256 << 20, VerdictReason::Any));
        assert!(advice.finals.iter().all(|figures| figures.miss_ratio == 0.0), "{:?}", advice.finals);
    }

    #[test]
    fn a_log_that_is_too_short_or_says_no_sizes_gets_none() {
        let short = Workload::synthesize_first("chess", &[], 1, Some(1_999)).unwrap();
        let error = advise(&short, &question(), &()).unwrap_err().to_string();
        assert!(error.starts_with("1,999 requests are too few"), "{error}");
        let empty = Workload::of_one_document(0, 2_000).unwrap();
        let error = advise(&empty, &question(), &()).unwrap_err().to_string();
        assert!(error.contains("--fields size="), "{error}");
    }

    #[test]
    fn the_peak_is_known_or_said_or_assumed() {
        let facts = |peak_rps| LogFacts {
            peak_rps,
            ..LogFacts::of(&Workload::of_one_document(5, 3).unwrap().trace).unwrap()
        };
        let of = |load, peak_rps| wanted(&AdviseQuestion { load, ..question() }, &facts(peak_rps));
        assert_eq!(of(TargetLoad::Times(2.0), Some(30.0)).unwrap(), Some(60.0));
        assert_eq!(of(TargetLoad::Rate(9.0), None).unwrap(), Some(9.0));
        assert_eq!(of(TargetLoad::Times(1.0), None).unwrap(), None);
        assert!(of(TargetLoad::Times(3.0), None).unwrap_err().to_string().contains("--target-load"));
        for wrong in [1e-9, 1e30] {
            let error = of(TargetLoad::Rate(wrong), None).unwrap_err().to_string();
            assert!(error.contains("--target-load") && !error.contains("--speed"), "{error}");
        }
        let since_1970 = LogFacts { duration_s: 1.8e9, ..facts(Some(100.0)) };
        let error = wanted(&question(), &since_1970).unwrap_err().to_string();
        assert!(error.contains("20,833 days apart") && !error.contains("--target-load"), "{error}");
        let year = LogFacts { duration_s: 3e7, ..facts(Some(100.0)) };
        let slow = AdviseQuestion { load: TargetLoad::Rate(0.01), ..question() };
        assert!(wanted(&slow, &year).is_err());
    }
}
