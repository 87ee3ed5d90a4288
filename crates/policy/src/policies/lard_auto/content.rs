//! The content that is under way at each back-end, in documents of the mean size.
//!
//! The end of a request takes away just what its beginning has added, whatever was learned meanwhile.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::cluster::BackendId;
use crate::request::TargetId;

/// What each size leaves of the ones before it, in the mean.
const KEPT: f64 = 1.0 - 1.0 / 4096.0;
/// No document counts as more than so many of the mean size.
const LARGEST: f64 = 256.0;
/// Documents up to so many of the mean size are small. At least a third of all requests are for these, whatever the sizes are.
const SMALL: f64 = 1.5;

/// Whether a document of this size, as of [`ContentUnderWay::relative`], tells how long others of its size take: a large one takes long wherever it is.
pub(super) fn is_small(relative: f64) -> bool {
    relative <= SMALL
}

/// Content at a back-end, in documents of the mean size.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Content {
    /// Of requests that wait for no read.
    pub(super) queued: f64,
    /// Of those that do.
    pub(super) read: f64,
}

impl Content {
    fn add(&mut self, other: Self) {
        self.queued += other.queued;
        self.read += other.read;
    }

    /// Rounding may leave a little less than nothing.
    fn subtract(&mut self, other: Self) {
        self.queued = (self.queued - other.queued).max(0.0);
        self.read = (self.read - other.read).max(0.0);
    }

    fn part(self, of: u32) -> Self {
        Self { queued: self.queued / f64::from(of), read: self.read / f64::from(of) }
    }
}

/// Requests, and their content.
#[derive(Debug, Clone, Copy, Default)]
struct RequestsWithContent {
    requests: u32,
    content: Content,
}

impl RequestsWithContent {
    fn begin(&mut self, content: Content) {
        self.requests += 1;
        self.content.add(content);
    }

    /// The part of so many of them, where those are not all.
    #[inline]
    fn of_load(&self, load: u64) -> Content {
        if load >= u64::from(self.requests) {
            return self.content;
        }
        let part = load as f64 / f64::from(self.requests);
        Content { queued: self.content.queued * part, read: self.content.read * part }
    }

    /// True when that was the last one; what rounding has left ends with it.
    fn end(&mut self, content: Content) -> bool {
        self.requests -= 1;
        self.content.subtract(content);
        let is_last = self.requests == 0;
        if is_last {
            self.content = Content::default();
        }
        is_last
    }
}

/// See the module's documentation. Its size is bounded by the requests under way.
#[derive(Default)]
pub(super) struct ContentUnderWay {
    /// Looked up only, never iterated.
    by_target: HashMap<(TargetId, BackendId), RequestsWithContent, FixedState>,
    by_backend: Vec<RequestsWithContent>,
    all: RequestsWithContent,
    /// Sums over the sizes so far, of which older ones fade.
    bytes: f64,
    sizes: f64,
}

impl ContentUnderWay {
    /// A size, in documents of the mean size; an unknown one is the mean.
    #[inline]
    pub(super) fn relative(&self, size_bytes: Option<u64>) -> f64 {
        match size_bytes {
            Some(bytes) if self.bytes > 0.0 => (bytes as f64 * self.sizes / self.bytes).min(LARGEST),
            _ => 1.0,
        }
    }

    /// By how much a document's size multiplies the price of a move. A read has a part that is the same for all sizes and one that is in proportion
    /// to them, as is the room that the copy takes: the square root is between both.
    #[inline]
    pub(super) fn size_factor(&self, size_bytes: Option<u64>) -> f64 {
        self.relative(size_bytes).max(1.0).sqrt()
    }

    /// What is under way at `b`, which has so many requests: those whose clients alone are waited for are none of them.
    #[inline]
    pub(super) fn at(&self, b: BackendId, load: u32) -> Content {
        self.by_backend.get(b.index()).map_or(Content::default(), |of| of.of_load(load.into()))
    }

    /// What is under way anywhere, of so many requests.
    pub(super) fn anywhere(&self, load: u64) -> Content {
        self.all.of_load(load)
    }

    /// A request begins at `b`, which waits for a read with this likelihood. Returns its size as [`Self::relative`].
    pub(super) fn begin(
        &mut self,
        target: TargetId,
        b: BackendId,
        size_bytes: Option<u64>,
        likelihood: f64,
    ) -> f64 {
        if let Some(bytes) = size_bytes {
            self.bytes = self.bytes * KEPT + bytes as f64;
            self.sizes = self.sizes * KEPT + 1.0;
        }
        let size = self.relative(size_bytes);
        let content = Content { queued: size * (1.0 - likelihood), read: size * likelihood };
        if self.by_backend.len() <= b.index() {
            self.by_backend.resize(b.index() + 1, RequestsWithContent::default());
        }
        // Not by a default that is changed at once: reading back what was just written was 6 % of a decision (`perf`).
        match self.by_target.entry((target, b)) {
            Entry::Occupied(mut entry) => entry.get_mut().begin(content),
            Entry::Vacant(entry) => {
                entry.insert(RequestsWithContent { requests: 1, content });
            }
        }
        self.by_backend[b.index()].begin(content);
        self.all.begin(content);
        size
    }

    /// Another back-end has the index of `b` from now on; of requests that are still under way at the one before it nobody hears.
    pub(super) fn forget(&mut self, b: BackendId) {
        let Some(of) = self.by_backend.get_mut(b.index()).map(std::mem::take) else { return };
        self.all.requests -= of.requests;
        self.all.content.subtract(of.content);
        self.by_target.retain(|&(_, at), _| at != b);
    }

    /// A request for `target` ends at `b`: of several, they are taken for equal.
    pub(super) fn end(&mut self, target: TargetId, b: BackendId) {
        let Some(of) = self.by_target.get_mut(&(target, b)) else { return };
        let content = of.content.part(of.requests);
        if of.end(content) {
            self.by_target.remove(&(target, b));
        }
        self.by_backend[b.index()].end(content);
        self.all.end(content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const B: BackendId = BackendId(1);

    fn queued(under_way: &ContentUnderWay) -> f64 {
        under_way.at(B, u32::MAX).queued
    }

    #[test]
    fn sizes_are_those_of_mean_documents() {
        let mut under_way = ContentUnderWay::default();
        under_way.begin(TargetId(1), B, None, 0.0);
        assert_eq!(queued(&under_way), 1.0, "nothing is known of sizes");
        for n in 0..1000 {
            under_way.begin(TargetId(n), BackendId(0), Some(1000), 0.0);
        }
        let half = under_way.relative(Some(500));
        assert!((half - 0.5).abs() < 1e-9, "{half}");
        assert_eq!(under_way.relative(None), 1.0);
        assert_eq!(under_way.relative(Some(1 << 40)), LARGEST);
        assert_eq!(under_way.relative(Some(0)), 0.0);
    }

    /// The fault that this is about: by rounding, documents of one size were all above the mean from some request on.
    #[test]
    fn documents_of_one_size_are_small_and_a_few_much_smaller_ones_change_nothing() {
        for bytes in [100, 300, 5120, 100_000] {
            let mut under_way = ContentUnderWay::default();
            for n in 0..60_000 {
                let size_bytes = Some(if n % 100 == 99 { 10 } else { bytes });
                assert!(is_small(under_way.begin(TargetId(1), B, size_bytes, 0.0)), "{bytes}");
                under_way.end(TargetId(1), B);
            }
            assert!(!is_small(under_way.relative(Some(2 * bytes))));
        }
    }

    #[test]
    fn a_move_costs_more_the_larger_the_document_is() {
        let mut under_way = ContentUnderWay::default();
        assert_eq!(under_way.size_factor(Some(1 << 40)), 1.0, "nothing is known of sizes");
        under_way.begin(TargetId(1), B, Some(1000), 0.0);
        assert_eq!([Some(0), Some(1000), None].map(|size| under_way.size_factor(size)), [1.0; 3]);
        assert_eq!([Some(4000), Some(1 << 40)].map(|size| under_way.size_factor(size)), [2.0, 16.0]);
    }

    #[test]
    fn what_a_request_added_goes_with_it() {
        let mut under_way = ContentUnderWay::default();
        under_way.begin(TargetId(1), B, Some(100), 0.25);
        assert_eq!(under_way.at(B, 9), Content { queued: 0.75, read: 0.25 });
        under_way.begin(TargetId(2), B, Some(300), 1.0);
        let both = under_way.at(B, 9);
        assert!((both.queued - 0.75).abs() < 1e-9 && (both.read - 1.75).abs() < 1e-3, "{both:?}");
        assert_eq!(both, under_way.anywhere(9));
        under_way.end(TargetId(2), B);
        assert!((under_way.at(B, 9).read - 0.25).abs() < 1e-9);
        under_way.end(TargetId(2), B);
        under_way.end(TargetId(1), BackendId(7));
        under_way.end(TargetId(1), B);
        assert_eq!((under_way.at(B, 9), under_way.anywhere(9)), (Content::default(), Content::default()));
        assert!(under_way.by_target.is_empty());
    }

    #[test]
    fn of_requests_that_are_no_load_nothing_counts() {
        let mut under_way = ContentUnderWay::default();
        for target in 0..4 {
            under_way.begin(TargetId(target), B, None, 0.5);
        }
        assert_eq!(under_way.at(B, 3), Content { queued: 1.5, read: 1.5 });
        assert_eq!((under_way.at(B, 0), under_way.anywhere(0)), (Content::default(), Content::default()));
    }

    /// The fault that this is about: a request that was no load any more when its back-end left was never heard of again.
    #[test]
    fn who_has_the_index_next_begins_with_nothing() {
        let mut under_way = ContentUnderWay::default();
        under_way.begin(TargetId(1), B, None, 0.0);
        under_way.begin(TargetId(1), BackendId(0), None, 0.0);
        under_way.forget(B);
        under_way.forget(BackendId(7));
        assert_eq!((under_way.at(B, 9), under_way.anywhere(9).queued), (Content::default(), 1.0));
        under_way.end(TargetId(1), B);
        under_way.end(TargetId(1), BackendId(0));
        assert_eq!(under_way.anywhere(9), Content::default());
    }

    #[test]
    fn several_requests_for_a_document_count_each() {
        let mut under_way = ContentUnderWay::default();
        for _ in 0..3 {
            assert_eq!(under_way.begin(TargetId(1), B, Some(10), 0.0), 1.0);
        }
        under_way.end(TargetId(1), B);
        assert!((queued(&under_way) - 2.0).abs() < 1e-9);
    }
}
