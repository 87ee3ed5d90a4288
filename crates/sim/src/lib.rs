//! Trace-driven simulation of a cluster under a policy.
//!
//! One loop ([`run`]) drives the same core and policies that balance live traffic; a [`Model`] simulates the
//! back-ends. Pure and single-threaded: no clock, no I/O, no unseeded randomness. So equal seeds give equal
//! bytes, and a caller may run many simulations side by side.

mod arrivals;
mod config;
mod engine;
mod event_queue;
pub mod hardware;
mod jobs;
mod measure;
mod model;
mod model_spec;
pub mod models;
mod outcome;
mod series;
mod tally;
mod workload;

pub use config::{CacheConfig, DecisionMade, Fault, FaultAction, RunConfig, RunError, RunObserver};
pub use engine::{run, run_recording};
pub use event_queue::EventQueue;
pub use measure::{Distribution, LoadMeters, LoadOverTime};
pub use model::{JobId, Model, ModelContext, ModelEvent, Usage};
pub use model_spec::{ModelSpec, RunResult, Simulation, SourceError};
pub use outcome::{BackendOutcome, RunOutcome};
pub use series::{Recording, SeriesPoint, SizeClasses};
pub use workload::{Arrivals, DynamicDraw, SimRequest, Targets};
