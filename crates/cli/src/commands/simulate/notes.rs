//! What `simulate` says of a run's setting.

use plimsoll_policy::{Thresholds, Time};
use plimsoll_report::Run;
use plimsoll_report::format::duration;
use plimsoll_sim::hardware::has_hardware;
use plimsoll_sim::models::{adaptload, lard};
use plimsoll_sim::{Arrivals, Dealing, LOAD_INFORMATION};
use plimsoll_studies::Workload;
use plimsoll_studies::scenario::{Admission, Scenario};
use plimsoll_studies::spec::ScenarioSpec;

use crate::input;

/// How the trace was read, in sentences, and what its times are taken for where they decide when requests arrive.
pub(super) fn load_notes(workload: &Workload, arrivals: Arrivals) -> Vec<String> {
    let report = &workload.trace.report;
    let mut notes = input::notes(report);
    if matches!(arrivals, Arrivals::Trace { .. }) && report.format.is_some() {
        notes.push(format!("Times: {}.", report.stamp_assumption));
        if report.times_spread {
            notes
                .push("All are whole seconds; requests are spread within their second with the seed.".into());
        }
    }
    notes
}

/// The hardware that the back-ends have, and which of its costs were given otherwise.
pub(super) fn hardware_note(spec: &ScenarioSpec, runs: &[Run]) -> Option<String> {
    let model = spec.model.spec;
    if !has_hardware(model) {
        return None;
    }
    let is_cost = |name: &str| model.params.iter().any(|param| param.name == name);
    // The model of `wrr_gms` has another name and the same parameters.
    let is_model = |owner: &str| owner == model.name || runs.iter().any(|run| run.model == owner);
    let of_model = |key: &'_ str| match key.split_once('.') {
        Some((owner, name)) => (is_model(owner) && is_cost(name)).then(|| name.to_owned()),
        None => is_cost(key).then(|| key.to_owned()),
    };
    let mut others: Vec<String> = spec.set.iter().filter_map(|(key, _)| of_model(key)).collect();
    others.extend(spec.model.params.given().map(|(key, _)| key.to_owned()));
    others.sort_unstable();
    others.dedup();
    let mut except = match others.is_empty() {
        true => String::new(),
        false => format!("; other values were given for {}", others.join(", ")),
    };
    // Who gives the number of disks may mean drives, of which one is several disks with a share of its rate each.
    let own = spec.hardware.costs_of(model.name, model.params).find(|cost| cost.key == "disks");
    if let Some(own) = own.filter(|_| others.iter().any(|key| key == "disks")) {
        except += &format!(" (one drive of this hardware is {} disks)", own.value);
    }
    Some(format!("{}, {}{except}", spec.hardware.name, spec.hardware.summary))
}

/// Where all requests go to one of several front-ends, because the trace names no clients by which they could be dealt.
pub(super) fn dealing_warning(spec: &ScenarioSpec, workload: &Workload) -> Option<String> {
    let one = workload.trace.report.clients <= 1;
    (spec.front_ends > 1 && spec.dealing == Dealing::ByClient && one).then(|| {
        format!(
            "all requests go to one of the {} front-ends, because the trace names no more than one client; --dealing random deals \
             them out",
            spec.front_ends
        )
    })
}

/// Where a policy makes nothing of the load information chosen, or of what other front-ends have seen.
pub(super) fn load_use_warnings(spec: &ScenarioSpec) -> Vec<String> {
    let mut out = Vec::new();
    for strategy in spec.policy.iter().map(|choice| choice.strategy) {
        let (policy, usable) = (strategy.policy, strategy.policy.load_use.sources());
        let known: Vec<&str> =
            LOAD_INFORMATION.iter().map(|kind| kind.name).filter(|kind| usable.contains(kind)).collect();
        let others = spec.load_information.iter().map(|choice| choice.spec.name);
        for kind in others.filter(|kind| *kind != LOAD_INFORMATION[0].name && !usable.contains(kind)) {
            out.push(match known[..] {
                [] => format!("{} uses no loads: what load information `{kind}` tells makes no difference", policy.name),
                _ => format!(
                    "{} cannot use load information `{kind}`, with which back-ends report nothing; it can use {}",
                    policy.name,
                    known.join(", ")
                ),
            });
        }
        if !spec.exchange_interval.is_zero() && !policy.capabilities.can_share_state() {
            out.push(format!(
                "{} shares nothing that it has seen: --exchange-interval has no effect on it",
                policy.name
            ));
        }
    }
    out
}

/// Where a run ended before what was to happen in it.
pub(super) fn too_late_warnings(spec: &ScenarioSpec, runs: &[Run]) -> Vec<String> {
    let s = |at: Time| at.since(Time::ZERO).as_secs_f64();
    let faults = spec.fault.iter().map(|fault| ("fault", s(fault.at)));
    let spots = spec.hot_spot.iter().map(|spot| ("hot spot", s(spot.from)));
    let Some(last) = runs.iter().max_by(|a, b| a.ended_s.total_cmp(&b.ended_s)) else { return Vec::new() };
    let Some(first) = runs.iter().min_by(|a, b| a.ended_s.total_cmp(&b.ended_s)) else { return Vec::new() };
    let told = |(what, at_s): (&str, f64)| {
        let ended = match runs {
            [one] => format!("the run ended at {} of simulated time", duration(one.ended_s)),
            _ if last.ended_s < at_s => {
                format!("all runs ended at {} of simulated time at the latest", duration(last.ended_s))
            }
            _ => {
                format!("the run of {} ended at {} of simulated time", first.policy, duration(first.ended_s))
            }
        };
        format!("{ended}, before the {what} at {at_s} s, which did not happen there")
    };
    faults.chain(spots).filter(|&(_, at_s)| first.ended_s < at_s).map(told).collect()
}

/// Where service times are to be drawn for requests that take none.
pub(super) fn service_warning(spec: &ScenarioSpec, workload: &Workload) -> Option<String> {
    const OF_DYNAMIC: [&str; 3] = [lard::SPEC.name, lard::GLOBAL_MEMORY_SPEC.name, adaptload::SPEC.name];
    let model = spec.model.spec.name;
    let has_dynamic = spec.dynamic_share > 0.0 || workload.trace.fields().kind;
    if spec.service.is_none() || has_dynamic || !OF_DYNAMIC.contains(&model) {
        return None;
    }
    Some(format!(
        "--service changes nothing: on the model {model} only dynamic requests take a service time, and there are none; --dynamic-share makes \
         some, and on the models fifo and apache all requests take one"
    ))
}

/// Where so many requests are let in that every back-end can be above a policy's `t_high`: the policy then spreads targets as if it
/// knew nothing of them.
pub(super) fn threshold_warnings(scenarios: &[Scenario]) -> Vec<String> {
    let mut out = Vec::new();
    for scenario in scenarios {
        let (Admission::Fixed(limit), backends) = (scenario.admission, scenario.backends as u64) else {
            continue;
        };
        let thresholds = Thresholds::of(&scenario.policy_params);
        let has_thresholds = scenario.strategy.policy.params.iter().any(|param| param.name == "t_high");
        if !has_thresholds || backends < 2 || limit <= backends * u64::from(thresholds.t_high) {
            continue;
        }
        let fits = (limit + 1).saturating_sub(u64::from(thresholds.t_low)) / (backends - 1);
        let policy = scenario.strategy.name;
        out.push(format!(
            "{policy} on {backends} back-ends: an admission limit of {limit} lets every back-end be above t_high = {}, where {policy} gives up \
             locality; --set {policy}.t_high={fits} goes with it",
            thresholds.t_high
        ));
    }
    out
}
