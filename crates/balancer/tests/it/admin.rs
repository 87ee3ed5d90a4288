//! The admin API over real sockets.

mod access;
mod documented;
mod ejected;
mod formats;
mod limits;
mod logs;
mod refusals;
mod retries;
pub(crate) mod rig;
mod sizes;
mod slow;
mod state;
mod watch;
