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
mod stats;
mod stats_parts;
pub mod synth;
mod tally;
mod targets;
mod time;
mod trace;
mod url;
mod write;

pub use check::WorldCupCheck;
pub use error::TraceError;
pub use format::Format;
pub use options::{Include, Input, ReadOptions};
pub use reader::Reader;
pub use record::{Kind, Record};
pub use stats::{Coverage, TraceStats};
pub use stats_parts::{Arrivals, SizeBin, ZipfFit};
pub use tally::{LoadReport, Rejection};
pub use targets::TargetTable;
pub use trace::{Trace, TraceIter, load};
pub use write::{convert, format_of_output, write_requests};
