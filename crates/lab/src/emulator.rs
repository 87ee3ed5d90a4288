//! One direction of a link, without input or output: frames and the time go in, and frames come out when they are due.

pub(crate) mod chance;
mod delay_source;
mod loss_source;
mod tally;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::conditions::Conditions;
use crate::link_statistics::DirectionStatistics;
use chance::Chance;
use delay_source::DelaySource;
use loss_source::LossSource;
use tally::DirectionTally;

/// Streams of chance, one for each question: what a frame's delay is does not depend on whether frames are reordered.
const LOSS: u64 = 0;
const DELAY: u64 = 1;
const REORDER: u64 = 2;
const DUPLICATE: u64 = 3;

/// Holds the frames of one direction until they are due, by its conditions. Times are in nanoseconds from any beginning.
#[derive(Debug)]
pub(crate) struct Emulator {
    conditions: Conditions,
    losses: LossSource,
    delays: DelaySource,
    reorder: Chance,
    duplicate: Chance,
    held: BinaryHeap<HeldFrame>,
    held_bytes: usize,
    /// When the last of the frames that wait for one another is due.
    last_due_ns: u64,
    /// Number of the next frame that comes.
    next_number: u64,
    /// One more than the highest number that has left.
    left: u64,
    tally: DirectionTally,
}

/// A frame that waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HeldFrame {
    pub(crate) due_ns: u64,
    /// Frames are numbered as they come.
    number: u64,
    came_ns: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Ord for HeldFrame {
    /// The greatest is due first; of several, the one that came first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due_ns, other.number).cmp(&(self.due_ns, self.number))
    }
}

impl PartialOrd for HeldFrame {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Emulator {
    /// An emulator of these conditions, which somebody has checked.
    pub(crate) fn new(conditions: &Conditions, seed: u64) -> Self {
        Self {
            conditions: *conditions,
            losses: LossSource::new(conditions.loss, conditions.loss_burst, Chance::new(seed, LOSS)),
            delays: DelaySource::new(conditions.delay, Chance::new(seed, DELAY)),
            reorder: Chance::new(seed, REORDER),
            duplicate: Chance::new(seed, DUPLICATE),
            held: BinaryHeap::new(),
            held_bytes: 0,
            last_due_ns: 0,
            next_number: 0,
            left: 0,
            tally: DirectionTally::new(),
        }
    }

    /// Changes the conditions for frames that come from now on. Those that are held leave when they were due.
    pub(crate) fn set(&mut self, conditions: &Conditions) {
        self.conditions = *conditions;
        self.losses.set(conditions.loss, conditions.loss_burst);
        self.delays.set(conditions.delay);
    }

    /// A frame comes.
    pub(crate) fn come(&mut self, now_ns: u64, frame: &[u8]) {
        let number = self.next_number;
        self.next_number += 1;
        self.tally.counts.frames += 1;
        self.tally.counts.bytes += frame.len() as u64;
        if self.losses.loses_next() {
            self.tally.counts.lost += 1;
            return;
        }
        let due_ns = self.due_ns(now_ns);
        self.hold(due_ns, number, now_ns, frame);
        if self.duplicate.falls(self.conditions.duplicate) {
            self.tally.counts.duplicated += 1;
            self.hold(due_ns, number, now_ns, frame);
        }
    }

    /// When a frame is due that comes now.
    fn due_ns(&mut self, now_ns: u64) -> u64 {
        let delayed_ns = now_ns.saturating_add(self.delays.draw_ns());
        let is_early = self.reorder.falls(self.conditions.reorder);
        let is_late = self.reorder.falls(self.conditions.late);
        if is_early {
            return now_ns;
        }
        let in_turn_ns =
            if self.conditions.independent { delayed_ns } else { delayed_ns.max(self.last_due_ns) };
        if is_late {
            // At most a minute.
            return in_turn_ns.saturating_add(self.conditions.late_by.as_nanos() as u64);
        }
        self.last_due_ns = self.last_due_ns.max(in_turn_ns);
        in_turn_ns
    }

    fn hold(&mut self, due_ns: u64, number: u64, came_ns: u64, frame: &[u8]) {
        let bytes_after = self.held_bytes + frame.len();
        if self.held.len() >= self.conditions.most_held_frames
            || bytes_after > self.conditions.most_held_bytes
        {
            self.tally.counts.overflowed += 1;
            return;
        }
        self.held_bytes = bytes_after;
        self.held.push(HeldFrame { due_ns, number, came_ns, bytes: frame.to_vec() });
    }

    /// When the next frame is due; `None` if none is held.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.held.peek().map(|held| held.due_ns)
    }

    /// The next frame, if it is due. Then [`Emulator::left`] or [`Emulator::refused`] says what became of it.
    pub(crate) fn leave(&mut self, now_ns: u64) -> Option<HeldFrame> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        let held = self.held.pop()?;
        self.held_bytes -= held.bytes.len();
        Some(held)
    }

    /// The frame has left, then.
    pub(crate) fn left(&mut self, frame: &HeldFrame, at_ns: u64) {
        if frame.number + 1 < self.left {
            self.tally.counts.reordered += 1;
        }
        self.left = self.left.max(frame.number + 1);
        self.tally.leaves(at_ns.saturating_sub(frame.came_ns), at_ns.saturating_sub(frame.due_ns));
    }

    /// The frame could not leave.
    pub(crate) fn refused(&mut self) {
        self.tally.counts.undeliverable += 1;
    }

    pub(crate) fn statistics(&self) -> DirectionStatistics {
        self.tally.statistics(self.held.len(), self.held_bytes)
    }
}
