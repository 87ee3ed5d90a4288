//! Content that is compressed on its way.

use std::io;
use std::ops::Range;

use super::compress::Compressor;
use crate::http::chunked::chunk_line;

/// Content that is compressed, into chunks.
pub(super) struct CodedContent {
    /// Given back once all has been compressed: the client may take it when it likes.
    compressor: Option<Compressor>,
    /// Bytes that it had before, in all.
    pub(super) original_bytes: u64,
}

impl CodedContent {
    pub(super) fn by(compressor: Compressor) -> Self {
        Self { compressor: Some(compressor), original_bytes: 0 }
    }

    /// Puts a piece into `out`, the last one if it `ends`. Returns where in `out` the compressed content is, without a chunk's frame.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn code(&mut self, content: &[u8], ends: bool, out: &mut Vec<u8>) -> io::Result<Range<usize>> {
        let Some(compressor) = &mut self.compressor else { return Ok(0..0) };
        let chunk = compressor.compress(content, ends)?;
        let mut place = 0..0;
        if !chunk.is_empty() {
            chunk_line(chunk.len(), out);
            place = out.len()..out.len() + chunk.len();
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
        self.original_bytes += content.len() as u64;
        if ends {
            self.compressor = None;
        }
        Ok(place)
    }
}
