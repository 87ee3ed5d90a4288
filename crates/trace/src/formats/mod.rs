//! One decoder per format.

pub(crate) mod csv;
pub(crate) mod log;
pub(crate) mod oracle;
pub(crate) mod parquet;
pub(crate) mod parquet_columns;
pub(crate) mod time_id_size;
pub(crate) mod worldcup;

use crate::error::TraceError;
use crate::ingest::Ingest;
use crate::source::InputSource;

/// Lines or records a decoder takes at a time before it hands control back.
const BATCH: usize = 4096;

/// Turns the bytes of one input into requests.
pub(crate) trait FormatDecoder: Send {
    /// Decodes some more; false when the input is used up.
    fn step(&mut self, out: &mut Ingest) -> Result<bool, TraceError>;

    /// The input, for reading its raw bytes to the end; `None` when that was done before decoding.
    fn source(&mut self) -> Option<&mut InputSource>;
}
