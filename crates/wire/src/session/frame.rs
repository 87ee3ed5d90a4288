//! Frames: a length, messages, and a code that only the other side can have made, for this place in the stream.

use std::fmt;

use crate::codec::{FieldError, Message};

/// Most bytes of messages in a frame.
pub const MOST_FRAME_BYTES: usize = 16 << 20;

/// Bytes of a frame's authentication code.
pub const MAC_BYTES: usize = 16;

const LENGTH_BYTES: usize = 4;

/// Room that a reader offers at least.
const READ_BYTES: usize = 16 * 1024;

/// A buffer that is larger than this is given back when it is empty.
const KEPT_BYTES: usize = 1 << 20;

/// The frames cannot be trusted, or not be understood, any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// No frame has this length.
    #[error("a frame of {bytes} bytes; 1 to {MOST_FRAME_BYTES} are possible")]
    Length {
        /// Bytes of its messages.
        bytes: u32,
    },
    /// It was not made by the other side, or not for this place.
    #[error("frame {number} is not authentic: it was changed, repeated, or others before it are missing")]
    Forged {
        /// Its number, from 0.
        number: u64,
    },
    /// There was an error before.
    #[error("the link has failed before")]
    Failed,
}

/// The code of the frame with this number and these messages.
fn code(key: &[u8; 32], number: u64, length: [u8; LENGTH_BYTES], area: &[u8]) -> [u8; MAC_BYTES] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    let mut prefix = [0; 8 + LENGTH_BYTES];
    prefix[..8].copy_from_slice(&number.to_le_bytes());
    prefix[8..].copy_from_slice(&length);
    hasher.update(&prefix).update(area);
    let mut code = [0; MAC_BYTES];
    code.copy_from_slice(&hasher.finalize().as_bytes()[..MAC_BYTES]);
    code
}

/// Compares in a time that does not depend on where the two differ.
fn same_code(a: &[u8; MAC_BYTES], b: &[u8; MAC_BYTES]) -> bool {
    let padded = |code: &[u8; MAC_BYTES]| {
        let mut bytes = [0; 32];
        bytes[..MAC_BYTES].copy_from_slice(code);
        blake3::Hash::from_bytes(bytes)
    };
    padded(a) == padded(b)
}

/// Collects messages to frames, and keeps their bytes until they are sent. Costs nothing while nothing is pushed.
pub struct FrameWriter {
    key: [u8; 32],
    /// Of the next frame that is finished.
    number: u64,
    buffer: Vec<u8>,
    /// Bytes at the start of the buffer that were sent.
    sent: usize,
    /// Where the frame begins to which messages are added; it has one at least.
    open: Option<usize>,
}

impl FrameWriter {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self { key, number: 0, buffer: Vec::new(), sent: 0, open: None }
    }

    /// Adds a message to the frame that is being made; one that has no room there begins another one.
    ///
    /// # Errors
    /// See [`Message::check`]; nothing is added then.
    pub fn push<'m, M: Message<'m>>(&mut self, message: &M) -> Result<(), FieldError> {
        let start = self.open.unwrap_or_else(|| self.begin());
        let before = self.buffer.len();
        if let Err(error) = message.encode(&mut self.buffer) {
            let keep = if before == start + LENGTH_BYTES { start } else { before };
            self.buffer.truncate(keep);
            self.open = (keep == before).then_some(start);
            return Err(error);
        }
        if self.buffer.len() - start - LENGTH_BYTES > MOST_FRAME_BYTES && before > start + LENGTH_BYTES {
            let last = self.buffer.split_off(before);
            self.finish();
            self.begin();
            self.buffer.extend_from_slice(&last);
        }
        Ok(())
    }

    fn begin(&mut self) -> usize {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; LENGTH_BYTES]);
        self.open = Some(start);
        start
    }

    /// Completes the frame that is being made, if it has messages, and returns all bytes to be sent. What of them was sent
    /// is told by [`FrameWriter::consume`].
    pub fn finish(&mut self) -> &[u8] {
        if let Some(start) = self.open {
            let messages = start + LENGTH_BYTES;
            // A single message is far smaller than a frame may be, and more are kept within it.
            let bytes = u32::try_from(self.buffer.len() - messages).unwrap_or(u32::MAX);
            let length = bytes.to_le_bytes();
            self.buffer[start..messages].copy_from_slice(&length);
            let code = code(&self.key, self.number, length, &self.buffer[messages..]);
            self.buffer.extend_from_slice(&code);
            self.number += 1;
            self.open = None;
        }
        &self.buffer[self.sent..]
    }

    /// The first `bytes` of what [`FrameWriter::finish`] returned were sent.
    pub fn consume(&mut self, bytes: usize) {
        let end = self.open.unwrap_or(self.buffer.len());
        self.sent = self.sent.saturating_add(bytes).min(end);
        if self.sent == self.buffer.len() {
            self.sent = 0;
            self.buffer.clear();
            if self.buffer.capacity() > KEPT_BYTES {
                self.buffer = Vec::new();
            }
        } else if self.sent > READ_BYTES && self.sent * 2 > self.buffer.len() {
            self.buffer.drain(..self.sent);
            self.open = self.open.map(|start| start - self.sent);
            self.sent = 0;
        }
    }

    /// Bytes that wait to be sent, those of the frame that is being made included.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.buffer.len() - self.sent
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queued_bytes() == 0
    }
}

impl fmt::Debug for FrameWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queued_bytes = self.queued_bytes();
        f.debug_struct("FrameWriter")
            .field("number", &self.number)
            .field("queued_bytes", &queued_bytes)
            .finish_non_exhaustive()
    }
}

/// Takes bytes as they come and gives out whole frames that are authentic. Holds one frame and some 16 KiB at most.
pub struct FrameReader {
    key: [u8; 32],
    /// Of the next frame.
    number: u64,
    buffer: Vec<u8>,
    /// The bytes that came and were not given out: from `start` to `end`.
    start: usize,
    end: usize,
    failed: bool,
}

impl FrameReader {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self { key, number: 0, buffer: Vec::new(), start: 0, end: 0, failed: false }
    }

    /// Room to read into, never empty, and enough for the frame that has begun; tell what was read by
    /// [`FrameReader::filled`]. Have the whole frames given out first.
    pub fn space(&mut self) -> &mut [u8] {
        if self.failed {
            self.start = self.end;
        }
        let needed = self.frame_bytes().unwrap_or(0).max(self.end - self.start + READ_BYTES);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > KEPT_BYTES {
                self.buffer = Vec::new();
            }
        }
        if self.buffer.len() - self.start < needed {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.buffer.len() < needed {
                self.buffer.resize(needed, 0);
            }
        }
        &mut self.buffer[self.end..]
    }

    /// `bytes` were read into the [`FrameReader::space`].
    pub fn filled(&mut self, bytes: usize) {
        self.end = self.end.saturating_add(bytes).min(self.buffer.len());
    }

    /// Takes in bytes that were read elsewhere. They are kept until they are given out, so it is the caller who bounds them.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.space();
            let count = space.len().min(bytes.len());
            space[..count].copy_from_slice(&bytes[..count]);
            self.filled(count);
            bytes = &bytes[count..];
        }
    }

    /// The messages of the next frame, if all of it has come; see [`crate::codec::messages`].
    ///
    /// # Errors
    /// When it has an impossible length or is not authentic. Every later call fails as well.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameError> {
        if self.failed {
            return Err(FrameError::Failed);
        }
        let Some(length) = self.length() else { return Ok(None) };
        let bytes = u32::from_le_bytes(length);
        let Some(total) = self.frame_bytes() else {
            self.failed = true;
            return Err(FrameError::Length { bytes });
        };
        let Some(frame) = self.buffer[self.start..self.end].get(..total) else { return Ok(None) };
        let (rest, received) = frame.split_last_chunk::<MAC_BYTES>().ok_or(FrameError::Failed)?;
        let area = &rest[LENGTH_BYTES..];
        if !same_code(&code(&self.key, self.number, length, area), received) {
            self.failed = true;
            return Err(FrameError::Forged { number: self.number });
        }
        self.number += 1;
        self.start += total;
        Ok(Some(area))
    }

    /// Whether a frame has begun to come and is not whole; where a stream ends then, it was cut off.
    #[must_use]
    pub fn is_within_frame(&self) -> bool {
        self.start < self.end
    }

    /// The length field of the next frame, if it has come.
    fn length(&self) -> Option<[u8; LENGTH_BYTES]> {
        self.buffer[self.start..self.end].first_chunk().copied()
    }

    /// Bytes of the next frame with all that belongs to it, if its length has come and is possible.
    fn frame_bytes(&self) -> Option<usize> {
        let bytes = usize::try_from(u32::from_le_bytes(self.length()?)).ok()?;
        (1..=MOST_FRAME_BYTES).contains(&bytes).then_some(LENGTH_BYTES + bytes + MAC_BYTES)
    }
}

impl fmt::Debug for FrameReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameReader")
            .field("number", &self.number)
            .field("waiting_bytes", &(self.end - self.start))
            .finish_non_exhaustive()
    }
}
