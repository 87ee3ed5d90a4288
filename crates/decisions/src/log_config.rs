//! Where a log goes and how large it becomes.

use std::path::PathBuf;

/// Where a log goes and how large it becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// Directory of its files; made when it is not there.
    pub directory: PathBuf,
    /// Bytes of one file, at least [`LogConfig::LEAST_FILE_BYTES`]. A file holds at least one chunk, and a few bytes
    /// more when its log ends in it.
    pub file_bytes: u64,
    /// The most files in the directory, at least 1; files of earlier logs count.
    pub files: usize,
    /// What happens when they are full.
    pub when_full: LogRetention,
}

impl LogConfig {
    /// The smallest file that makes sense.
    pub const LEAST_FILE_BYTES: u64 = 4096;
}

/// What happens when the files are full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogRetention {
    /// The oldest file goes.
    Rotate,
    /// Nothing more is written.
    Stop,
}
