//! The layer-4 switch's part in user space. The packet program of `plimsoll-datapath` forwards every packet; here are the choices
//! that it takes for new connections, and the account of the connections that took them.
//!
//! - [`Distributor`]: who chooses and counts. The front-end implements it on its dispatch.
//! - [`ConnBook`]: which connections are under way, from what the packet program tells. It does no input or output.
//! - [`SwitchLoop`]: the loop of one thread that keeps the rings of choices filled, reads events, and sets back-ends.
//! - [`SwitchBackend`]: a back-end as the switch has to know it.

mod backends;
mod book;
mod distributor;
mod rings;
mod switch_loop;
mod times;

pub use backends::{SwitchBackend, SwitchBackendState};
pub use book::{BookCounts, ConnBook, HANDSHAKE_ENDS_US, HandshakeCounts, Seen};
pub use distributor::Distributor;
pub use switch_loop::{SwitchCommand, SwitchLoop, SwitchOptions};
pub use times::ConnTimes;
