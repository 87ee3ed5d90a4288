//! What a user asks to be simulated: traces, policies, numbers of back-ends and everything else that
//! determines the results.
//!
//! Command line, scenario file and other programs fill the same [`ScenarioSpec`]; [`ScenarioSpec::scenarios`] makes the
//! runs of it.

mod choice;
mod forms;
#[cfg(test)]
mod tests;
pub mod values;

use std::path::PathBuf;

use plimsoll_cache::CacheSpec;
use plimsoll_policy::Nanos;
use plimsoll_policy::params::{GivenValue, nearest};
use plimsoll_sim::hardware::{HardwareSpec, NVME};
use plimsoll_sim::models::lard;
use plimsoll_sim::{Arrivals, Dealing, Fault, HotSpot, LOAD_INFORMATION, PartitionPlan, TimeDistribution};
use plimsoll_trace::{FieldMap, Format, Include, ReadOptions};
use serde::{Deserialize, Serialize};

pub use choice::{LoadInformationChoice, ModelChoice, StrategyChoice};
use values::CacheSize;

use crate::scenario::{Admission, Scenario, ScenarioError, Strategy, Tables, check};
use crate::settings::{ParamOwner, settings_of};

/// A set of runs on one workload: every policy on every number of back-ends.
///
/// In a file the keys are the long options of `plimsoll simulate`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScenarioSpec {
    /// Traces, read as one: files, `-` for standard input, or one `synth:NAME,key=value…`.
    #[serde(deserialize_with = "forms::texts")]
    pub traces: Vec<String>,
    /// Policies to compare.
    #[serde(deserialize_with = "forms::strategies")]
    pub policy: Vec<StrategyChoice>,
    /// Numbers of back-ends to try.
    #[serde(deserialize_with = "forms::backends")]
    pub backends: Vec<usize>,
    /// Back-end model.
    pub model: ModelChoice,
    /// Hardware of the back-ends: costs of the model, over which all other settings win.
    #[serde(with = "forms::hardware")]
    pub hardware: &'static HardwareSpec,
    /// Memory cache of each back-end.
    #[serde(with = "forms::cache_size")]
    pub cache: CacheSize,
    /// Replacement policy of the caches.
    #[serde(with = "forms::cache")]
    pub cache_policy: &'static CacheSpec,
    /// Files above this size in bytes are never cached.
    #[serde(with = "forms::optional_size")]
    pub cache_object_limit: Option<u64>,
    /// Parameters `policy.key` or `model.key`, or just `key`, which goes to every policy or model that has
    /// it; a later one wins. Parameters given with a policy or model itself win over all of these.
    #[serde(with = "forms::settings")]
    pub set: Vec<(String, GivenValue)>,
    /// How requests arrive.
    #[serde(with = "forms::arrivals")]
    pub arrivals: Arrivals,
    /// Draws service times of this distribution in place of the trace's.
    #[serde(with = "forms::optional_service")]
    pub service: Option<TimeDistribution>,
    /// Number of front-ends.
    #[serde(with = "forms::front_ends")]
    pub front_ends: u16,
    /// How requests are dealt to them.
    #[serde(with = "forms::dealing")]
    pub dealing: Dealing,
    /// Whether front-ends share what a policy remembers of targets.
    #[serde(with = "forms::tables")]
    pub tables: Tables,
    /// Where front-ends' loads come from: each kind is a run of its own.
    #[serde(deserialize_with = "forms::load_information")]
    pub load_information: Vec<LoadInformationChoice>,
    /// Partitions of the targets, and the back-ends that host them.
    #[serde(with = "forms::partitions")]
    pub partitions: PartitionPlan,
    /// Time from the back-end on which a front-end runs to another one.
    #[serde(with = "forms::time")]
    pub hop: Nanos,
    /// How often front-ends exchange what they have seen.
    #[serde(with = "forms::time")]
    pub exchange_interval: Nanos,
    /// Spans in which one target gets a share of all requests.
    #[serde(deserialize_with = "forms::hot_spots", serialize_with = "forms::show_hot_spots")]
    pub hot_spot: Vec<HotSpot>,
    /// Speed-up of the trace, if requests arrive at its times.
    #[serde(with = "forms::optional_positive")]
    pub speed: Option<f64>,
    /// Admission limit.
    #[serde(with = "forms::admission")]
    pub admission: Admission,
    /// Requests answered before the measurement starts.
    #[serde(with = "forms::count")]
    pub warmup: u64,
    /// Faults of back-ends.
    #[serde(deserialize_with = "forms::faults", serialize_with = "forms::show_faults")]
    pub fault: Vec<Fault>,
    /// Share of the requests to make dynamic, except those for 100 KB or more.
    #[serde(with = "forms::share")]
    pub dynamic_share: f64,
    /// Seed of every random choice.
    #[serde(with = "forms::count")]
    pub seed: u64,
    /// Format of the traces; recognised from their content unless given.
    #[serde(with = "forms::optional_format")]
    pub format: Option<Format>,
    /// Which named fields of a log say what.
    #[serde(with = "forms::optional_fields")]
    pub fields: Option<FieldMap>,
    /// The largest share of unusable lines that is no error.
    #[serde(with = "forms::share")]
    pub max_bad_ratio: f64,
    /// A class file, which says what classes requests have and what these cost.
    pub classes: Option<PathBuf>,
    /// Count every request, not only GET and HEAD answered with 200, 206 or 304.
    pub include_all: bool,
    /// Leave the query string out of the target.
    pub strip_query: bool,
    /// Use only this many requests, from the first.
    #[serde(with = "forms::optional_count")]
    pub limit: Option<u64>,
}

impl Default for ScenarioSpec {
    /// WRR, LARD and LARD/R on eight back-ends of today with the LARD study's caches, without a trace.
    fn default() -> Self {
        let named = ["wrr", "lard", "lard_r"].into_iter().filter_map(|name| Strategy::find(name).ok());
        Self {
            traces: Vec::new(),
            policy: named.map(StrategyChoice::new).collect(),
            backends: vec![8],
            model: ModelChoice::new(&lard::SPEC),
            hardware: &NVME,
            cache: CacheSize::Bytes(32 << 20),
            cache_policy: &plimsoll_cache::caches::gds::SPEC,
            cache_object_limit: None,
            set: Vec::new(),
            arrivals: Arrivals::Closed,
            service: None,
            front_ends: 1,
            dealing: Dealing::ByClient,
            tables: Tables::Separate,
            load_information: vec![LoadInformationChoice::new(LOAD_INFORMATION[0])],
            partitions: PartitionPlan::Whole,
            hop: Nanos::ZERO,
            exchange_interval: Nanos::ZERO,
            hot_spot: Vec::new(),
            speed: None,
            admission: Admission::Lard,
            warmup: 0,
            fault: Vec::new(),
            dynamic_share: 0.0,
            seed: 1,
            format: None,
            fields: None,
            max_bad_ratio: 0.05,
            classes: None,
            include_all: false,
            strip_query: false,
            limit: None,
        }
    }
}

impl ScenarioSpec {
    /// The options for reading the traces.
    #[must_use]
    pub fn read_options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            fields: self.fields.clone(),
            seed: self.seed,
            max_bad_ratio: self.max_bad_ratio,
            include: if self.include_all { Include::All } else { Include::Counted },
            limit: self.limit,
            strip_query: self.strip_query,
            ..ReadOptions::default()
        }
    }

    /// Every policy on every number of back-ends; within each number, policies in the order given; duplicates
    /// are run once. `working_set_bytes` is the total size of all targets, which a cache size may refer to; 0
    /// suffices to check whether the runs are possible.
    ///
    /// # Errors
    /// The first thing that is wrong: parameters that are unknown, out of range or inconsistent, numbers of
    /// back-ends, or faults of back-ends that do not exist.
    pub fn scenarios(&self, working_set_bytes: u64) -> Result<Vec<Scenario>, ScenarioError> {
        let arrivals = match (self.arrivals, self.speed) {
            (Arrivals::Trace { .. }, Some(speed)) => Arrivals::Trace { speed },
            (arrivals, None) => arrivals,
            (_, Some(_)) => return Err(ScenarioError::Speed),
        };
        let mut faults = self.fault.clone();
        faults.sort_by_key(|f| f.at);
        let policies = self.policies()?;
        self.check_settings(&policies)?;
        let mut counts: Vec<usize> = Vec::new();
        for &backends in &self.backends {
            if !counts.contains(&backends) {
                counts.push(backends);
            }
        }
        let mut out = Vec::new();
        for backends in counts {
            for (choice, loads) in pairs(&policies, &self.load_information) {
                let mut scenario = Scenario {
                    model: self.model.spec,
                    hardware: self.hardware,
                    arrivals,
                    admission: self.admission,
                    cache: self.cache_policy,
                    cache_bytes: self.cache.bytes(working_set_bytes),
                    cache_object_limit_bytes: self.cache_object_limit,
                    dynamic_share: self.dynamic_share,
                    service: self.service,
                    front_ends: self.front_ends,
                    dealing: self.dealing,
                    tables: self.tables,
                    partitions: self.partitions.clone(),
                    hop: self.hop,
                    exchange_interval: self.exchange_interval,
                    hot_spots: self.hot_spot.clone(),
                    faults: faults.clone(),
                    warmup: self.warmup,
                    ..Scenario::lard(choice.strategy, backends, self.seed)
                };
                let own = choice.params.given().map(|(key, value)| (key, value.into()));
                let hardware =
                    scenario.hardware_of(choice.strategy.policy.name, choice.strategy.policy.params);
                scenario
                    .set_policy(hardware.chain(settings_of(&self.set, &policy_owner(choice))).chain(own))?;
                let own = self.model.params.given().map(|(key, value)| (key, value.into()));
                let model = scenario.effective_model();
                let hardware = scenario.hardware_of(model.name, model.params);
                let owner = self.model_owner(choice);
                scenario.set_model(hardware.chain(settings_of(&self.set, &owner)).chain(own))?;
                let own = loads.params.given().map(|(key, value)| (key, value.into()));
                scenario.set_load_information(
                    loads.spec,
                    settings_of(&self.set, &load_owner(loads)).chain(own),
                )?;
                out.push(scenario);
            }
        }
        check(&out)?;
        Ok(out)
    }

    /// The policies, each once.
    fn policies(&self) -> Result<Vec<&StrategyChoice>, ScenarioError> {
        let mut out: Vec<&StrategyChoice> = Vec::new();
        for choice in &self.policy {
            match out.iter().find(|other| other.strategy.name == choice.strategy.name) {
                None => out.push(choice),
                Some(other) if *other == choice => {}
                Some(_) => {
                    return Err(ScenarioError::Setting(format!(
                        "`{}` is there twice with different parameters, which results could not tell apart; make \
                         two runs of it",
                        choice.strategy.name
                    )));
                }
            }
        }
        Ok(out)
    }

    fn model_owner(&self, choice: &StrategyChoice) -> ParamOwner {
        let effective = choice.strategy.model_on(self.model.spec);
        ParamOwner { names: vec![effective.name, self.model.spec.name], specs: effective.params }
    }

    /// Refuses settings that no policy or model of these runs has, so that typing errors are not ignored.
    fn check_settings(&self, policies: &[&StrategyChoice]) -> Result<(), ScenarioError> {
        let owners = policies.iter().flat_map(|choice| [policy_owner(choice), self.model_owner(choice)]);
        let owners: Vec<ParamOwner> = owners.chain(self.load_information.iter().map(load_owner)).collect();
        let untaken = self.set.iter().find(|(key, _)| owners.iter().all(|owner| owner.takes(key).is_none()));
        let Some((key, _)) = untaken else { return Ok(()) };
        let known: Vec<String> = owners.iter().flat_map(ParamOwner::keys).collect();
        let hint = nearest(key, known.iter().map(String::as_str)).map_or_else(
            || "see `plimsoll policies` and `plimsoll models` for what can be set".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        Err(ScenarioError::Setting(format!(
            "no policy, model or load information of this run takes `{key}`; {hint}"
        )))
    }
}

fn load_owner(choice: &LoadInformationChoice) -> ParamOwner {
    ParamOwner { names: vec![choice.spec.name], specs: choice.spec.params }
}

/// Every policy with every kind of load information.
fn pairs<'a>(
    policies: &'a [&'a StrategyChoice],
    loads: &'a [LoadInformationChoice],
) -> impl Iterator<Item = (&'a StrategyChoice, &'a LoadInformationChoice)> {
    policies.iter().flat_map(move |&policy| loads.iter().map(move |loads| (policy, loads)))
}

fn policy_owner(choice: &StrategyChoice) -> ParamOwner {
    let spec = choice.strategy.policy;
    let names = std::iter::once(spec.name).chain(spec.aliases.iter().copied()).collect();
    ParamOwner { names, specs: spec.params }
}
