//! What a process tells of itself: lines of the access log and who writes them, metrics, and the replies and the guard of an
//! admin API.

pub mod access_log;
pub mod clock;
pub mod counters;
pub mod exposition;
#[doc(hidden)]
pub mod fuzz;
pub mod guard;
pub mod line;
pub mod metrics_format;
pub mod process;
mod reason;
pub mod reply;
pub mod serving;

pub use reason::Reason;
