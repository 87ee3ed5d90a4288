//! The disk of a back-end, first come first served, and the processes that wait for it. As in Linux's page cache, who needs a document
//! that is being read, or will be, waits for that read.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_policy::{Nanos, Time};

use crate::model::Busy;

#[derive(Debug, Default)]
struct PageRead {
    target: u32,
    takes: Nanos,
    waiters: Vec<u16>,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct PageDisk {
    reads: Vec<PageRead>,
    free: Vec<u32>,
    /// The first is being read.
    order: VecDeque<u32>,
    /// Looked up only, never iterated.
    by_target: HashMap<u32, u32, FixedState>,
    busy: Busy,
    pub(super) read_count: u64,
    pub(super) joined_count: u64,
}

impl PageDisk {
    /// Process `p` waits for `target`, which takes this long to read. Returns when the read ends, if it begins now.
    pub(super) fn wait(&mut self, p: u16, target: u32, takes: Nanos, now: Time) -> Option<Time> {
        if let Some(&slot) = self.by_target.get(&target) {
            self.reads[slot as usize].waiters.push(p);
            self.joined_count += 1;
            return None;
        }
        self.read_count += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.reads.push(PageRead::default());
            (self.reads.len() - 1) as u32
        });
        let read = &mut self.reads[slot as usize];
        (read.target, read.takes) = (target, takes);
        read.waiters.push(p);
        self.by_target.insert(target, slot);
        self.order.push_back(slot);
        (self.order.len() == 1).then(|| self.begin(now)).flatten()
    }

    fn begin(&mut self, now: Time) -> Option<Time> {
        let &slot = self.order.front()?;
        self.busy.begin(now, self.reads[slot as usize].takes);
        Some(self.busy.ends())
    }

    /// The read under way has ended at `now`: its document, who waited for it (put into `woken`), and when the next read ends.
    pub(super) fn ended(&mut self, now: Time, woken: &mut Vec<u16>) -> Option<(u32, Option<Time>)> {
        let slot = self.order.pop_front()?;
        let read = &mut self.reads[slot as usize];
        let target = read.target;
        woken.append(&mut read.waiters);
        self.by_target.remove(&target);
        self.free.push(slot);
        Some((target, self.begin(now)))
    }

    /// Time busy up to `now`.
    pub(super) fn used(&self, now: Time) -> Nanos {
        self.busy.until(now)
    }

    /// Starts the counts again.
    pub(super) fn restart_usage(&mut self, now: Time) {
        self.busy.restart(now);
        (self.read_count, self.joined_count) = (0, 0);
    }

    /// Forgets all reads.
    pub(super) fn stop(&mut self, now: Time) {
        self.busy.stop(now);
        *self = Self {
            busy: self.busy,
            read_count: self.read_count,
            joined_count: self.joined_count,
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_follow_one_another_and_are_shared() {
        let at = |ms| Time::ZERO + Nanos::from_millis(ms);
        let mut disk = PageDisk::default();
        let takes = Nanos::from_millis(10);
        assert_eq!(disk.wait(1, 7, takes, at(0)), Some(at(10)));
        assert_eq!(disk.wait(2, 8, takes, at(1)), None);
        assert_eq!(disk.wait(3, 7, takes, at(2)), None);
        let mut woken = Vec::new();
        assert_eq!(disk.ended(at(10), &mut woken), Some((7, Some(at(20)))));
        assert_eq!(woken, [1, 3]);
        woken.clear();
        assert_eq!(disk.ended(at(20), &mut woken), Some((8, None)));
        assert_eq!((woken, disk.read_count, disk.joined_count), (vec![2], 2, 1));
        assert_eq!(disk.used(at(30)), Nanos::from_millis(20));
    }
}
