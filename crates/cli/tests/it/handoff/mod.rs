//! Connections handed off between machines of a lab: real kernels, real sockets, real processes. These tests need root.

mod auto;
mod bed;
mod bodies;
mod bounds;
mod crash;
mod departures;
mod distance;
mod failover;
mod faults;
mod firewall;
mod forgery;
mod http;
mod interruptions;
mod many;
mod noise;
mod packets;
mod privileges;
mod raw;
mod refusals;
mod relay;
mod round;
mod servers;
mod tampering;
mod transport;
mod two_level;
mod unmodified;
