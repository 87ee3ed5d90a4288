//! Connections handed off between machines of a lab: real kernels, real sockets, real processes. These tests need root.

mod bed;
mod bodies;
mod bounds;
mod crash;
mod departures;
mod distance;
mod failover;
mod faults;
mod forgery;
mod http;
mod interruptions;
mod many;
mod privileges;
mod refusals;
mod round;
mod servers;
mod transport;
mod two_level;
