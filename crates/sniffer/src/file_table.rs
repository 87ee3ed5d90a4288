//! The file table: the documents of a site, with their sizes and the times of their last changes.
//!
//! Source: Hyun et al., section 3.1. The table's last field, the latest reference at each back-end, belongs to the estimator, which
//! learns it (`plimsoll_policy::estimator::References`); these are given by the administrator.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_policy::TargetId;

/// A document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteFile {
    /// Its size in bytes.
    pub size_bytes: u64,
    /// When it was changed last, in seconds since 1970.
    pub modified_unix_s: u64,
}

/// There is no room for a further document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a file table has room for {most} documents")]
pub struct TableFull {
    /// The most that it holds.
    pub most: usize,
}

/// The documents by path. Holds an identity of each path and not the path, so that a million documents take some 40 MB.
#[derive(Debug, Clone)]
pub struct FileTable {
    files: HashMap<TargetId, SiteFile, FixedState>,
    most: usize,
}

impl FileTable {
    /// An empty table with room for `most` documents.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { files: HashMap::with_hasher(FixedState::with_seed(0x6669_6C65)), most }
    }

    /// Adds a document, or replaces what is known of it. `path` begins with a slash and has no query.
    ///
    /// # Errors
    /// When there is no room for a further one.
    pub fn set(&mut self, path: &[u8], file: SiteFile) -> Result<(), TableFull> {
        let target = TargetId::from_key(path);
        if self.files.len() >= self.most && !self.files.contains_key(&target) {
            return Err(TableFull { most: self.most });
        }
        self.files.insert(target, file);
        Ok(())
    }

    /// Removes a document.
    pub fn remove(&mut self, path: &[u8]) {
        self.files.remove(&TargetId::from_key(path));
    }

    /// The document of this path, with its identity.
    #[must_use]
    pub fn find(&self, path: &[u8]) -> Option<(TargetId, SiteFile)> {
        let target = TargetId::from_key(path);
        self.files.get(&target).map(|&file| (target, file))
    }

    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded() {
        let file = |size_bytes| SiteFile { size_bytes, modified_unix_s: 7 };
        let mut table = FileTable::new(2);
        table.set(b"/a", file(1)).unwrap();
        table.set(b"/b", file(2)).unwrap();
        table.set(b"/a", file(3)).unwrap();
        assert_eq!(table.set(b"/c", file(4)), Err(TableFull { most: 2 }));
        assert_eq!(table.find(b"/a").unwrap(), (TargetId::from_key(b"/a"), file(3)));
        assert_eq!((table.find(b"/c"), table.len()), (None, 2));
        table.remove(b"/b");
        table.set(b"/c", file(4)).unwrap();
        assert!(!table.is_empty() && table.find(b"/b").is_none());
    }
}
