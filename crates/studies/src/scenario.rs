//! A scenario, the definition of one run: policy, model, number of back-ends and everything else that
//! determines its result.

use plimsoll_cache::CacheSpec;
use plimsoll_policy::Nanos;
use plimsoll_policy::params::{GivenValue, ParamSet, ParamSpec, nearest};
use plimsoll_sim::hardware::{HardwareSpec, PAPER};
use plimsoll_sim::models::{MODELS, apache, lard};
use plimsoll_sim::{
    Arrivals, Dealing, Fault, FrontEndsSetup, HotSpot, LOAD_INFORMATION, LoadInformationSpec, ModelSpec,
    PartitionError, PartitionPlan, TimeDistribution,
};

mod check;
mod error;
mod tables;

pub use self::check::check;
pub(crate) use self::check::check_one;
pub use self::error::ScenarioError;
pub use self::tables::Tables;
pub use crate::strategy::{Strategy, strategy_names};

/// The model of this name.
///
/// # Errors
/// When there is none; the message names the nearest.
pub fn find_model(name: &str) -> Result<&'static ModelSpec, ScenarioError> {
    MODELS.iter().copied().find(|m| m.name == name).ok_or_else(|| {
        let known = MODELS.iter().map(|m| m.name);
        ScenarioError::UnknownModel { name: name.to_owned(), nearest: nearest(name, known) }
    })
}

/// Requests that the front-end lets in at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// LARD's S from the policy's `t_low` and `t_high` (25 and 65 where it has none).
    Lard,
    /// This many.
    Fixed(u64),
    /// No limit.
    Unlimited,
}

/// See the module's documentation.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Policy.
    pub strategy: Strategy,
    /// Parameters of the policy.
    pub policy_params: ParamSet,
    /// Back-end model.
    pub model: &'static ModelSpec,
    /// Parameters of the effective model, which differs for WRR/GMS.
    pub model_params: ParamSet,
    /// What the parameters' values come from where nothing else was given.
    pub hardware: &'static HardwareSpec,
    /// Number of back-ends, at least 1.
    pub backends: usize,
    /// Seed of every random choice.
    pub seed: u64,
    /// How requests arrive.
    pub arrivals: Arrivals,
    /// Admission limit.
    pub admission: Admission,
    /// Replacement policy of the back-ends' caches.
    pub cache: &'static CacheSpec,
    /// Memory cache of one back-end in bytes.
    pub cache_bytes: u64,
    /// Files above this size in bytes are never cached.
    pub cache_object_limit_bytes: Option<u64>,
    /// Share of the requests, 0 to 1, that are candidates for becoming dynamic; those below 100 KB do
    /// (`AdaptLoad`, section 7.1).
    pub dynamic_share: f64,
    /// Draws service times in place of the trace's; `None` leaves them as they are.
    pub service: Option<TimeDistribution>,
    /// Number of front-ends, at least 1.
    pub front_ends: u16,
    /// How requests are dealt to them.
    pub dealing: Dealing,
    /// Whether they share what a policy remembers of targets.
    pub tables: Tables,
    /// Where their loads come from.
    pub load_information: &'static LoadInformationSpec,
    /// Parameters of that.
    pub load_params: ParamSet,
    /// Partitions of the targets, and the back-ends that host them.
    pub partitions: PartitionPlan,
    /// Time from the back-end on which a front-end runs to another one; zero for front-ends on machines of their own, and with a load
    /// index manager.
    pub hop: Nanos,
    /// How often front-ends exchange what they have seen; zero for never.
    pub exchange_interval: Nanos,
    /// Spans in which one target gets a share of all requests.
    pub hot_spots: Vec<HotSpot>,
    /// Faults of back-ends.
    pub faults: Vec<Fault>,
    /// Requests answered before the measurement starts.
    pub warmup: u64,
    /// Whether the next one arrives only when these have ended ([`plimsoll_sim::RunConfig::settles`]).
    pub settles: bool,
}

impl Scenario {
    /// The LARD study's setting: saturated, hardware of 1998, 32 MiB of Greedy-Dual-Size cache.
    #[must_use]
    pub fn lard(strategy: Strategy, backends: usize, seed: u64) -> Self {
        Self {
            strategy,
            policy_params: ParamSet::defaults(strategy.policy.params),
            model: &lard::SPEC,
            model_params: ParamSet::defaults(strategy.model_on(&lard::SPEC).params),
            hardware: &PAPER,
            backends,
            seed,
            arrivals: Arrivals::Closed,
            admission: Admission::Lard,
            cache: &plimsoll_cache::caches::gds::SPEC,
            cache_bytes: 32 << 20,
            cache_object_limit_bytes: None,
            dynamic_share: 0.0,
            service: None,
            front_ends: 1,
            dealing: Dealing::ByClient,
            tables: Tables::Separate,
            load_information: LOAD_INFORMATION[0],
            load_params: ParamSet::defaults(&[]),
            partitions: PartitionPlan::Whole,
            hop: Nanos::ZERO,
            exchange_interval: Nanos::ZERO,
            hot_spots: Vec::new(),
            faults: Vec::new(),
            warmup: 0,
            settles: false,
        }
    }

    /// Whether there are several front-ends, or loads are not known at once and for nothing.
    pub(crate) fn has_load_information(&self) -> bool {
        self.front_ends > 1 || self.load_information.name != LOAD_INFORMATION[0].name
    }

    /// The front-ends of the run; `None` for one that knows all loads of back-ends that host all targets, and from which all of them
    /// are equally far. A policy that probes is answered by load information, too.
    pub(crate) fn front_ends_setup(&self) -> Result<Option<FrontEndsSetup>, PartitionError> {
        let probes = self.strategy.policy.capabilities.can_probe();
        let partitions = self.partitions.on(self.backends)?;
        let several = probes || self.has_load_information() || partitions.count() > 1 || !self.hop.is_zero();
        Ok(several.then(|| FrontEndsSetup {
            load_information: (self.load_information.build)(&self.load_params),
            count: self.front_ends,
            dealing: self.dealing,
            hop: self.hop,
            exchange_interval: self.exchange_interval,
            partitions,
        }))
    }

    /// Sets where loads come from, with these values of its parameters and defaults for the rest.
    ///
    /// # Errors
    /// When it does not take them.
    pub fn set_load_information<'k>(
        &mut self,
        spec: &'static LoadInformationSpec,
        given: impl IntoIterator<Item = (&'k str, GivenValue)>,
    ) -> Result<(), ScenarioError> {
        self.load_params = load_params(spec, given)?;
        self.load_information = spec;
        Ok(())
    }

    /// The admission limit in force. LARD's is one of front-ends that take connections over; one that passes packets on, as in the
    /// model `apache`, has none.
    pub(crate) fn effective_admission(&self) -> Admission {
        match self.admission {
            Admission::Lard if self.model.name == apache::SPEC.name => Admission::Unlimited,
            admission => admission,
        }
    }

    /// The effective model: `lard_gms` for WRR/GMS.
    pub(crate) fn effective_model(&self) -> &'static ModelSpec {
        self.strategy.model_on(self.model)
    }

    /// The hardware's values for these parameters of a model or policy.
    pub(crate) fn hardware_of(
        &self,
        owner: &'static str,
        params: &'static [ParamSpec],
    ) -> impl Iterator<Item = (&'static str, GivenValue)> + use<> {
        self.hardware.costs_of(owner, params).map(|cost| (cost.key, cost.value.into()))
    }

    /// Sets the policy's parameters to these values, and defaults for the rest.
    ///
    /// # Errors
    /// When it does not take them.
    pub fn set_policy<'k>(
        &mut self,
        given: impl IntoIterator<Item = (&'k str, GivenValue)>,
    ) -> Result<(), ScenarioError> {
        let policy = self.strategy.policy;
        self.policy_params = ParamSet::read(policy.params, given).map_err(|error| policy.failed(error))?;
        Ok(())
    }

    /// Sets the model's parameters to these values, and defaults for the rest.
    ///
    /// # Errors
    /// When it does not take them.
    pub fn set_model<'k>(
        &mut self,
        given: impl IntoIterator<Item = (&'k str, GivenValue)>,
    ) -> Result<(), ScenarioError> {
        self.model_params = model_params(self.effective_model(), given)?;
        Ok(())
    }
}

/// The parameters of a model with these values, and defaults for the rest.
pub(crate) fn model_params<'k>(
    spec: &'static ModelSpec,
    given: impl IntoIterator<Item = (&'k str, GivenValue)>,
) -> Result<ParamSet, ScenarioError> {
    ParamSet::read(spec.params, given).map_err(|error| ScenarioError::Model { model: spec.name, error })
}

/// The load information of this name.
///
/// # Errors
/// When there is none; the message names the nearest.
pub fn find_load_information(name: &str) -> Result<&'static LoadInformationSpec, ScenarioError> {
    LOAD_INFORMATION.iter().copied().find(|l| l.name == name).ok_or_else(|| {
        let known = LOAD_INFORMATION.iter().map(|l| l.name);
        ScenarioError::UnknownLoadInformation { name: name.to_owned(), nearest: nearest(name, known) }
    })
}

/// The parameters of load information with these values, and defaults for the rest.
pub(crate) fn load_params<'k>(
    spec: &'static LoadInformationSpec,
    given: impl IntoIterator<Item = (&'k str, GivenValue)>,
) -> Result<ParamSet, ScenarioError> {
    ParamSet::read(spec.params, given)
        .map_err(|error| ScenarioError::LoadInformation { name: spec.name, error })
}
