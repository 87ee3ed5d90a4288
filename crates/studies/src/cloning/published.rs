//! What the paper publishes in numbers, and what Pai et al. publish of the handoff that it measures beside its own mechanism.

/// Startup cost of a clone in µs: sending the message and making the socket, on a Pentium III of 733 MHz.
pub(super) const CLONE_US: f64 = 46.0;

/// The same on a Pentium II of 300 MHz.
pub(super) const SLOW_CLONE_US: f64 = 134.0;

/// Startup cost of LARD's handoff in µs on a Pentium II of 300 MHz.
pub(super) const HANDOFF_US: f64 = 194.0;

/// CPU times in µs that Pai et al. (ASPLOS 1998) give for a Pentium II of 300 MHz: to establish a connection, and to tear it down (section
/// 3.1).
pub(super) const CONNECT_US: f64 = 145.0;
pub(super) const TEARDOWN_US: f64 = 145.0;

/// To transmit 1,024 bytes: twice 40 µs for 512 (section 3.1).
pub(super) const TRANSMIT_PER_KIB_US: f64 = 80.0;

/// To pass an acknowledgment on (section 6.2).
pub(super) const FORWARD_ACK_US: f64 = 9.0;

/// Throughput of SC at twelve nodes over that of RR, CF-LRU and CF-LFU.
pub(super) const SC_OVER_RR: f64 = 1.96;
pub(super) const SC_OVER_CF_LRU: f64 = 1.64;
pub(super) const SC_OVER_CF_LFU: f64 = 1.30;

/// Nodes of these comparisons, and the most of figure 9.
pub(super) const MOST_NODES: usize = 12;

/// Beyond so many nodes RR's throughput stops to increase, and CF gets ahead of it.
pub(super) const TURNING_NODES: usize = 8;
