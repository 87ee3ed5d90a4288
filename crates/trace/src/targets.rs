//! The table of targets.

use crate::names::Interner;

/// Sentinel: no whole body of the target was seen yet.
const NONE: u64 = u64::MAX;

#[derive(Debug, Clone, Copy)]
struct TargetFacts {
    requests: u64,
    whole_bytes: u64,
    any_bytes: u64,
}

/// Names, sizes and request counts of a trace's targets, numbered in order of first appearance.
///
/// The only part of a loaded trace whose memory grows with its content: one name and 24 bytes of
/// facts per distinct target.
#[derive(Debug, Clone, Default)]
pub struct TargetTable {
    names: Interner,
    facts: Vec<TargetFacts>,
}

impl TargetTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many distinct targets there are.
    pub fn len(&self) -> usize {
        self.facts.len()
    }

    /// Whether there is no target at all.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// Number of the target called `name`; a name not seen before gets the next number.
    ///
    /// `None` only when 4,294,967,295 targets are numbered already.
    pub fn intern(&mut self, name: &[u8]) -> Option<u32> {
        let id = self.names.intern(name)?;
        if id as usize == self.facts.len() {
            self.facts.push(TargetFacts { requests: 0, whole_bytes: NONE, any_bytes: 0 });
        }
        Some(id)
    }

    /// Counts one request of `id` that sent `size_bytes`; `whole` when that was the whole document
    /// (status 200 with a body).
    ///
    /// # Panics
    /// When `id` is not a number of this table.
    pub fn count(&mut self, id: u32, size_bytes: u64, whole: bool) {
        let facts = &mut self.facts[id as usize];
        facts.requests += 1;
        facts.any_bytes = facts.any_bytes.max(size_bytes);
        if whole {
            facts.whole_bytes =
                if facts.whole_bytes == NONE { size_bytes } else { facts.whole_bytes.max(size_bytes) };
        }
    }

    /// Sets the document size of `id` in bytes, for workloads that know it beforehand.
    ///
    /// # Panics
    /// When `id` is not a number of this table.
    pub fn set_document_size(&mut self, id: u32, size_bytes: u64) {
        self.facts[id as usize].whole_bytes = size_bytes;
    }

    /// Name of the target: path and query for logs, the identifier for other formats.
    ///
    /// # Panics
    /// When `id` is not a number of this table.
    pub fn name(&self, id: u32) -> &[u8] {
        self.names.name(id)
    }

    /// Size of the document in bytes: the largest body sent with status 200, or else the largest
    /// body of any counted request (a target seen only with 206 or 304).
    ///
    /// # Panics
    /// When `id` is not a number of this table.
    pub fn document_size_bytes(&self, id: u32) -> u64 {
        let facts = &self.facts[id as usize];
        if facts.whole_bytes == NONE { facts.any_bytes } else { facts.whole_bytes }
    }

    /// How many counted requests asked for the target.
    ///
    /// # Panics
    /// When `id` is not a number of this table.
    pub fn requests(&self, id: u32) -> u64 {
        self.facts[id as usize].requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_bodies_decide_the_document_size() {
        let mut table = TargetTable::new();
        let id = table.intern(b"/a").unwrap();
        table.count(id, 900, false);
        assert_eq!(table.document_size_bytes(id), 900);
        table.count(id, 0, true);
        assert_eq!(table.document_size_bytes(id), 0);
        table.count(id, 300, true);
        table.count(id, 200, true);
        assert_eq!((table.document_size_bytes(id), table.requests(id)), (300, 4));
        assert_eq!(table.intern(b"/b"), Some(1));
        assert_eq!((table.document_size_bytes(1), table.requests(1)), (0, 0));
        assert_eq!((table.len(), table.is_empty()), (2, false));
    }
}
