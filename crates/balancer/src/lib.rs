//! The front-end: HTTP/1.1 listeners, dispatch, pools of connections to back-ends, health checks, admission and the
//! admin API.

mod http;
