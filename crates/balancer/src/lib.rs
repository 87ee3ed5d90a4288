//! The front-end: HTTP/1.1 listeners, dispatch, pools of connections to back-ends, health checks, admission and the
//! admin API.

mod access_log;
mod backend;
mod clock;
mod dispatch;
mod http;
mod metrics;
mod net;
mod observe;
mod pool;
mod proxy;
mod worker;
