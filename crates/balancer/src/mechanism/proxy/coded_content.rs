//! Content that is compressed on its way.

use std::io;

use super::compress::Compressor;
use crate::http::chunked::chunk_line;

/// Content that is compressed, into chunks.
pub(super) struct CodedContent {
    /// Given back once all has been compressed: the client may take it when it likes.
    compressor: Option<Compressor>,
    /// Bytes of it that wait to go out.
    pub(super) out_bytes: usize,
    /// Bytes that it had before, in all.
    pub(super) original_bytes: u64,
}

impl CodedContent {
    pub(super) fn by(compressor: Compressor) -> Self {
        Self { compressor: Some(compressor), out_bytes: 0, original_bytes: 0 }
    }

    /// Puts a piece into `out`, the last one if it `ends`.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn code(&mut self, content: &[u8], ends: bool, out: &mut Vec<u8>) -> io::Result<()> {
        let Some(compressor) = &mut self.compressor else { return Ok(()) };
        let chunk = compressor.compress(content, ends)?;
        if !chunk.is_empty() {
            chunk_line(chunk.len(), out);
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
        self.out_bytes += chunk.len();
        self.original_bytes += content.len() as u64;
        if ends {
            self.compressor = None;
        }
        Ok(())
    }
}
