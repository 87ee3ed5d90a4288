//! Sorting by time within a bounded window.

use std::collections::VecDeque;

use crate::line_error::LineError;
use crate::time::NS_PER_S;
use plimsoll_synth::Record;

/// The most buckets in the window.
const BUCKETS: u64 = 600;

/// Emptied buckets with a larger capacity than this free their memory.
const KEPT_RECORDS: usize = 1 << 16;

/// Holds records back until no earlier one can come.
///
/// Records wait in buckets of equal width (a second for the usual window of ten minutes). A bucket older than
/// the newest stamp by more than the window is sorted, stably, and released; so is the oldest one when too
/// many records wait. Older records that come later are refused.
#[derive(Debug)]
pub(crate) struct Reorder {
    window_s: u64,
    width_ns: u64,
    /// How many buckets lie behind the newest.
    behind: u64,
    max_waiting: usize,
    /// Number of the first bucket, counted in widths from time 0.
    first: u64,
    buckets: VecDeque<Vec<Record>>,
    spare: Vec<Vec<Record>>,
    waiting: usize,
    newest_ns: u64,
    /// Time of the last record released from a bucket that still waits.
    released_ns: u64,
    ready: VecDeque<Record>,
}

impl Reorder {
    pub(crate) fn new(window_s: u64, max_waiting: usize) -> Self {
        let width_ns = window_s.div_ceil(BUCKETS).max(1).saturating_mul(NS_PER_S);
        Self {
            window_s,
            width_ns,
            behind: window_s.saturating_mul(NS_PER_S).div_ceil(width_ns),
            max_waiting: max_waiting.max(1),
            first: 0,
            buckets: VecDeque::new(),
            spare: Vec::new(),
            waiting: 0,
            newest_ns: 0,
            released_ns: 0,
            ready: VecDeque::new(),
        }
    }

    /// Whether a record of that time can still be sorted in.
    #[inline]
    pub(crate) fn admits(&self, time_ns: u64) -> Result<(), LineError> {
        if time_ns >= self.newest_ns || (time_ns / self.width_ns >= self.first && time_ns >= self.released_ns)
        {
            Ok(())
        } else {
            Err(LineError::Backwards { by_ns: self.newest_ns - time_ns, window_s: self.window_s })
        }
    }

    /// Adds an admitted record.
    #[inline]
    pub(crate) fn push(&mut self, record: Record) {
        let number = record.time_ns / self.width_ns;
        if number >= self.first + self.buckets.len() as u64 {
            self.advance(number);
        }
        self.newest_ns = self.newest_ns.max(record.time_ns);
        self.buckets[(number - self.first) as usize].push(record);
        self.waiting += 1;
        if self.waiting > self.max_waiting {
            self.shed();
        }
    }

    /// Makes `number` the newest bucket.
    #[cold]
    fn advance(&mut self, number: u64) {
        let first = number.saturating_sub(self.behind);
        while self.first < first && !self.buckets.is_empty() {
            self.release_first();
        }
        if self.buckets.is_empty() {
            self.first = self.first.max(first);
        }
        while self.first + self.buckets.len() as u64 <= number {
            self.buckets.push_back(self.spare.pop().unwrap_or_default());
        }
    }

    fn release_first(&mut self) {
        let Some(mut bucket) = self.buckets.pop_front() else {
            return;
        };
        self.first += 1;
        sort(&mut bucket);
        self.waiting -= bucket.len();
        self.ready.extend(bucket.drain(..));
        if bucket.capacity() <= KEPT_RECORDS {
            self.spare.push(bucket);
        }
    }

    /// Releases the oldest records because too many wait.
    #[cold]
    fn shed(&mut self) {
        while self.waiting > self.max_waiting && self.buckets.len() > 1 {
            self.release_first();
        }
        if self.waiting > self.max_waiting {
            let bucket = &mut self.buckets[0];
            sort(bucket);
            let count = bucket.len().div_ceil(2);
            self.released_ns = bucket[count - 1].time_ns;
            self.waiting -= count;
            self.ready.extend(bucket.drain(..count));
        }
    }

    /// Releases everything at the end of the input.
    pub(crate) fn finish(&mut self) {
        while !self.buckets.is_empty() {
            self.release_first();
        }
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Record> {
        self.ready.pop_front()
    }
}

fn sort(bucket: &mut [Record]) {
    if !bucket.is_sorted_by_key(|record| record.time_ns) {
        bucket.sort_by_key(|record| record.time_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time_ns: u64, target: u32) -> Record {
        Record {
            time_ns,
            size_bytes: 0,
            service_ns: 0,
            target,
            client: 0,
            class: 0,
            kind: crate::RecordKind::Static,
            ..Record::default()
        }
    }

    /// Feeds times and returns what comes out and how many were refused.
    fn run(window_s: u64, max_waiting: usize, times: &[u64]) -> (Vec<(u64, u32)>, usize) {
        let mut order = Reorder::new(window_s, max_waiting);
        let mut out = Vec::new();
        let mut refused = 0;
        for (index, &time) in times.iter().enumerate() {
            if order.admits(time).is_err() {
                refused += 1;
                continue;
            }
            order.push(record(time, index as u32));
            while let Some(r) = order.pop() {
                out.push((r.time_ns, r.target));
            }
            assert!(order.waiting <= max_waiting);
        }
        order.finish();
        while let Some(r) = order.pop() {
            out.push((r.time_ns, r.target));
        }
        (out, refused)
    }

    #[test]
    fn sorts_within_the_window_and_keeps_equal_times_in_order() {
        let s = NS_PER_S;
        let (out, refused) = run(10, 100, &[5 * s, 3 * s, 5 * s, 3 * s + 1, 3 * s]);
        assert_eq!(refused, 0);
        assert_eq!(out, [(3 * s, 1), (3 * s, 4), (3 * s + 1, 3), (5 * s, 0), (5 * s, 2)]);
    }

    #[test]
    fn refuses_what_lies_before_the_window() {
        let s = NS_PER_S;
        let (out, refused) = run(10, 100, &[100 * s, 90 * s, 89 * s + 999_999_999, 100 * s]);
        assert_eq!(refused, 1);
        assert_eq!(out, [(90 * s, 1), (100 * s, 0), (100 * s, 3)]);
        let reason = Reorder::new(10, 5).admits(0);
        assert!(reason.is_ok());
    }

    #[test]
    fn a_leap_far_ahead_costs_no_memory() {
        let mut order = Reorder::new(600, 100);
        order.push(record(0, 0));
        order.push(record(u64::MAX, 1));
        assert!(order.buckets.len() <= 602);
        assert_eq!(order.pop().map(|r| r.target), Some(0));
        assert!(order.admits(5).is_err());
    }

    #[test]
    fn too_many_waiting_records_are_let_go_in_order() {
        let times: Vec<u64> = (0..1000).map(|i| 7 * NS_PER_S + (i ^ 3)).collect();
        let (out, refused) = run(600, 16, &times);
        assert_eq!(refused, 0);
        assert_eq!(out.len(), 1000);
        assert!(out.is_sorted());
        let same: Vec<u64> = vec![9 * NS_PER_S; 500];
        let (out, refused) = run(600, 16, &same);
        assert_eq!((out.len(), refused), (500, 0));
        assert!(out.is_sorted());
    }

    proptest::proptest! {
        #[test]
        fn output_is_always_sorted_and_complete(
            times in proptest::collection::vec(0u64..40_000_000_000, 0..400),
            window_s in 0u64..50,
            max_waiting in 1usize..50,
        ) {
            let (out, refused) = run(window_s, max_waiting, &times);
            proptest::prop_assert_eq!(out.len() + refused, times.len());
            proptest::prop_assert!(out.is_sorted_by_key(|r| r.0));
        }
    }
}
