//! What front-ends, and nodes of Socket Cloning, ask and tell one another about loads: state machines without sockets and clocks.

#[doc(hidden)]
pub mod fuzz;
mod hearing;
mod polls;
mod sizes;

pub use hearing::Hearing;
pub use polls::{Outgoing, PollEvent, PollsUnderWay};
pub use sizes::{MOST_MESSAGE_BYTES, Sizes, SizesSeen, cluster_number};
