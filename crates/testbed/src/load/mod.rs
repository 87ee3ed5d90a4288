//! A bounded HTTP/1.1 load generator.
//!
//! Bounded in time, in number of requests and in requests under way, whatever the server does. Two kinds of
//! load:
//!
//! - [`closed_loop`]: each connection asks for the next target of one common sequence as soon as its last
//!   response is complete. The load follows the speed of the server.
//! - [`open_loop`]: requests are due at a fixed or a Poisson rate, whether or not earlier ones are answered. Delays count
//!   from the moment at which a request was *due*, so that a server that stalls is charged for every request that would
//!   have come meanwhile (no coordinated omission).
//!
//! ```no_run
//! use std::time::Duration;
//! use plimsoll_testbed::load::{OpenLoop, Req, open_loop};
//!
//! # async fn example() {
//! let target = "127.0.0.1:8080".parse().expect("an address");
//! let load = OpenLoop { rate_rps: 1000.0, seconds: 15.0, ..OpenLoop::new(target, |n| Req::get(format!("/{}", n % 100))) };
//! let summary = open_loop(load).await;
//! assert_eq!(summary.failed(), 0, "{summary}");
//! println!("99 % within {:?}", summary.quantile(0.99));
//! # }
//! ```

mod closed;
mod connection;
mod meter;
mod open;
mod outcome;
mod request;
mod summary;

pub use closed::{ClosedLoop, closed_loop};
pub use meter::Meter;
pub use open::{ArrivalPattern, OpenLoop, open_loop};
pub use outcome::{CacheStatus, RequestFailure, RequestSample};
pub use request::{Expect, Req};
pub use summary::{LoadSummary, Second};

use std::sync::Arc;

/// Called for every request with its number and result, inside and outside of the measured time.
pub type SampleObserver = Arc<dyn Fn(u64, &RequestSample) + Send + Sync>;
