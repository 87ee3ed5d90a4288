//! The work that one back-end has ahead: its two boards, and what it has read.

use super::aggregate::BoardTotals;
use super::cost_board::CostBoard;
use super::cost_table::CostTable;
use super::read_history::ReadHistory;
use super::references::Reference;
use super::setup::{EstimatorSetup, LATEST, MissPredictor};
use super::transmission::SlowStart;
use crate::time::{Nanos, Time};

/// Spans of the table of bytes read: six hours of seconds.
const HISTORY_ENTRIES: usize = 6 * 3600;
const HISTORY_SPAN: Nanos = Nanos::from_secs(1);

/// See the module's documentation.
pub(super) struct WorkAhead {
    cpu: CostBoard,
    disk: CostBoard,
    /// `T_C` and `T_D`: when CPU and disk will have done what they have now. Beyond the board's end, too.
    cpu_done: Time,
    disk_done: Time,
    history: ReadHistory,
    /// Averages over recent periods, and counts of the one under way.
    statics: f64,
    misses: f64,
    now: (u64, u64),
}

impl WorkAhead {
    pub(super) fn new(setup: &EstimatorSetup) -> Self {
        let board = CostBoard::new(setup.slots, setup.slot);
        let history_entries = match setup.predictor {
            MissPredictor::History => HISTORY_ENTRIES,
            MissPredictor::Stamp | MissPredictor::AlwaysHit => 1,
        };
        Self {
            cpu: board.clone(),
            disk: board,
            cpu_done: Time::ZERO,
            disk_done: Time::ZERO,
            history: ReadHistory::new(history_entries, HISTORY_SPAN),
            statics: 0.0,
            misses: 0.0,
            now: (0, 0),
        }
    }

    /// The CPU has `cost` more to do, from `now` on.
    #[inline]
    pub(super) fn compute(&mut self, now: Time, cost: Nanos) {
        self.cpu_done = self.cpu_done.max(now);
        self.cpu.add(self.cpu_done, cost);
        self.cpu_done += cost;
        self.disk_done = self.disk_done.max(self.cpu_done);
    }

    /// The disk has `cost` more to do, after the CPU.
    #[inline]
    pub(super) fn read(&mut self, cost: Nanos) {
        if !cost.is_zero() {
            self.disk.add(self.disk_done, cost);
            self.disk_done += cost;
        }
    }

    /// A document is asked for. Returns the disk time if it is expected not to be in memory.
    pub(super) fn ask_for(
        &mut self,
        size_bytes: u64,
        reference: Reference<'_>,
        setup: &EstimatorSetup,
    ) -> Option<Nanos> {
        let miss = self.misses(reference.get(), setup);
        self.now.0 += 1;
        let mut disk = None;
        if miss {
            self.now.1 += 1;
            let cost = setup.costs.reading(size_bytes);
            self.read(cost);
            self.history.read(self.disk_done, size_bytes);
            disk = Some(cost);
        }
        let used = if miss { self.disk_done } else { self.cpu_done };
        reference.set(match setup.predictor {
            MissPredictor::Stamp => self.history.total(),
            MissPredictor::History | MissPredictor::AlwaysHit => used.as_nanos(),
        });
        disk
    }

    fn misses(&self, reference: Option<u64>, setup: &EstimatorSetup) -> bool {
        let read_since = match (setup.predictor, reference) {
            (MissPredictor::AlwaysHit, _) => return false,
            (_, None) => return true,
            (MissPredictor::History, Some(at)) => self.history.since(Time::from_nanos(at)),
            (MissPredictor::Stamp, Some(read)) => self.history.total().saturating_sub(read),
        };
        read_since > setup.cache_bytes
    }

    /// The CPU sends the parts of a response. Parts after the first come when the client has acknowledged, and do not keep the CPU busy
    /// until then.
    pub(super) fn send(&mut self, parts: SlowStart, costs: &CostTable) {
        let begins = self.cpu_done;
        for (after, bytes) in parts {
            let cost = costs.sending(bytes);
            self.cpu.add(begins + after, cost);
            if after.is_zero() {
                self.cpu_done += cost;
            }
        }
    }

    /// What is on the boards from `now` on, with periods of so many slots.
    pub(super) fn totals(&self, now: Time, per_period: u64) -> BoardTotals {
        let of = |board: &CostBoard| {
            let next = board.total(now, per_period).as_secs_f64();
            let two = board.total(now, 2 * per_period).as_secs_f64();
            [next, two - next, board.total_from(now).as_secs_f64()]
        };
        let miss_ratio = if self.statics > 0.0 { self.misses / self.statics } else { 0.0 };
        BoardTotals { cpu_s: of(&self.cpu), disk_s: of(&self.disk), miss_ratio }
    }

    /// The period from `began` ends at `now`.
    pub(super) fn end_period(&mut self, began: Time, now: Time, per_period: u64, clear_past: bool) {
        for board in [&mut self.cpu, &mut self.disk] {
            if clear_past {
                board.clear(began, now);
            }
            board.advance(now);
            board.clear_next(per_period);
        }
        let (statics, misses) = std::mem::take(&mut self.now);
        self.statics += LATEST * (statics as f64 - self.statics);
        self.misses += LATEST * (misses as f64 - self.misses);
    }

    /// CPU and disk time from `now` until all is done.
    pub(super) fn until_done(&self, now: Time) -> (Nanos, Nanos) {
        (self.cpu_done.since(now), self.disk_done.since(now))
    }
}
