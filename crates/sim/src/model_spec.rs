//! Registry entries of models, and how a registered model is run.

use std::fmt;

use plimsoll_policy::Core;
use plimsoll_policy::params::{ParamSet, ParamSpec};

use crate::config::{CacheConfig, RunConfig, RunError, RunObserver};
use crate::engine::{run_recording, run_with};
use crate::front_ends::Several;
use crate::load_information::FrontEndsSetup;
use crate::model::Model;
use crate::outcome::RunOutcome;
use crate::series::Recording;
use crate::workload::SimRequest;

/// Why a source of requests failed.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// The end of a run on a registered model.
pub type RunResult = Result<RunOutcome, RunError<SourceError>>;

/// A run with everything but the model.
pub struct Simulation<'a> {
    /// Its configuration.
    pub config: &'a RunConfig<'a>,
    /// What to record.
    pub recording: Recording,
    /// The policy and its cluster; of several front-ends the first one's.
    pub core: Core,
    /// Several front-ends, one that does not know all loads at once, or partitions; with the other cores. A load index manager
    /// has one core for each partition, whatever the number of front-ends.
    pub front_ends: Option<(FrontEndsSetup, Vec<Core>)>,
    /// The memory cache of each back-end, for models that have one.
    pub cache: CacheConfig,
    /// The requests.
    pub source: &'a mut dyn Iterator<Item = Result<SimRequest, SourceError>>,
    /// The observer.
    pub observer: &'a mut dyn RunObserver,
}

impl Simulation<'_> {
    /// The number of back-ends.
    #[must_use]
    pub fn backends(&self) -> usize {
        self.core.view().len()
    }

    /// Runs on back-ends that behave like `model`. Each model gets its own compiled loop.
    ///
    /// # Errors
    /// Those of [`run_recording`].
    pub fn run(self, model: impl Model) -> RunResult {
        let Some((setup, others)) = self.front_ends else {
            return run_recording(self.config, self.recording, self.core, model, self.source, self.observer);
        };
        let mut cores = vec![self.core];
        cores.extend(others);
        let several =
            Several::new(cores, setup, &self.config.arrivals, self.config.targets, self.config.seed);
        run_with(self.config, self.recording, several, model, self.source, self.observer)
    }
}

/// One model as registered.
pub struct ModelSpec {
    /// Name, also the prefix of its parameters.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether its back-ends have a memory cache.
    pub has_cache: bool,
    /// Whether its back-ends spend CPU time on inquiries and announcements.
    pub spends_on_messages: bool,
    /// Declared parameters.
    pub params: &'static [ParamSpec],
    /// Makes back-ends with these parameters and runs on them.
    pub run: fn(&ParamSet, Simulation<'_>) -> RunResult,
}

impl fmt::Debug for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSpec").field("name", &self.name).finish_non_exhaustive()
    }
}
