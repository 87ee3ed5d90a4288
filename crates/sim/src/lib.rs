//! Trace-driven simulation of a cluster under a policy.
//!
//! One loop ([`run`]) drives a front-end with the policy that would also balance live traffic; a [`Model`] says how
//! back-ends serve. Pure and single-threaded: no clock, no I/O, no unseeded randomness, so equal seeds give equal
//! bytes, and a caller may run many simulations side by side.

mod arrivals;
mod config;
mod engine;
mod event_queue;
mod jobs;
mod measure;
mod model;
mod model_spec;
pub mod models;
mod outcome;
mod series;
mod tally;
mod workload;

pub use config::{CacheConfig, Config, Decided, Fault, FaultAction, Observer, RunError};
pub use engine::{run, run_recording};
pub use event_queue::EventQueue;
pub use measure::{Distribution, LoadMeters, LoadSeries};
pub use model::{Context, JobId, Model, ModelEvent, Usage};
pub use model_spec::{ModelSpec, RunResult, Simulation, SourceError};
pub use outcome::{BackendOutcome, Outcome};
pub use series::{Recording, SeriesPoint, SizeClasses};
pub use workload::{Arrivals, SimRequest, Targets, with_dynamic};
