//! Trace-driven simulation of a cluster under a policy.
//!
//! One loop ([`run`]) drives the same core and policies that balance live traffic; a [`Model`] simulates the
//! back-ends. Pure and single-threaded: no clock, no I/O, no unseeded randomness. So equal seeds give equal
//! bytes, and a caller may run many simulations side by side.

mod arrivals;
mod config;
mod engine;
mod event_queue;
mod front_ends;
pub mod hardware;
mod hot_spot;
mod jobs;
mod load_information;
mod measure;
mod model;
mod model_spec;
pub mod models;
mod outcome;
mod partitions;
mod series;
mod shared_policy;
mod tally;
mod workload;

pub use config::{CacheConfig, DecisionMade, Fault, FaultAction, RunConfig, RunError, RunObserver};
pub use engine::{run, run_recording};
pub use event_queue::EventQueue;
pub use hot_spot::HotSpot;
pub use load_information::{
    BroadcastParams, CentralParams, Dealing, FrontEndsSetup, LOAD_INFORMATION, LoadInformation,
    LoadInformationSpec, PollParams,
};
pub use measure::{Distribution, LoadMeters, LoadOverTime};
pub use model::{JobId, Model, ModelContext, ModelEvent, Usage};
pub use model_spec::{ModelSpec, RunResult, Simulation, SourceError};
pub use outcome::{BackendOutcome, ConnectionOutcome, LoadMessages, RunOutcome};
pub use partitions::{PartitionError, PartitionPlan, Partitions};
pub use plimsoll_synth::{AnswerKind, TimeDistribution, TimeShape};
pub use series::{Recording, SeriesPoint, SizeClasses};
pub use shared_policy::SharedPolicy;
pub use workload::{Arrivals, DynamicDraw, ServiceDraw, SimRequest, Targets};
