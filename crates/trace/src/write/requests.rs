//! What an encoder is given that needs to see each request only once.

use plimsoll_synth::{Record, RecordFields};

use crate::error::TraceError;
use crate::targets::TargetTable;

/// Requests to write, in order of time.
pub(crate) struct Requests<'a> {
    /// The names of their targets.
    pub(crate) targets: &'a TargetTable,
    /// The optional fields to write.
    pub(crate) fields: RecordFields,
    /// The requests.
    pub(crate) records: &'a mut dyn Iterator<Item = Result<Record, TraceError>>,
}
