//! The heads of chunks.

use super::Recorder;
use crate::bytes::put_varint;
use crate::header_code::{self, HeaderForm};

impl Recorder {
    #[inline]
    pub(super) fn begin_chunk_if_new(&mut self) {
        if self.buffer.is_empty() {
            self.begin_chunk();
        }
    }

    #[cold]
    fn begin_chunk(&mut self) {
        self.recent.begin_chunk(self.sequence);
        self.last_client = 0;
        let out = &mut self.buffer;
        for value in [self.sequence, self.last_time.as_nanos(), self.next_number] {
            put_varint(out, value);
        }
        let form = self.run.as_ref().map(HeaderForm::of);
        out.push(match form {
            None => 0,
            Some(HeaderForm::Plain) => 1,
            Some(HeaderForm::WithClasses) => 2,
            Some(HeaderForm::WithLimits) => 3,
        });
        if let Some(run) = &self.run {
            header_code::put_header(out, run, &self.loads);
        }
        self.full_bytes = Self::CHUNK_BYTES.max(5 * out.len());
    }
}
