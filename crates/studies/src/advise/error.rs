//! Why there is no advice.

use plimsoll_report::format::count;
use plimsoll_trace::TraceError;

use super::facts::LEAST_REQUESTS;
use super::question::{LEAST_RPS, MOST_RPS};
use crate::scenario::ScenarioError;

/// Why a log leads to no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    /// Too few requests.
    #[error(
        "{} requests are too few to tell policies apart: it takes {} at least, and better a day of the site's traffic",
        count(*.requests), count(LEAST_REQUESTS)
    )]
    TooShort {
        /// Those that count.
        requests: u64,
    },
    /// All documents are empty.
    #[error(
        "no request of the log says how many bytes were sent, so nobody knows what fits into memory; log the size ($body_bytes_sent in \
         nginx, %B in Apache). Of JSON lines and W3C logs, --fields size=FIELD names the field that has it, or gives all of them one size, e.g. \
         --fields size=20000"
    )]
    NoSizes,
    /// The log has no times, and nobody says what is to be carried.
    #[error(
        "the log gives no times from which a multiple of its peak would follow; give --target-load in requests per second"
    )]
    NoTimes,
    /// All requests have one time, and nobody says what is to be carried.
    #[error(
        "all times of the log are within one second, so that no rate can be told from them, and no multiple of it; give --target-load in requests per \
         second"
    )]
    OneTime,
    /// The log's own times are too far apart.
    #[error(
        "the first and the last request of the log are {} days apart, and more than 30 years cannot be simulated: one of the time stamps may be wrong, so \
         leave its line out",
        count((*.duration_s / 86_400.0) as u64)
    )]
    Span {
        /// How far apart, in seconds.
        duration_s: f64,
    },
    /// What is asked for is not what clusters carry, or would take longer than the simulator counts.
    #[error(
        "--target-load asks for {} requests/s at the peak; expected {LEAST_RPS} to {MOST_RPS} requests/s, and with the log's own times not so few that \
         it would last longer than 30 years",
        plimsoll_report::format::number(*.peak_rps)
    )]
    Load {
        /// What is asked for, in requests per second.
        peak_rps: f64,
    },
    /// A run failed.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The records cannot be read back.
    #[error(transparent)]
    Trace(#[from] TraceError),
}
