//! A whole cluster in one process on loopback, and clients that put a bounded load on it.
//!
//! For the demo, for studies by real traffic, and for tests of the front-end with failing back-ends.
//!
//! - [`load`] is the client: closed and open loop, bounded in every respect.
//! - [`cluster`] is front-end and origins, with back-ends that can be killed, paused and brought back.
//! - [`workload`] has the requests: the first ones of a synthetic workload.
//! - [`machine`] measures how busy the CPUs are.
//! - [`trial`] combines them: one policy under saturating load, measured by client and origins.

pub mod cluster;
pub mod load;
pub mod machine;
pub mod trial;
pub mod workload;
