//! The files of a log: a head, then frames with checksums.
//!
//! The head has 32 bytes: magic, version, session, number of the file, and their checksum. A frame has its
//! kind, the length of its payload, a checksum over kind, length and payload, and the payload. Numbers are
//! little-endian, checksums XXH3-64.

use std::fmt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// First bytes of every file.
const MAGIC: [u8; 4] = *b"PLOG";
/// Version of the format.
const VERSION: u32 = 4;
/// The version before, which is read as well: ends tell of no hits there.
const WITHOUT_HITS: u32 = 3;
/// Bytes of a file's head.
pub(crate) const HEAD_BYTES: usize = 32;
/// Bytes of a frame before its payload.
pub(crate) const FRAME_HEAD_BYTES: usize = 13;
/// The most bytes of a payload.
pub(crate) const MOST_PAYLOAD_BYTES: usize = 16 << 20;

/// The head of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileHead {
    /// When its log was opened, in nanoseconds since 1970: files of one opening belong together.
    pub(crate) session: u64,
    /// The number in its name.
    pub(crate) number: u64,
}

impl FileHead {
    pub(crate) fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.session.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        let sum = xxh3_64(&bytes[..24]);
        bytes[24..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes the head of a file; the error says what is wrong.
    pub(crate) fn read(bytes: &[u8; HEAD_BYTES]) -> Result<Self, &'static str> {
        if bytes[..4] != MAGIC {
            return Err("this is no decision log");
        }
        if ![VERSION, WITHOUT_HITS].iter().any(|version| bytes[4..8] == version.to_le_bytes()) {
            return Err(
                "the log is of a version that this program does not read (it reads versions 3 and 4): \
                        replay it with the program that wrote it",
            );
        }
        if word(&bytes[24..]) != xxh3_64(&bytes[..24]) {
            return Err("the head of the file is damaged: its checksum does not agree");
        }
        Ok(Self { session: word(&bytes[8..16]), number: word(&bytes[16..24]) })
    }
}

/// Kinds of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// A chunk of events.
    Chunk,
    /// Chunks were dropped here: the payload is how many, as a 64-bit word.
    Gap,
    /// The log is full and stopped.
    Full,
    /// The log was closed.
    End,
}

impl FrameKind {
    const fn code(self) -> u8 {
        match self {
            Self::Chunk => b'C',
            Self::Gap => b'G',
            Self::Full => b'F',
            Self::End => b'E',
        }
    }
}

/// A frame's head, as read.
pub(crate) struct FrameHead {
    pub(crate) kind: FrameKind,
    pub(crate) payload_bytes: usize,
    sum: u64,
}

impl FrameHead {
    pub(crate) fn read(bytes: &[u8; FRAME_HEAD_BYTES]) -> Result<Self, &'static str> {
        let kinds = [FrameKind::Chunk, FrameKind::Gap, FrameKind::Full, FrameKind::End];
        let kind = kinds.into_iter().find(|k| k.code() == bytes[0]);
        let kind = kind.ok_or("the log is damaged: a record is of no known kind")?;
        let payload_bytes = u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]) as usize;
        if payload_bytes > MOST_PAYLOAD_BYTES {
            return Err("the log is damaged: a record claims more than 16 MiB");
        }
        Ok(Self { kind, payload_bytes, sum: word(&bytes[5..]) })
    }

    pub(crate) fn check(&self, payload: &[u8]) -> Result<(), &'static str> {
        if checksum(self.kind, payload) == self.sum {
            return Ok(());
        }
        Err("the log is damaged: the checksum of a record does not agree")
    }
}

/// The head of the frame with this payload.
pub(crate) fn frame_head(kind: FrameKind, payload: &[u8]) -> [u8; FRAME_HEAD_BYTES] {
    let mut head = [0; FRAME_HEAD_BYTES];
    head[0] = kind.code();
    head[1..5].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    head[5..].copy_from_slice(&checksum(kind, payload).to_le_bytes());
    head
}

fn checksum(kind: FrameKind, payload: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&[kind.code()]);
    hash.update(&(payload.len() as u32).to_le_bytes());
    hash.update(payload);
    hash.digest()
}

/// A 64-bit word from 8 bytes; shorter slices count as followed by zeros.
pub(crate) fn word(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Path of the file of this number in `directory`.
pub(crate) fn file_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("decisions-{number:08}.plog"))
}

/// The number of a file of a log by its name; `None` for other files.
pub(crate) fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let number = name.strip_prefix("decisions-")?.strip_suffix(".plog")?.parse().ok()?;
    (file_path(Path::new(""), number).to_str() == Some(name)).then_some(number)
}

/// A place in a log: a file and a byte in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The file.
    pub file: PathBuf,
    /// Bytes from its start.
    pub offset: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, byte {}", self.file.display(), self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_version_and_the_one_before_are_read() {
        let head = FileHead { session: 7, number: 3 };
        for (version, is_read) in [(VERSION, true), (WITHOUT_HITS, true), (2, false), (VERSION + 1, false)] {
            let mut bytes = head.to_bytes();
            bytes[4..8].copy_from_slice(&version.to_le_bytes());
            let sum = xxh3_64(&bytes[..24]);
            bytes[24..].copy_from_slice(&sum.to_le_bytes());
            assert_eq!(FileHead::read(&bytes).is_ok_and(|read| read == head), is_read, "version {version}");
        }
    }
}
