//! The front-end: HTTP/1.1 listeners, dispatch, pools of connections to back-ends, health checks, admission and the
//! admin API.

mod accept;
mod access_log;
mod admin;
mod backend;
mod clock;
mod control;
mod dispatch;
mod handoff;
mod health;
mod http;
mod metrics;
mod net;
mod observe;
mod peers;
mod pool;
mod proxy;
mod rlimit;
mod server;
mod thread;
mod worker;

pub use rlimit::raise_open_file_limit;
pub use server::{Balancer, StartError};
