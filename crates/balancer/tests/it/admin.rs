//! The admin API over real sockets.

mod access;
mod ejected;
mod logs;
mod rig;
mod sizes;
mod state;
mod watch;
