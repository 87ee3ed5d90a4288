//! Load information: how an agent tells what its back-end has to do, by datagrams that no third party can forge or repeat.
//!
//! All datagrams have [`DATAGRAM_BYTES`] bytes, so no answer is larger than its question. Each carries a code of the shared key
//! ([`LoadKeys`]) over all its fields, with a key of its own for each kind.
//!
//! - **Asked.** [`LoadInquirer`] makes inquiries and takes replies; [`LoadAnswerer`] answers at the agent. An inquiry names the
//!   agent's boot id, the asking instance, its sequence number, and what the agent's clock shows by the asker's knowledge. The pair
//!   of instance and sequence number is the nonce: it never comes again, and the reply repeats it. An agent that does not know
//!   the boot id answers with a *renewal*: its boot id and its clock, no load. So protection against replays needs no handshake
//!   beyond the first inquiry to an agent.
//! - **Announced.** [`LoadAnnouncer`] makes announcements at jittered intervals; [`LoadInquirer::take_announcement`] takes them from
//!   agents whose boot id was learned by an inquiry: this binds announcements to an address, and shows which are old.
//! - **Measured.** [`HostFigures`] are the host metrics of a back-end, asked for as loads are ([`LoadInquirer::ask_host`]).
//! - **Counted.** [`LoadGauge`] is the load itself, for what serves.
//! - **Central.** [`LoadIndex`] is the load index manager of Shen, Yang and Chu, "Cluster Load Balancing for Fine-grain Network
//!   Services" (IPDPS 2002), section 4; [`IndexClient`] is its client.
//!
//! Nothing here reads a clock or a socket. Times are nanoseconds since any fixed moment of the caller's own. The wire format
//! stands in `docs/load-information.md`.

mod announcement;
mod answerer;
mod clients;
mod counts;
mod datagram;
mod fuzzed;
mod gate;
mod gauge;
mod host;
mod index;
mod index_client;
mod inquirer;
mod renewals;
#[cfg(test)]
mod tests;

pub use announcement::LoadAnnouncer;
pub use answerer::LoadAnswerer;
pub use counts::{LoadCounters, LoadCounts, LoadRefusal};
pub use datagram::{DATAGRAM_BYTES, Datagram, Inquiry, LoadAnnouncement, LoadKeys, LoadReply, MOST_LOAD};
pub(crate) use fuzzed::datagrams;
pub use gate::{AnswerLimits, BootId};
pub use gauge::{ActiveAccess, LoadGauge};
pub use host::{HostFigures, HostTaken, asks_for_host};
pub use index::{IndexLimits, LoadIndex};
pub use index_client::{IndexAnswer, IndexClient};
pub use inquirer::{Announced, InquiryLimits, LoadInquirer, LoadTaken};
