//! The decision log (every input of a live core with the resulting decision), its replay, and policies that
//! run beside the live one.
//!
//! A [`Recorder`] encodes inputs under the lock that guards the core; a [`LogWriter`] writes its chunks to
//! bounded files; a [`LogReader`] reads them back; [`replay`] proves that a fresh policy decides the same,
//! and [`compare`] scores other policies on the same requests. A [`Counterfactual`] does that while the
//! system runs.

mod bytes;
mod cache_model;
mod code;
mod compare;
mod counterfactual;
mod decoder;
mod event;
mod files;
mod frame;
#[doc(hidden)]
pub mod fuzz;
mod header_code;
mod log_config;
mod log_witness;
mod proof;
mod reader;
mod recorder;
mod replay;
mod replayed_change;
mod replayed_run;
mod request_code;
mod score;
mod shadow;
mod sniffed_code;
mod writer;

pub use cache_model::CacheModel;
pub use compare::{CompareOptions, Comparison, Other, compare};
pub use counterfactual::Counterfactual;
pub use event::{BackendEntry, Event, HeaderError, RunHeader, What};
pub use frame::Position;
pub use log_config::{LogConfig, LogRetention};
pub use log_witness::LogWitness;
pub use proof::{Difference, ListedDecision, Proof, RunProof};
pub use reader::{LogItem, LogReadError, LogReader, Missing};
pub use recorder::Recorder;
pub use replay::{ReplayError, replay};
pub use score::{Score, Scorer};
pub use shadow::{Shadow, ShadowScore};
pub use writer::LogWriter;
