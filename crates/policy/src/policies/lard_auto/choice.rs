//! What is asked of the costs, and their answer.

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

/// A choice: small, so that it stays in registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct PricedChoice {
    /// How likely the back-end has to read the document.
    pub(super) likelihood: f64,
    /// Reads that the back-end began since its last request for the document, in sixteenths.
    pub(super) since: u32,
    pub(super) backend: BackendId,
    pub(super) copy: ChosenCopy,
    /// Another request's read of it is under way, which it waits for, unless that rule is left out.
    pub(super) joins: bool,
}

impl PricedChoice {
    /// The back-end has no copy, and gets the first or a further one.
    pub(super) const fn read(backend: BackendId, copy: ChosenCopy) -> Self {
        Self { likelihood: 1.0, since: 0, backend, copy, joins: false }
    }
}

/// Whether a chosen back-end has a copy of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChosenCopy {
    /// It has one, as far as is known.
    Held,
    /// It gets one, the first.
    First,
    /// It gets one beside those of others.
    Further,
}
