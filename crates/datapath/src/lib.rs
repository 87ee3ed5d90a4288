//! What Plimsoll asks of the kernel beyond ordinary sockets. This is the only crate with `unsafe`.
//!
//! - [`tcp`]: established TCP connections taken out of one kernel and put into another (`TCP_REPAIR`).
//! - [`Flow`]: what names a connection for the packet programs.

#![cfg(target_os = "linux")]
#![deny(clippy::undocumented_unsafe_blocks)]

mod flow;
pub mod tcp;

pub use flow::{FLOW_KEY_BYTES, Flow};
