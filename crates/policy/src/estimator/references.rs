//! When each back-end was last asked for each document.
//!
//! Source: the last field of the file table, Hyun et al., section 3.1. The others are given by the administrator, and belong to who
//! reads requests.

use crate::cluster::BackendId;
use crate::lru_map::LruMap;
use crate::request::TargetId;

/// One mark for each document and back-end; of the documents that were asked for lately, as many as there is room for.
pub struct References {
    marks: LruMap<Box<[u64]>>,
}

impl References {
    /// Room for so many documents. `table_seed` as in [`LruMap::with_seed`].
    #[must_use]
    pub fn new(documents: usize, table_seed: u64) -> Self {
        Self { marks: LruMap::with_seed(documents, table_seed) }
    }

    /// The mark of `target` at `backend`; to be set. `None` before the first reference.
    #[inline]
    pub fn of(&mut self, target: TargetId, backend: BackendId) -> Reference<'_> {
        let (marks, _) = self.marks.get_or_insert_with(target, Box::default);
        if backend.index() >= marks.len() {
            let mut longer = std::mem::take(marks).into_vec();
            longer.resize(backend.index() + 1, NEVER);
            *marks = longer.into();
        }
        Reference(&mut marks[backend.index()])
    }

    /// `backend` has lost its memory, or another one has its index.
    pub fn forget(&mut self, backend: BackendId) {
        self.marks.retain(|_, marks| {
            if let Some(mark) = marks.get_mut(backend.index()) {
                *mark = NEVER;
            }
            true
        });
    }

    /// Documents with marks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Whether no document has marks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }
}

const NEVER: u64 = u64::MAX;

/// The mark of one document at one back-end.
pub struct Reference<'a>(&'a mut u64);

impl Reference<'_> {
    /// What was set last.
    #[must_use]
    pub fn get(&self) -> Option<u64> {
        (*self.0 != NEVER).then_some(*self.0)
    }

    /// Sets it.
    pub fn set(self, mark: u64) {
        *self.0 = mark.min(NEVER - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_documents_and_back_ends() {
        let mut references = References::new(2, 1);
        let (a, b, c) = (TargetId(1), TargetId(2), TargetId(3));
        assert_eq!(references.of(a, BackendId(3)).get(), None);
        references.of(a, BackendId(3)).set(7);
        references.of(a, BackendId(0)).set(5);
        references.of(b, BackendId(3)).set(u64::MAX);
        let of = |references: &mut References, t, k| references.of(t, BackendId(k)).get();
        assert_eq!([0, 1, 3].map(|k| of(&mut references, a, k)), [Some(5), None, Some(7)]);
        references.forget(BackendId(3));
        assert_eq!([0, 3].map(|k| of(&mut references, a, k)), [Some(5), None]);
        // No room for a third: the document that was asked for longest ago goes.
        assert_eq!(of(&mut references, b, 3), None);
        assert_eq!(of(&mut references, c, 0), None);
        assert_eq!((of(&mut references, a, 0), references.len()), (None, 2));
    }
}
