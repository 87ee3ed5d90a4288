//! The requests themselves: every target's own sequence of places in the trace, merged in order
//! with memory for the targets and one slot of the trace, not for the requests.

use super::arrivals::ArrivalClock;
use super::random::{Purpose, first_of, stream};
use super::workload::SyntheticWorkload;
use crate::record::{Record, RecordKind};
use crate::times::TimeDraws;
use rand_core::Rng;
use rand_pcg::Pcg64;

/// Requests per slot of the calendar: few enough that a slot's places sort within the first-level
/// cache, many enough that the slots take little memory.
const REQUESTS_PER_SLOT: u64 = 256;

/// No more slots than this (4 MiB): longer traces get fuller slots.
const MOST_SLOTS: u64 = 1 << 20;

/// End of a slot's list of targets.
const NONE: u32 = u32::MAX;

impl SyntheticWorkload {
    /// The requests from the first one on. Each call starts afresh and gives the same sequence.
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        Records::new(self)
    }
}

/// Progress of a target in its own sequence.
#[derive(Debug, Clone, Copy)]
struct TargetProgress {
    place: f64,
    end: f64,
    /// Requests to come in this part, the one at `place` not counted.
    remaining: u64,
    /// Requests to come in the later part of a window that ran over.
    later: u64,
    later_start: f64,
}

/// The requests of a [`SyntheticWorkload`] in order of time; made by [`SyntheticWorkload::records`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    workload: &'a SyntheticWorkload,
    places: Pcg64,
    clock: ArrivalClock<'a>,
    /// For services whose cost is a service time.
    service: Option<TimeDraws<Pcg64>>,
    clients: Pcg64,
    answers: Pcg64,
    progress: Vec<TargetProgress>,
    /// First target whose next request falls in each slot.
    first: Vec<u32>,
    /// Next target of the same slot.
    next: Vec<u32>,
    slot: usize,
    /// This slot's requests, sorted: place within the slot in the high half, target in the low.
    due: Vec<u64>,
    taken: usize,
    left: u64,
}

impl<'a> Records<'a> {
    pub(super) fn new(workload: &'a SyntheticWorkload) -> Self {
        let slots = (workload.len() / REQUESTS_PER_SLOT).clamp(1, MOST_SLOTS) as usize;
        let mut records = Self {
            workload,
            places: stream(workload.seed, Purpose::Places),
            clock: ArrivalClock::new(&workload.arrivals, stream(workload.seed, Purpose::Times)),
            service: workload.service.map(|of| TimeDraws::new(of, stream(workload.seed, Purpose::Service))),
            clients: stream(workload.seed, Purpose::Clients),
            answers: stream(workload.seed, Purpose::Answers),
            progress: Vec::with_capacity(workload.windows.len()),
            first: vec![NONE; slots],
            next: vec![NONE; workload.windows.len()],
            slot: 0,
            due: Vec::new(),
            taken: 0,
            left: workload.len(),
        };
        for (target, (window, &count)) in workload.windows.iter().zip(&workload.counts).enumerate() {
            let later = count - window.early;
            let (place, end, remaining) = (0.0, window.early_end, window.early);
            let later_start = window.start;
            let mut own = TargetProgress { place, end, remaining, later, later_start };
            if own.remaining == 0 {
                own = TargetProgress {
                    place: later_start,
                    end: window.end,
                    remaining: later,
                    later: 0,
                    later_start,
                };
            }
            if own.advance(&mut records.places) {
                let place = records.place_of(target as u32, own.place);
                records.enqueue(target as u32, place);
            }
            records.progress.push(own);
        }
        records
    }

    /// Place in the trace of what lies at `own` among the requests of the target's kind.
    fn place_of(&self, target: u32, own: f64) -> f64 {
        self.workload.drift.as_ref().map_or(own, |drift| drift.place(target, own))
    }

    fn slot_of(&self, place: f64) -> (usize, u64) {
        let slots = self.first.len();
        let scaled = place * slots as f64;
        let slot = (scaled as usize).min(slots - 1);
        let within = ((scaled - slot as f64) * 4_294_967_296.0) as u64;
        (slot, within.min(u64::from(u32::MAX)))
    }

    fn enqueue(&mut self, target: u32, place: f64) {
        let (slot, _) = self.slot_of(place);
        self.next[target as usize] = self.first[slot];
        self.first[slot] = target;
    }

    /// Lays out the requests of the current slot and moves on to the next.
    fn lay_out_slot(&mut self) {
        self.due.clear();
        self.taken = 0;
        let mut target = self.first[self.slot];
        while target != NONE {
            let following = self.next[target as usize];
            let mut own = self.progress[target as usize];
            loop {
                let (slot, within) = self.slot_of(self.place_of(target, own.place));
                if slot > self.slot {
                    self.next[target as usize] = self.first[slot];
                    self.first[slot] = target;
                    break;
                }
                self.due.push((within << 32) | u64::from(target));
                if !own.advance(&mut self.places) {
                    break;
                }
            }
            self.progress[target as usize] = own;
            target = following;
        }
        self.due.sort_unstable();
        self.slot += 1;
    }
}

impl TargetProgress {
    /// Moves to the next request's place: the smallest of the remaining uniform places between
    /// here and the end. False when there is none.
    fn advance(&mut self, rng: &mut Pcg64) -> bool {
        if self.remaining == 0 {
            if self.later == 0 {
                return false;
            }
            (self.place, self.end) = (self.later_start, 1.0);
            (self.remaining, self.later) = (self.later, 0);
        }
        self.place += (self.end - self.place) * first_of(self.remaining, rng);
        self.remaining -= 1;
        true
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        while self.taken == self.due.len() {
            if self.slot == self.first.len() {
                return None;
            }
            self.lay_out_slot();
        }
        // The low half of the word is the target's number.
        let target = self.due[self.taken] as u32;
        self.taken += 1;
        self.left -= 1;
        let client = match self.workload.clients {
            0 => 0,
            count => ((u128::from(self.clients.next_u64()) * u128::from(count)) >> 64) as u32,
        };
        let mut record = Record {
            time_ns: self.clock.next_ns(),
            size_bytes: self.workload.document_size_bytes(target),
            // A service time of zero would stand for none.
            service_ns: self.service.as_mut().map_or(0, |service| service.draw_ns().max(1)),
            target,
            client,
            class: 0,
            kind: RecordKind::Static,
            ..Record::default()
        };
        if let Some(answers) = &self.workload.answers {
            answers.draw(&mut record, &mut self.answers);
        }
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::ActiveWindow;

    #[test]
    fn a_window_over_the_end_divides_its_requests() {
        let window = ActiveWindow::new(0.9, 0.4, 100, 0.5);
        assert!((window.early_end - 0.3).abs() < 1e-12);
        assert_eq!((window.start, window.end, window.early), (0.9, 1.0, 75));
        // One request: it falls over the end when the dither says so, three times in four.
        assert_eq!(ActiveWindow::new(0.9, 0.4, 1, 0.2).early, 0);
        assert_eq!(ActiveWindow::new(0.9, 0.4, 1, 0.3).early, 1);
        assert_eq!(
            ActiveWindow::new(0.1, 0.4, 9, 0.9),
            ActiveWindow { start: 0.1, end: 0.5, ..ActiveWindow::WHOLE }
        );
        assert_eq!(ActiveWindow::new(0.7, 1.0, 9, 0.9), ActiveWindow::WHOLE);
    }

    #[test]
    fn places_of_a_target_are_uniform_order_statistics() {
        let mut rng = stream(4, Purpose::Places);
        let count = 20_000_u64;
        let whole = TargetProgress { place: 0.25, end: 0.75, remaining: count, later: 0, later_start: 0.0 };
        let mut own = whole;
        let mut places = Vec::new();
        while own.advance(&mut rng) {
            places.push(own.place);
        }
        assert_eq!(places.len() as u64, count);
        assert!(places.is_sorted());
        // Kolmogorov–Smirnov against the uniform law; 1.95/√n is the 0.1 % point.
        let worst = places
            .iter()
            .enumerate()
            .map(|(at, place)| ((place - 0.25) / 0.5 - at as f64 / count as f64).abs())
            .fold(0.0, f64::max);
        assert!(worst < 1.95 / (count as f64).sqrt(), "{worst}");
    }
}
