//! Measurements of live clusters, for demonstrations and for studies' figures of real traffic.
//!
//! - [`loopback`]: trials of a policy on a cluster in this process, in the setting of the LARD study.
//! - [`compare`]: the same beside HAProxy and nginx, and beside the simulator, where one way of choosing is known to lose.
//! - [`lab_cluster`]: front-end, back-ends and load as processes on the nodes of a lab; [`lab_trial`]: one mechanism
//!   measured there.
//! - [`lard`]: figure 17 and section 6.2 of the LARD paper, to hand over to `plimsoll_studies`.
//! - [`fine_grain`]: figure 6 and table 2 of the fine-grain paper, likewise.
//! - [`cloning`]: figures 8 and 9 of the Socket Cloning paper, likewise, and nodes that clone on a lab.
//! - [`block_on`]: runs a measurement until it ends or the process is asked to end.
//!
//! Nothing here prints: progress and warnings go to a [`Tell`].

pub mod cloning;
pub mod compare;
mod error;
pub mod fine_grain;
pub mod lab_cluster;
pub mod lab_trial;
pub mod lard;
pub mod loopback;
mod runtime;

pub use error::ExperimentError;
pub use runtime::block_on;

/// Receives progress and warnings for users while a measurement runs, a line each.
pub type Tell<'a> = &'a (dyn Fn(&str) + Sync);
