//! The content sniffer: what the bytes of a client's packet ask for, and what an estimator needs to know of that.
//!
//! Source: Hyun, Jung, Lee and Maeng, "Content sniffer based load distribution in a web server cluster", IEICE Transactions on
//! Information and Systems 2003, sections 3.1 and 3.2. Nothing here opens a socket or knows of packets' headers: who forwards packets
//! passes in what they carry.

mod exchanges;
mod file_list;
mod file_table;
#[doc(hidden)]
pub mod fuzz;
mod request_start;
mod sniffer;

pub use exchanges::{Ends, Exchanges, SeenExchange, Segment};
pub use file_list::{FileListError, MOST_LIST_BYTES};
pub use file_table::{FileTable, SiteFile, TableFull};
pub use request_start::{MOST_HEAD_BYTES, RequestStart};
pub use sniffer::{DynamicRule, SniffedContent, Sniffer};
