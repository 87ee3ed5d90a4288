//! The admin API over real sockets.

mod access;
mod documented;
mod ejected;
mod formats;
mod logs;
mod refusals;
mod rig;
mod sizes;
mod state;
mod watch;
