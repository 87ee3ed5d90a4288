//! The reads of documents that back-ends are believed to have under way.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::cluster::BackendId;
use crate::min_blocks::MinBlocks;
use crate::request::TargetId;
use crate::time::Time;

/// One read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Read {
    /// When the request was assigned that it is for.
    pub(crate) at: Time,
    /// That request's position among those that wait for no read, from 1.
    pub(crate) queue_position: f64,
    /// The read's position among those of the back-end, from 1.
    pub(crate) position: f64,
    /// How many reads that are, itself included, and the content of those before it in documents of the mean size.
    pub(crate) reads: f64,
    pub(crate) content: f64,
    /// Its own document is small, as far as is known; the response may tell.
    pub(crate) is_small: bool,
    /// How likely it is that there is one: below 1 for a document that the back-end may still have.
    pub(crate) likelihood: f64,
    /// Other requests that wait for it.
    pub(crate) joined: u32,
}

/// Those of a back-end.
#[derive(Debug, Clone, Copy, Default)]
struct OfBackend {
    entries: u32,
    /// How many are to be expected.
    expected: f64,
    /// Requests that wait for another one's.
    joined: u32,
}

/// See the module's documentation. As every assignment ends, its size is bounded by the requests under way.
#[derive(Default)]
pub(crate) struct ReadsUnderWay {
    /// Looked up only, never iterated.
    reads: HashMap<(TargetId, BackendId), Read, FixedState>,
    by_backend: Vec<OfBackend>,
    /// For each back-end, `u32::MAX` less the requests that wait there, rounded up.
    spare: MinBlocks,
    /// How many are to be expected, and requests that wait for another one's.
    expected: f64,
    joined: u64,
}

impl ReadsUnderWay {
    /// How many `b` is expected to have, and how many requests are expected to wait for these.
    #[inline]
    pub(crate) fn at(&self, b: BackendId) -> (f64, f64) {
        self.by_backend
            .get(b.index())
            .map_or((0.0, 0.0), |of| (of.expected, of.expected + f64::from(of.joined)))
    }

    /// How many are to be expected anywhere.
    pub(crate) fn expected(&self) -> f64 {
        self.expected
    }

    /// Requests that are expected to wait for one anywhere.
    pub(crate) fn waiting(&self) -> f64 {
        self.expected + self.joined as f64
    }

    /// A bound on the requests that are expected to wait for one at any single back-end.
    #[inline]
    pub(crate) fn most_waiting(&self) -> f64 {
        f64::from(u32::MAX - self.spare.least())
    }

    fn update_spare(&mut self, b: BackendId) {
        let waiting = self.at(b).1.ceil() as u32;
        self.spare.set(b.index(), u32::MAX - waiting);
    }

    /// Another request for `target` waits for the one at `b`, if there is one.
    pub(crate) fn join(&mut self, target: TargetId, b: BackendId) {
        if let Some(read) = self.reads.get_mut(&(target, b)) {
            read.joined += 1;
            self.by_backend[b.index()].joined += 1;
            self.joined += 1;
            self.update_spare(b);
        }
    }

    /// The one of `target` at `b`.
    pub(crate) fn get(&self, target: TargetId, b: BackendId) -> Option<&Read> {
        self.reads.get(&(target, b))
    }

    /// `b` begins to read `target`, unless it is reading it.
    pub(crate) fn begin(&mut self, target: TargetId, b: BackendId, read: Read) {
        if self.by_backend.len() <= b.index() {
            self.by_backend.resize(b.index() + 1, OfBackend::default());
            self.spare = MinBlocks::new(&vec![u32::MAX; b.index() + 1]);
            (0..b.index()).map(BackendId::new).for_each(|b| self.update_spare(b));
        }
        if let Entry::Vacant(vacant) = self.reads.entry((target, b)) {
            vacant.insert(read);
            let of = &mut self.by_backend[b.index()];
            of.entries += 1;
            of.expected += read.likelihood;
            self.expected += read.likelihood;
            self.update_spare(b);
        }
    }

    /// Another back-end has the index of `b` from now on: of reads that are still under way at the one before it nobody hears.
    pub(crate) fn forget(&mut self, b: BackendId) {
        let Some(of) = self.by_backend.get_mut(b.index()).map(std::mem::take) else { return };
        self.reads.retain(|&(_, at), _| at != b);
        self.expected = if self.reads.is_empty() { 0.0 } else { self.expected - of.expected };
        self.joined -= u64::from(of.joined);
        self.update_spare(b);
    }

    /// A request for `target` that was assigned at `began` has ended at `b`: the read that was for it, if any.
    pub(crate) fn end(&mut self, target: TargetId, b: BackendId, began: Time) -> Option<Read> {
        if self.by_backend.get(b.index()).is_none_or(|of| of.entries == 0) {
            return None;
        }
        let Entry::Occupied(entry) = self.reads.entry((target, b)) else { return None };
        if entry.get().at != began {
            return None;
        }
        let read = entry.remove();
        let of = &mut self.by_backend[b.index()];
        of.entries -= 1;
        self.expected -= read.likelihood;
        of.expected -= read.likelihood;
        of.joined -= read.joined;
        self.joined -= u64::from(read.joined);
        // What rounding has left of sums ends with the last one.
        if of.entries == 0 {
            of.expected = 0.0;
        }
        if self.reads.is_empty() {
            self.expected = 0.0;
        }
        self.update_spare(b);
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_index_next_reads_nothing() {
        let mut reads = ReadsUnderWay::default();
        let (target, b, at) = (TargetId(7), BackendId(2), Time::from_nanos(5));
        reads.begin(target, b, read_at(at));
        reads.join(target, b);
        reads.forget(b);
        reads.forget(BackendId(9));
        assert_eq!((reads.at(b), reads.waiting(), reads.get(target, b)), ((0.0, 0.0), 0.0, None));
        assert_eq!((reads.end(target, b, at), reads.most_waiting()), (None, 0.0));
    }

    fn read_at(at: Time) -> Read {
        Read {
            at,
            queue_position: 1.0,
            position: 1.0,
            reads: 1.0,
            content: 0.0,
            is_small: true,
            likelihood: 0.5,
            joined: 0,
        }
    }

    #[test]
    fn a_read_ends_with_the_request_that_it_is_for() {
        let mut reads = ReadsUnderWay::default();
        let (target, b, at) = (TargetId(7), BackendId(2), Time::from_nanos(5));
        let read = read_at(at);
        reads.begin(target, b, read);
        reads.begin(target, b, Read { at: Time::from_nanos(6), ..read });
        assert_eq!((reads.at(b), reads.waiting(), reads.get(target, b)), ((0.5, 0.5), 0.5, Some(&read)));
        reads.join(target, b);
        reads.join(TargetId(8), b);
        assert_eq!((reads.at(b), reads.waiting(), reads.expected()), ((0.5, 1.5), 1.5, 0.5));
        assert_eq!(reads.end(target, b, Time::from_nanos(6)), None, "one that joined it");
        assert_eq!(reads.end(target, BackendId(9), at), None);
        assert_eq!(reads.end(target, b, at), Some(Read { joined: 1, ..read }));
        assert_eq!((reads.at(b), reads.waiting(), reads.get(target, b)), ((0.0, 0.0), 0.0, None));
    }
}
