//! The front-end: HTTP/1.1 listeners, dispatch, mechanisms, health checks and the admin API.

mod accepted;
mod access_log;
mod account;
mod admin;
mod backend;
mod clock;
mod connection;
mod control;
mod dispatch;
mod ejecting;
mod ejection;
mod exposition;
mod health;
mod host_names;
mod http;
mod mechanism;
mod membership;
mod metrics;
mod net;
mod observe;
mod peers;
mod placement_row;
mod refusal_reason;
mod refusals;
mod request;
mod rlimit;
mod server;
mod shared;
mod stalling;
mod thread;
mod trial;
mod worker;

pub use host_names::{UnresolvedHost, unresolved_hosts};
pub use rlimit::raise_open_file_limit;
pub use server::{Balancer, PreparedBalancer, StartError};
