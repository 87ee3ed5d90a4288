//! Readers, writers, statistics and calibrated synthesis of request traces.

mod check;
pub mod coverage;
mod error;
mod format;
mod formats;
mod ingest;
mod names;
mod options;
mod reader;
mod record;
mod reorder;
mod source;
mod spool;
mod spread;
pub mod synth;
mod tally;
mod targets;
mod time;
mod trace;
mod url;

pub use check::WorldCupCheck;
pub use error::TraceError;
pub use format::Format;
pub use options::{Include, Input, ReadOptions};
pub use reader::Reader;
pub use record::{Kind, Record};
pub use tally::{LoadReport, Rejection};
pub use targets::TargetTable;
pub use trace::{Trace, TraceIter, load};
