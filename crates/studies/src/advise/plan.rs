//! Runs of the simulator for an advice.

use plimsoll_policy::params::{GivenValue, ParamSet};
use plimsoll_policy::{BackendId, Health, Nanos, Thresholds, Time};
use plimsoll_sim::hardware::HardwareSpec;
use plimsoll_sim::{Arrivals, Fault, FaultAction, HotSpot, Recording, SeriesPoint, TimeShape};
use rayon::prelude::*;

use super::contestants::is_static;
use crate::execute::{Extent, execute_recording};
use crate::matrix::Progress;
use crate::scenario::{Admission, Scenario, ScenarioError, Strategy};
use crate::workload::Workload;

/// The most that are tried of a log that is long enough.
pub(super) const MOST_BACKENDS: usize = 64;

/// Points along a run of a log that is long enough, from which its uncertainty follows.
const MOST_POINTS: u64 = 40;
/// With fewer nobody could say how far figures differ from part to part.
const LEAST_POINTS: u64 = 12;

/// The most back-ends that somebody may give.
const GIVEN_BACKENDS: usize = 256;

/// Requests that a cluster has at once under LARD's admission limit, with its defaults.
pub(super) fn under_way(backends: usize) -> u64 {
    Thresholds::default().admission_limit_of(backends)
}

/// What is asked of a cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum AdviseLoad {
    /// As much as LARD's admission limit lets in.
    Saturated,
    /// This many requests under way for each back-end.
    UnderWay(u64),
    /// Independent arrivals, in requests per second.
    Poisson(f64),
    /// Arrivals in bursts, in requests per second: gamma-distributed gaps with a coefficient of variation of 4.
    Bursts(f64),
    /// The log's own times, so many times as fast.
    OwnTimes(f64),
}

/// What happens during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Incident {
    /// Nothing.
    None,
    /// After half of it one back-end becomes four times as slow.
    OneSlows,
    /// After half of it one back-end fails; a tenth later it returns with an empty memory.
    OneReturns,
    /// After half of it, and for a fifth, the most requested document gets 30 % of all requests.
    FlashCrowd,
}

/// One run.
#[derive(Debug, Clone)]
pub(super) struct RunPlan {
    pub(super) policy: &'static str,
    /// Parameters that are not defaults.
    pub(super) params: Vec<(&'static str, String)>,
    pub(super) backends: usize,
    pub(super) memory_bytes: u64,
    pub(super) load: AdviseLoad,
    pub(super) incident: Incident,
    pub(super) seed: u64,
}

impl RunPlan {
    pub(super) fn new(
        policy: &'static str,
        backends: usize,
        memory_bytes: u64,
        load: AdviseLoad,
        seed: u64,
    ) -> Self {
        Self { policy, params: Vec::new(), backends, memory_bytes, load, incident: Incident::None, seed }
    }
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunFigures {
    /// Without the end of a run, where its last long answers are waited for, and never more than networks can send.
    pub(super) throughput_rps: f64,
    /// Seconds that networks take for the answers of each point.
    pub(super) network_s: Vec<f64>,
    /// Mean bytes of an answer.
    pub(super) answer_mean_bytes: f64,
    pub(super) miss_ratio: f64,
    pub(super) mean_s: f64,
    pub(super) p99_s: f64,
    pub(super) slowdown_mean: f64,
    pub(super) disk: f64,
    pub(super) cpu: f64,
    /// Requests of the run that were not answered.
    pub(super) unanswered: u64,
    pub(super) points: Vec<SeriesPoint>,
}

/// What all runs of an advice have in common.
#[derive(Clone, Copy)]
pub(super) struct AdviseBench<'a> {
    pub(super) workload: &'a Workload,
    pub(super) hardware: &'static HardwareSpec,
    /// Costs of the model `lard` that were given beside the hardware.
    pub(super) costs: &'a ParamSet,
    /// Bytes per second that the network of one back-end can send.
    pub(super) network_bytes_per_s: f64,
    /// Share of a run that does not count, at its begin.
    pub(super) warmup: f64,
    /// Memories begin with all documents in them, as far as they fit.
    pub(super) starts_full: bool,
    pub(super) progress: &'a dyn Progress,
}

/// Share of a run that does not count: memories are empty when it begins.
pub(super) const WARMUP: f64 = 0.4;

impl AdviseBench<'_> {
    /// Runs all of these, one per CPU at a time; figures in their order.
    pub(super) fn run_all(&self, plans: &[RunPlan]) -> Result<Vec<RunFigures>, ScenarioError> {
        self.run_each(plans).into_iter().collect()
    }

    /// The same, each with its own failure.
    pub(super) fn run_each(&self, plans: &[RunPlan]) -> Vec<Result<RunFigures, ScenarioError>> {
        plans.par_iter().with_max_len(1).map(|plan| self.run(plan)).collect()
    }

    /// Runs one.
    pub(super) fn run(&self, plan: &RunPlan) -> Result<RunFigures, ScenarioError> {
        let scenario = self.scenario(plan)?;
        let requests = self.requests();
        let recording =
            Recording { point_every: Some(self.block_requests(plan.backends)), ..Recording::default() };
        let extent = Extent { recording, ..Extent::default() };
        let (run, mut outcome) = execute_recording(&scenario, self.workload, extent, &mut ())?;
        outcome.points.truncate(self.steady_points(plan.backends));
        self.progress.advance(requests);
        let response = run.response_time_s.as_ref();
        let answer_mean_bytes = run.sent_bytes as f64 / run.completed.max(1) as f64;
        let network_s = self.network_s(plan.policy, &outcome.points, answer_mean_bytes);
        Ok(RunFigures {
            throughput_rps: steady_rps(&outcome.points, &network_s).unwrap_or(run.throughput_rps),
            network_s,
            answer_mean_bytes,
            miss_ratio: run.miss_ratio.unwrap_or(0.0),
            mean_s: response.map_or(0.0, |summary| summary.mean),
            p99_s: response.map_or(0.0, |summary| summary.p99),
            slowdown_mean: run.slowdown.as_ref().map_or(0.0, |summary| summary.mean),
            disk: run.utilization.disk.unwrap_or(0.0),
            cpu: run.utilization.cpu,
            unanswered: run.unanswered(),
            points: outcome.points,
        })
    }

    /// The seconds that networks take for the answers of each point: all of them together, if they can be used evenly. Where the load has no say in
    /// where requests go, that one decides which sends most in all.
    fn network_s(&self, policy: &str, points: &[SeriesPoint], answer_mean_bytes: f64) -> Vec<f64> {
        let backends = points.first().map_or(0, |point| point.sent_bytes.len());
        let sent_in_all =
            |backend: &usize| points.iter().map(|point| point.sent_bytes[*backend]).sum::<u64>();
        let busiest = (0..backends).max_by_key(sent_in_all).filter(|_| is_static(policy));
        let bytes = |point: &SeriesPoint| match busiest {
            Some(busiest) => point.sent_bytes[busiest] as f64,
            None => point.sent_bytes.iter().sum::<u64>() as f64 / backends.max(1) as f64,
        };
        let bytes_per_s = self.network_bytes_per_s / larger_at_the_end(points, answer_mean_bytes);
        points.iter().map(|point| bytes(point) / bytes_per_s).collect()
    }

    /// Requests between two points of a run: a fortieth of those that count, or as many more as the cluster has at once, lest a block be nothing but
    /// what was under way when it began.
    fn block_requests(&self, backends: usize) -> u64 {
        let counted = self.requests() - self.warmup();
        (counted / MOST_POINTS).max(under_way(backends)).min(counted / LEAST_POINTS).max(1)
    }

    /// Points before the last requests of a run are under way, whose long answers are waited for while nothing else comes.
    fn steady_points(&self, backends: usize) -> usize {
        let counted = self.requests() - self.warmup();
        let points = counted.saturating_sub(under_way(backends)) / self.block_requests(backends);
        // On more back-ends than the log can judge hardly any would be left.
        points.max(LEAST_POINTS - 1) as usize
    }

    /// The most back-ends that this log can judge: on more, a twelfth of the requests that count is less than what is under way at once.
    pub(super) fn judged_backends(&self) -> usize {
        let block = (self.requests() - self.warmup()) / LEAST_POINTS;
        (1..=GIVEN_BACKENDS).rev().find(|&backends| under_way(backends) <= block).unwrap_or(1)
    }

    /// The most that are tried when nobody says how many.
    pub(super) fn most_backends(&self) -> usize {
        self.judged_backends().min(MOST_BACKENDS)
    }

    /// Requests before a run counts.
    fn warmup(&self) -> u64 {
        (self.requests() as f64 * self.warmup) as u64
    }

    pub(super) fn requests(&self) -> u64 {
        self.workload.trace.len()
    }

    fn scenario(&self, plan: &RunPlan) -> Result<Scenario, ScenarioError> {
        let strategy = Strategy::find(plan.policy).map_err(|e| ScenarioError::Setting(e.to_string()))?;
        let mut s = Scenario::lard(strategy, plan.backends, plan.seed);
        s.hardware = self.hardware;
        let model = s.model;
        let of_hardware = s.hardware_of(model.name, model.params);
        let given = self.costs.given().map(|(key, value)| (key, value.into()));
        let full = self.starts_full.then_some(("starts_full", GivenValue::Text("1".to_owned())));
        let costs: Vec<(&str, GivenValue)> = of_hardware.chain(given).chain(full).collect();
        s.set_model(costs)?;
        s.set_policy(plan.params.iter().map(|(key, value)| (*key, GivenValue::Text(value.clone()))))?;
        s.cache_bytes = plan.memory_bytes;
        s.warmup = self.warmup();
        let rate_rps = self.set_load(&mut s, plan.load);
        // Incidents come at times of their own.
        s.settles = plan.incident == Incident::None;
        self.set_incident(&mut s, plan.incident, rate_rps);
        Ok(s)
    }

    /// Returns the rate of arrivals, 0 where it is not known beforehand.
    fn set_load(&self, s: &mut Scenario, load: AdviseLoad) -> f64 {
        match load {
            AdviseLoad::Saturated => 0.0,
            AdviseLoad::UnderWay(each) => {
                s.admission = Admission::Fixed((each * s.backends as u64).max(1));
                0.0
            }
            AdviseLoad::Poisson(rate_rps) => {
                s.arrivals = Arrivals::Poisson { rate_rps };
                rate_rps
            }
            AdviseLoad::Bursts(rate_rps) => {
                s.arrivals = Arrivals::Renewal { rate_rps, shape: TimeShape::Gamma { cv: 4.0 } };
                rate_rps
            }
            AdviseLoad::OwnTimes(speed) => {
                s.arrivals = Arrivals::Trace { speed };
                0.0
            }
        }
    }

    fn set_incident(&self, s: &mut Scenario, incident: Incident, rate_rps: f64) {
        let lasts_s = if rate_rps > 0.0 { self.requests() as f64 / rate_rps } else { return };
        let at = |share: f64| Time::ZERO + Nanos::from_secs_f64(share * lasts_s).unwrap_or(Nanos::ZERO);
        let fault = |share, action| Fault { at: at(share), backend: BackendId::new(0), action };
        match incident {
            Incident::None => {}
            Incident::OneSlows => s.faults.push(fault(0.5, FaultAction::Speed(0.25))),
            Incident::OneReturns => s.faults.extend([
                fault(0.5, FaultAction::Health(Health::Down)),
                fault(0.6, FaultAction::Health(Health::Up)),
            ]),
            Incident::FlashCrowd => {
                s.hot_spots.push(HotSpot { from: at(0.5), until: at(0.7), share: 0.3 });
            }
        }
    }
}

/// How many times as large the answers of the whole run are, in the mean, as those of these points but the first: at saturation large answers
/// end last, after the points that count. At least 1.
fn larger_at_the_end(points: &[SeriesPoint], answer_mean_bytes: f64) -> f64 {
    let counted = points.get(1..).unwrap_or_default();
    let answered: u64 = counted.iter().map(|point| point.answered).sum();
    let sent: u64 = counted.iter().flat_map(|point| &point.sent_bytes).sum();
    if sent == 0 { 1.0 } else { (answer_mean_bytes * answered as f64 / sent as f64).max(1.0) }
}

/// Answers per second between the first point and the last, and no more than networks send; `None` of too few points.
fn steady_rps(points: &[SeriesPoint], network_s: &[f64]) -> Option<f64> {
    let (first, rest) = points.split_first()?;
    let span_s = rest.last()?.end.since(first.end).as_secs_f64();
    let answered: u64 = rest.iter().map(|point| point.answered).sum();
    // Without the first, as above: when its answers began is not known.
    let span_s = span_s.max(network_s.iter().skip(1).sum());
    (span_s > 0.0).then(|| answered as f64 / span_s)
}

#[cfg(test)]
mod tests {
    use super::super::sample::twice;
    use super::*;

    #[test]
    fn the_begin_of_a_run_does_not_count() {
        let point = |s, answered| SeriesPoint {
            end: Time::ZERO + Nanos::from_secs(s),
            answered,
            ..SeriesPoint::default()
        };
        let points = [point(7, 100), point(8, 100), point(9, 100)];
        assert_eq!(steady_rps(&points, &[0.0; 3]), Some(100.0));
        assert_eq!(steady_rps(&points, &[9.0, 2.0, 2.0]), Some(50.0));
        assert_eq!(steady_rps(&points[..1], &[0.0]), None);
    }

    /// The fault that this is about: a mirror's images had not been sent yet when the points ended, and networks seemed to carry 30 times as much.
    #[test]
    fn networks_send_the_large_answers_that_end_last_as_well() {
        let point =
            |sent| SeriesPoint { answered: 100, sent_bytes: vec![sent, sent], ..SeriesPoint::default() };
        let points = [point(1_000_000), point(500), point(500)];
        assert_eq!(larger_at_the_end(&points, 10.0), 1.0, "200 answers have sent 2,000 bytes");
        assert_eq!(larger_at_the_end(&points, 300.0), 30.0);
        assert_eq!(larger_at_the_end(&points, 5.0), 1.0);
        assert_eq!(larger_at_the_end(&points[..1], 300.0), 1.0);
    }

    /// What policies come to on the first so many requests, with warm memories or without.
    fn figures(workload: &Workload, policy: &'static str, warm: bool) -> RunFigures {
        let (again, before) = twice(workload).unwrap();
        let costs = super::super::AdviseQuestion::default().costs;
        let bench = AdviseBench {
            workload: if warm { &again } else { workload },
            hardware: plimsoll_sim::hardware::HARDWARE[0],
            costs: &costs,
            network_bytes_per_s: 1e15,
            warmup: if warm { before } else { WARMUP },
            starts_full: false,
            progress: &(),
        };
        bench.run(&RunPlan::new(policy, 2, 1 << 30, AdviseLoad::Saturated, 1)).unwrap()
    }

    #[test]
    fn one_request_more_changes_little() {
        for count in [8_000, 10_000] {
            let some = |count| Workload::synthesize_first("rice", &[], 1, Some(count)).unwrap();
            let (less, more) = (some(count), some(count + 1));
            for (policy, warm) in [("round_robin", true), ("uri_hash", false), ("lard_r", false)] {
                let (less, more) = (figures(&less, policy, warm), figures(&more, policy, warm));
                let ratio = more.throughput_rps / less.throughput_rps;
                assert!((0.97..1.03).contains(&ratio), "{policy}: {ratio}");
                assert!((more.miss_ratio - less.miss_ratio).abs() < 0.02, "{policy}: {less:?} {more:?}");
                assert_eq!(less.points.len(), more.points.len());
            }
        }
    }
}
