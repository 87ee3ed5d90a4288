//! Which part of the data a dispatch is for.

use std::path::{Path, PathBuf};

/// One of so many partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataPart {
    pub(crate) number: u16,
    pub(crate) count: u16,
}

impl DataPart {
    /// All of the data.
    #[cfg(test)]
    pub(super) const WHOLE: Self = Self { number: 0, count: 1 };

    /// Whether there are others.
    pub(super) fn is_one_of_several(self) -> bool {
        self.count > 1
    }

    /// Whether it is the first one, which warns of what is odd for all of them.
    pub(super) fn is_first(self) -> bool {
        self.number == 0
    }

    /// Where its decision log is, below the directory that is configured.
    pub(crate) fn log_directory(self, configured: &Path) -> PathBuf {
        if self.is_one_of_several() {
            configured.join(format!("partition-{}", self.number))
        } else {
            configured.to_path_buf()
        }
    }

    /// Its share of what is remembered of targets.
    pub(super) fn share(self, all: usize) -> usize {
        all.div_ceil(usize::from(self.count))
    }
}
