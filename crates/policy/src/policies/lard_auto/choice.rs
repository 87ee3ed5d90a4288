//! What is asked of the costs, and their answer.

use super::evictions::SeenCopy;
use crate::cluster::BackendId;
use crate::request::TargetId;
use crate::time::Time;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedDocument {
    pub(super) target: TargetId,
    pub(super) size_bytes: Option<u64>,
    /// Requests for it lately.
    pub(super) recent: f64,
    pub(super) now: Time,
}

/// A choice.
#[derive(Debug, Clone, Copy)]
pub(super) struct PricedChoice {
    pub(super) backend: BackendId,
    /// Whether the back-end gets a copy that it did not have.
    pub(super) new: bool,
    /// How likely it has to read the document.
    pub(super) likelihood: f64,
    /// How the document looks there, where it may have been evicted.
    pub(super) seen: Option<SeenCopy>,
    /// It waits for a read that is under way.
    pub(super) joins: bool,
}
