//! A whole cluster in one process on loopback, and clients that put a bounded load on it.
//!
//! For the demo, for studies by real traffic, and for tests of what the front-end does when back-ends fail.
//!
//! - [`load`] is the client: closed and open loop, bounded in every respect.
//! - [`cluster`] is front-end and origins, with back-ends that can be killed, paused and brought back.
//! - [`workload`] is what is asked for: the first requests of a synthetic workload.
//! - [`machine`] tells how busy the CPUs are meanwhile.
//! - [`trial`] puts them together: one policy under saturating load, with what client and origins saw of it.

pub mod cluster;
pub mod load;
pub mod machine;
pub mod trial;
pub mod workload;
