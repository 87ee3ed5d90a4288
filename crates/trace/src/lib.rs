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
pub use options::{Include, ReadOptions, TraceInput};
pub use reader::TraceReader;
pub use record::{Record, RecordKind};
pub use stats::{Coverage, TraceStats};
pub use stats_parts::{ArrivalBins, SizeBin, ZipfFit};
pub use tally::{ReadReport, RejectedLine};
pub use targets::TargetTable;
pub use trace::{Trace, TraceIter, load};
pub use write::{convert, format_of_output, write_requests};
