//! The admin API over real sockets.

mod access;
mod logs;
mod rig;
mod state;
mod watch;
