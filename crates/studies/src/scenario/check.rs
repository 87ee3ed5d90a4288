//! What cannot be run, found before a long trace is read.

use plimsoll_sim::models::{apache, fifo, lard};
use plimsoll_sim::{Arrivals, Fault, FaultAction, LoadInformation};

use super::error::{MOST_CORES, ScenarioError};
use super::tables::has_table;
use super::{Scenario, Tables};

/// The most front-ends: each has a policy object and a view of its own.
const MOST_FRONT_ENDS: u16 = 1024;

/// Refuses scenarios that cannot be run, before a long trace is read: wrong numbers of back-ends, faults of
/// back-ends that do not exist, settings that have no effect on the others.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(scenarios: &[Scenario]) -> Result<(), ScenarioError> {
    scenarios.iter().try_for_each(check_one)
}

pub(crate) fn check_one(s: &Scenario) -> Result<(), ScenarioError> {
    check_backends(s)?;
    if !(0.0..=1.0).contains(&s.dynamic_share) {
        return Err(ScenarioError::DynamicShare(s.dynamic_share));
    }
    let slows = |fault: &Fault| matches!(fault.action, FaultAction::Speed(_));
    if s.faults.iter().any(slows)
        && ![fifo::SPEC.name, apache::SPEC.name, lard::SPEC.name].contains(&s.model.name)
    {
        return Err(ScenarioError::NoSpeeds(s.model.name));
    }
    let remembers = |fault: &Fault| matches!(fault.action, FaultAction::MemoryBytes(_));
    if s.faults.iter().any(remembers) && s.model.name != lard::SPEC.name {
        return Err(ScenarioError::NoMemories(s.model.name));
    }
    check_front_ends(s)?;
    if s.model.name == apache::SPEC.name {
        check_connections(s)?;
    }
    if s.strategy.global_memory && s.effective_model().name != lard::GLOBAL_MEMORY_SPEC.name {
        return Err(ScenarioError::NoMemory(s.model.name));
    }
    Ok(())
}

fn check_backends(s: &Scenario) -> Result<(), ScenarioError> {
    if s.backends == 0 || s.backends >= usize::from(u16::MAX) {
        return Err(ScenarioError::Backends(s.backends));
    }
    match s.faults.iter().find(|f| f.backend.index() >= s.backends) {
        Some(fault) => Err(ScenarioError::Fault { backend: fault.backend.0, backends: s.backends }),
        None => Ok(()),
    }
}

/// Policies that choose by what is asked for.
const BY_REQUEST: &[&str] = &[
    "uri_hash",
    "bounded_load_hash",
    "maglev",
    "lb_gc",
    "lard",
    "lard_r",
    "lard_auto",
    "sita_e",
    "adaptload",
    "adaptload_queue",
];

/// What does not go together with a model in which a front-end chooses for connections.
fn check_connections(s: &Scenario) -> Result<(), ScenarioError> {
    let (model, policy) = (s.model.name, s.strategy.policy);
    let reads_requests = s.model_params.get::<u32>("front_end").is_some_and(|front_end| front_end > 0);
    if BY_REQUEST.contains(&policy.name) && !reads_requests {
        return Err(ScenarioError::UnknownAtSyn { model, policy: policy.name });
    }
    if s.arrivals == Arrivals::Closed {
        return Err(ScenarioError::OpenArrivals(model));
    }
    if s.front_ends_setup()?.is_some() {
        return Err(ScenarioError::OneFrontEnd(model));
    }
    Ok(())
}

fn check_front_ends(s: &Scenario) -> Result<(), ScenarioError> {
    if !(1..=MOST_FRONT_ENDS).contains(&s.front_ends) {
        return Err(ScenarioError::FrontEnds(s.front_ends));
    }
    let partitions = s.partitions.on(s.backends)?.count();
    if usize::from(s.front_ends) * partitions > MOST_CORES {
        return Err(ScenarioError::Cores { front_ends: s.front_ends, partitions });
    }
    if s.tables == Tables::Shared && !has_table(s.strategy.policy) {
        return Err(ScenarioError::NoTables { policy: s.strategy.name });
    }
    let loads = (s.load_information.build)(&s.load_params);
    let central = matches!(loads, LoadInformation::Central(_));
    if central && !s.hop.is_zero() {
        return Err(ScenarioError::HopToManager);
    }
    if !s.exchange_interval.is_zero() {
        if central {
            return Err(ScenarioError::ExchangeAlone("a load index manager chooses for all of them"));
        }
        if s.front_ends == 1 {
            return Err(ScenarioError::ExchangeAlone("there is one front-end"));
        }
    }
    let model = s.effective_model();
    if loads.costs_cpu() && !model.spends_on_messages {
        let load_information = s.load_information.name;
        return Err(ScenarioError::MessageCpu { load_information, model: model.name });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use plimsoll_policy::{BuildContext, Cluster, ClusterView, REGISTRY, Request, TargetId, Time};

    use super::*;

    #[test]
    fn policies_that_go_by_the_request_are_known() {
        let cluster = Cluster::new(7);
        let view: &ClusterView = &cluster;
        for spec in REGISTRY {
            let context = BuildContext { workload: Some([(1, 9), (9, 1)].into()), ..BuildContext::default() };
            let decisions = |of_number: fn(u64) -> u64| {
                let mut policy = spec.read(&Vec::new()).and_then(|set| spec.build(&context, &set)).unwrap();
                let asked =
                    |n| Request { size_bytes: Some(of_number(n)), ..Request::of(n, TargetId(of_number(n))) };
                (0..200).map(|n| policy.choose(&asked(n), view, Time::ZERO)).collect::<Vec<_>>()
            };
            let differs = decisions(|_| 1) != decisions(|n| n);
            assert!(!differs || BY_REQUEST.contains(&spec.name), "{} goes by the request", spec.name);
        }
        assert!(BY_REQUEST.iter().all(|name| REGISTRY.iter().any(|spec| spec.name == *name)));
    }
}
