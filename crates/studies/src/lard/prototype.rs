//! Figure 17: the throughput of the paper's prototype cluster (section 6.3), by real traffic.
//!
//! The traffic is not made here: the caller measures a cluster and passes in the points. This module runs the
//! simulator on the same requests and judges the claims.

use plimsoll_report::{Align, Claim, Measured, Plot, Run, Section, Series, SeriesStyle, Table};

use super::front_end_claims::{self, EXPLAIN_RATIO, EXPLAIN_SIMULATOR, FIGURE, MOST};
use super::results::{LARD_R, WRR, farthest};
use super::rule::{MeasuredClaim, NEAR, PaperReference, Rule};
use crate::matrix::{Progress, run_all};
use crate::scenario::{Scenario, Strategy};
use crate::strategy::strategy_look;
use crate::study_error::StudyError;
use crate::workload::Workload;

/// How the front-end of a real cluster gets requests to back-ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrototypeMechanism {
    /// It proxies requests and responses.
    Proxy,
    /// It hands connections off, and back-ends answer clients directly.
    Handoff,
}

/// Measurements of a real cluster in one setting.
#[derive(Debug, Clone)]
pub struct Prototype {
    /// The mechanism.
    pub mechanism: PrototypeMechanism,
    /// The setting, in words.
    pub setting: String,
    /// Parameters of the synthetic workload `rice`, whose first requests were sent.
    pub workload: Vec<(String, String)>,
    /// Seed of workload and policies.
    pub seed: u64,
    /// Memory cache of each back-end in bytes.
    pub cache_bytes: u64,
    /// Speed of the emulated disks and CPUs as a multiple of section 3.1.
    pub speed: f64,
    /// The points of the figure.
    pub points: Vec<PrototypePoint>,
}

/// One policy on one number of back-ends.
#[derive(Debug, Clone)]
pub struct PrototypePoint {
    /// The measured run, in real time.
    pub run: Run,
    /// Requests complete before the measurement.
    pub warmup_requests: u64,
    /// Share of time that the machine's CPUs, except the front-end's own, were busy; `None` if unknown.
    pub machine_busy: Option<f64>,
    /// Share of time that the front-end's own CPU was busy; `None` without one.
    pub front_end_busy: Option<f64>,
}

/// A measured point with the simulator's result.
struct Pair<'a> {
    live: &'a PrototypePoint,
    simulated: Run,
}

/// The results for the prototype.
pub(super) struct PrototypeFindings {
    pub(super) claims: Vec<Claim>,
    pub(super) section: Section,
    pub(super) runs: Vec<Run>,
}

/// Simulates every point on the same requests, and judges the claims.
pub(super) fn judge(prototype: &Prototype, progress: &dyn Progress) -> Result<PrototypeFindings, StudyError> {
    let mut pairs = Vec::new();
    for live in &prototype.points {
        pairs.push(Pair { live, simulated: simulate(prototype, live, progress)? });
    }
    let claims = claims(prototype, &pairs);
    let section = section(prototype, &pairs);
    let runs = pairs.into_iter().flat_map(|pair| [pair.live.run.clone(), pair.simulated]).collect();
    Ok(PrototypeFindings { claims, section, runs })
}

/// Simulates the same requests. A real measurement ends while requests are under way, a simulated run when
/// the last one is answered. So its time is the difference of two runs that end alike: one of all requests,
/// one of the warm-up only.
fn simulate(
    prototype: &Prototype,
    live: &PrototypePoint,
    progress: &dyn Progress,
) -> Result<Run, StudyError> {
    let (warmup, measured) = (live.warmup_requests, live.run.requests);
    let mut run = simulate_first(prototype, live, warmup + measured, warmup, progress)?;
    let whole = simulate_first(prototype, live, warmup + measured, 0, &())?;
    let before_s = match warmup {
        0 => 0.0,
        _ => simulate_first(prototype, live, warmup, 0, &())?.simulated_s,
    };
    run.simulated_s = whole.simulated_s - before_s;
    run.throughput_rps = (whole.completed.saturating_sub(warmup)) as f64 / run.simulated_s;
    Ok(run)
}

fn simulate_first(
    prototype: &Prototype,
    live: &PrototypePoint,
    requests: u64,
    warmup: u64,
    progress: &dyn Progress,
) -> Result<Run, StudyError> {
    let overrides: Vec<(&str, &str)> =
        prototype.workload.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let workload = Workload::synthesize_first("rice", &overrides, prototype.seed, Some(requests))?;
    let strategy = Strategy::find(&live.run.policy).map_err(crate::scenario::ScenarioError::from)?;
    let mut scenario = Scenario::lard(strategy, live.run.backends, prototype.seed);
    scenario.cache_bytes = prototype.cache_bytes;
    scenario.warmup = warmup;
    let speed = prototype.speed;
    let params = [
        ("cpu_speed", speed),
        ("disk_latency_us", 28_000.0 / speed),
        ("disk_transfer_per_4096_bytes_us", 410.0 / speed),
        ("disk_seek_us", 14_000.0 / speed),
    ];
    scenario.set_model(params.map(|(key, value)| (key, value.into())))?;
    let mut run = run_all(&[scenario], &workload, progress, |_| None)?.remove(0);
    run.load_series = plimsoll_report::LoadSeries::default();
    Ok(run)
}

fn find<'p, 'a>(pairs: &'p [Pair<'a>], policy: &str, backends: usize) -> Option<&'p Pair<'a>> {
    pairs.iter().find(|pair| pair.live.run.policy == policy && pair.live.run.backends == backends)
}

/// Throughput of LARD/R over that of WRR: measured, simulated.
fn ratios(pairs: &[Pair<'_>], backends: usize) -> Option<(f64, f64)> {
    let (lard_r, wrr) = (find(pairs, LARD_R, backends)?, find(pairs, WRR, backends)?);
    Some((
        lard_r.live.run.throughput_rps / wrr.live.run.throughput_rps,
        lard_r.simulated.throughput_rps / wrr.simulated.throughput_rps,
    ))
}

/// Measured over simulated throughput.
fn agreement(pair: &Pair<'_>) -> f64 {
    pair.live.run.throughput_rps / pair.simulated.throughput_rps
}

fn claims(prototype: &Prototype, pairs: &[Pair<'_>]) -> Vec<Claim> {
    let (ids, workload) = match prototype.mechanism {
        PrototypeMechanism::Proxy => (["17a", "17b", "17c"], "rice, by real traffic"),
        PrototypeMechanism::Handoff => (["17d", "17e", "17f"], "rice, by handoff"),
    };
    let by_handoff = prototype.mechanism == PrototypeMechanism::Handoff;
    let measured = |value: Option<f64>| {
        let one = |value| Measured {
            workload: workload.to_owned(),
            seed: prototype.seed,
            condition: String::new(),
            value,
        };
        value.filter(|value| value.is_finite()).map(one).into_iter().collect()
    };
    let six = ratios(pairs, MOST);
    let findings = [
        MeasuredClaim {
            id: ids[0],
            place: PaperReference::Figure(FIGURE),
            statement: if by_handoff {
                "LARD/R exceeds WRR by a factor of 2.5 on six back-ends, through handoff"
            } else {
                "LARD/R exceeds WRR by a factor of 2.5 on six back-ends of the prototype"
            },
            paper: Some(2.5),
            paper_text: "2.5 times",
            unit: "×",
            // As "3.9 times" of the simulations (7a): near the paper's figure.
            rule: Rule::Within(NEAR),
            measured: measured(six.map(|(live, _)| live)),
            explanation: EXPLAIN_RATIO.to_owned(),
        },
        MeasuredClaim {
            id: ids[1],
            place: PaperReference::Figure(FIGURE),
            statement: if by_handoff {
                "through handoff, too, the simulator is confirmed: LARD/R over WRR (six, measured against simulated)"
            } else {
                "the prototype confirms the simulator: LARD/R over WRR (six back-ends, measured against simulated)"
            },
            paper: Some(1.0),
            paper_text: "confirms",
            unit: "×",
            // What "confirms the predictions" is near them, in either direction.
            rule: Rule::Within(NEAR),
            measured: measured(six.map(|(live, simulated)| live / simulated)),
            explanation: EXPLAIN_SIMULATOR.to_owned(),
        },
        MeasuredClaim {
            id: ids[2],
            place: PaperReference::Figure(FIGURE),
            statement: "and each throughput (measured against simulated, the point that departs most)",
            paper: Some(1.0),
            paper_text: "confirms",
            unit: "×",
            // As the one before, for each point of the drawing.
            rule: Rule::Within(NEAR),
            measured: measured(farthest(1.0, pairs.iter().map(agreement).collect())),
            explanation: EXPLAIN_SIMULATOR.to_owned(),
        },
    ];
    let busy = find(pairs, LARD_R, MOST).filter(|_| by_handoff).and_then(|pair| pair.live.front_end_busy);
    let front_end = front_end_claims::of(measured, busy);
    findings.into_iter().chain(front_end).filter_map(MeasuredClaim::claim).collect()
}

fn section(prototype: &Prototype, pairs: &[Pair<'_>]) -> Section {
    let mut plot = Plot::new("Real traffic, and the same simulated", "back-ends", "requests/s");
    for policy in [LARD_R, WRR] {
        let of = |pick: fn(&Pair<'_>) -> f64| {
            let points = pairs.iter().filter(|p| p.live.run.policy == policy);
            points.map(|p| (p.live.run.backends as f64, pick(p))).collect::<Vec<_>>()
        };
        let series = |what: &str, variant, points| {
            let look = strategy_look(policy).variant(variant);
            Series::new(format!("{policy}, {what}"), SeriesStyle::Line, points).with_look(look)
        };
        plot = plot.with(series("measured", 0, of(|p| p.live.run.throughput_rps))).with(series(
            "simulated",
            1,
            of(|p| p.simulated.throughput_rps),
        ));
    }
    let most = ratios(pairs, MOST).map_or_else(String::new, |(live, simulated)| {
        format!(" On six back-ends {LARD_R} served {live:.2} times as many requests/s as {WRR}; the simulator says {simulated:.2}, the paper's prototype had 2.5.")
    });
    let front_end = find(pairs, LARD_R, MOST).and_then(|pair| pair.live.front_end_busy);
    let front_end = front_end.map_or_else(String::new, |busy| {
        format!(
            " With {LARD_R} on six back-ends the front-end's CPU was in use for {:.0} % of the time, the paper's for 60 %.",
            100.0 * busy
        )
    });
    let (title, mechanism) = match prototype.mechanism {
        PrototypeMechanism::Proxy => (
            "Figure 17: real traffic",
            "Here clients, front-end and back-ends share one machine, and the front-end passes requests on as a proxy",
        ),
        PrototypeMechanism::Handoff => (
            "Figure 17: real traffic through handoff",
            "Here clients, front-end and back-ends are nodes of their own, but on one machine (network namespaces), and \
             the front-end hands every connection off; every request has a connection to itself, as the paper's of \
             HTTP/1.0 had",
        ),
    };
    Section::new(title)
        .paragraph(format!(
            "The paper measured its prototype on six 300 MHz machines with connection handoff and Apache. {mechanism}: {}. \
             The simulator ran the same first requests of the same workload with the same caches, disks, CPUs and number of \
             requests under way, and counted none of those that the measurement left out as warm-up.{most}{front_end}",
            prototype.setting
        ))
        .plot(plot)
        .table(table(pairs))
}

fn table(pairs: &[Pair<'_>]) -> Table {
    let right = |t: &'static str| (t, Align::Right);
    let mut table = Table::new([
        ("Policy", Align::Left),
        right("Back-ends"),
        right("Measured, req/s"),
        right("Simulated, req/s"),
        right("Difference"),
        right("Miss ratio, measured"),
        right("simulated"),
        right("Mean delay, measured"),
        right("simulated"),
        right("Disks busy"),
        right("This machine busy"),
        right("Front-end's CPU"),
    ]);
    for pair in pairs {
        let (live, simulated) = (&pair.live.run, &pair.simulated);
        let percent =
            |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |s| format!("{:.1} %", 100.0 * s));
        let delay = |run: &Run| {
            run.response_time_s.map_or_else(|| "-".to_owned(), |s| format!("{:.0} ms", 1e3 * s.mean))
        };
        table.row([
            live.policy.clone(),
            live.backends.to_string(),
            format!("{:.0}", live.throughput_rps),
            format!("{:.0}", simulated.throughput_rps),
            format!("{:+.1} %", 100.0 * (agreement(pair) - 1.0)),
            percent(live.miss_ratio),
            percent(simulated.miss_ratio),
            delay(live),
            delay(simulated),
            percent(live.utilization.disk),
            percent(pair.live.machine_busy),
            percent(pair.live.front_end_busy),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_report::Verdict;

    /// Points that are what the simulator itself says, times `factor` for LARD/R.
    fn prototype(factor: f64) -> Prototype {
        let workload = [
            ("targets", "500"),
            ("total_mib", "4"),
            ("requests", "20000"),
            ("cover97_mib", "0"),
            ("cover98_mib", "0"),
            ("cover99_mib", "0"),
        ];
        let mut prototype = Prototype {
            mechanism: PrototypeMechanism::Proxy,
            setting: "a test".to_owned(),
            workload: workload.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            seed: 1,
            cache_bytes: 200 << 10,
            speed: 2.0,
            points: Vec::new(),
        };
        for policy in [WRR, LARD_R] {
            let run = Run { policy: policy.to_owned(), backends: 6, requests: 4000, ..template(&prototype) };
            let mut point =
                PrototypePoint { run, warmup_requests: 1000, machine_busy: None, front_end_busy: None };
            let simulated = simulate(&prototype, &point, &()).unwrap();
            let factor = if policy == LARD_R { factor } else { 1.0 };
            point.run.throughput_rps = factor * simulated.throughput_rps;
            prototype.points.push(point);
        }
        prototype
    }

    fn template(prototype: &Prototype) -> Run {
        let overrides: Vec<_> = prototype.workload.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let workload = Workload::synthesize_first("rice", &overrides, 1, Some(10)).unwrap();
        let scenario = Scenario::lard(Strategy::find("wrr").unwrap(), 1, 1);
        run_all(&[scenario], &workload, &(), |_| None).unwrap().remove(0)
    }

    #[test]
    fn agreement_with_the_simulator_holds_and_half_of_it_fails() {
        let outcome = judge(&prototype(1.0), &()).unwrap();
        let verdict = |outcome: &PrototypeFindings, id: &str| {
            outcome.claims.iter().find(|claim| claim.id == id).map(|claim| claim.verdict)
        };
        assert_eq!(outcome.claims.len(), 3);
        assert_eq!(verdict(&outcome, "17b"), Some(Verdict::Holds));
        assert_eq!(verdict(&outcome, "17c"), Some(Verdict::Holds));
        assert_eq!(outcome.runs.len(), 4);
        let outcome = judge(&prototype(0.5), &()).unwrap();
        assert_eq!(verdict(&outcome, "17b"), Some(Verdict::Fails));
        assert_eq!(verdict(&outcome, "17c"), Some(Verdict::Fails));
        assert!((outcome.claims[2].measured[0].value - 0.5).abs() < 1e-9);
        let explained =
            outcome.claims.iter().all(|c| c.verdict == Verdict::Holds || !c.explanation.is_empty());
        assert!(explained);
    }

    #[test]
    fn handoff_has_claims_of_its_own() {
        let both = [PrototypeMechanism::Proxy, PrototypeMechanism::Handoff];
        let ids = both.map(|mechanism| {
            let outcome = judge(&Prototype { mechanism, ..prototype(1.0) }, &()).unwrap();
            outcome.claims.into_iter().map(|claim| claim.id).collect::<Vec<_>>().join(" ")
        });
        assert_eq!(ids, ["17a 17b 17c", "17d 17e 17f"]);
    }

    #[test]
    fn without_points_nothing_is_claimed() {
        let empty = Prototype { points: Vec::new(), ..prototype(1.0) };
        assert!(judge(&empty, &()).unwrap().claims.is_empty());
    }
}
