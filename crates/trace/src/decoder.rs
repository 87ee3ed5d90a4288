//! The trait that turns the bytes of one input into requests.

use crate::error::TraceError;
use crate::ingest::Ingest;
use crate::source::InputSource;

/// Lines or records that a decoder takes at a time before it hands control back.
pub(crate) const BATCH: usize = 4096;

/// Turns the bytes of one input into requests.
pub(crate) trait FormatDecoder: Send {
    /// Decodes some more; false when the input is used up.
    fn step(&mut self, out: &mut Ingest) -> Result<bool, TraceError>;

    /// The input, for reading its raw bytes to the end; `None` when that was done before decoding.
    fn source(&mut self) -> Option<&mut InputSource>;
}
