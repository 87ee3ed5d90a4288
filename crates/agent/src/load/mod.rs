//! Tells front-ends the load of this back-end: it answers inquiries, and may announce the load as well.
//!
//! ```no_run
//! use plimsoll_agent::load::{LoadConfig, LoadRole, PreparedLoad};
//! use plimsoll_wire::Key;
//! use plimsoll_wire::load::LoadGauge;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let gauge = LoadGauge::new();
//! let key = Key::load("load.key".as_ref())?;
//! let config = LoadConfig::new("10.0.0.21:7401".parse()?, key, LoadRole::Answer(gauge.clone()));
//! let service = PreparedLoad::new(config)?.start()?;
//! let access = gauge.begin();
//! // … the work …
//! access.answered(1200);
//! service.stop();
//! # Ok(())
//! # }
//! ```
//!
//! A thread of its own (`answer`) waits for inquiries and answers them. It shares nothing with what serves but the atomic
//! numbers of a [`LoadGauge`](plimsoll_wire::load::LoadGauge), takes no lock, and allocates nothing for a datagram. `announce` is
//! the thread that announces; `api` takes the loads of servers that are not ours, which `writers` adds up.

mod announce;
mod answer;
mod api;
mod api_address;
mod config;
mod connections;
mod flood;
pub(crate) mod fuzzed;
mod host;
mod priority;
mod service;
mod shared;
mod status;
mod writers;

pub use api_address::{ApiAccess, ApiAddress};
pub use config::{AnnounceConfig, HostConfig, LoadConfig, LoadError, LoadRole};
pub use priority::allow_priority;
pub use service::{LoadService, PreparedLoad};
pub use status::LoadStatus;
pub use writers::ToldLoad;
