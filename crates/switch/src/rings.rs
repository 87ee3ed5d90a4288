//! Keeps the rings of choices filled.

use std::fs;
use std::time::{Duration, Instant};

use plimsoll_datapath::switch::{ChoiceRings, MOST_CHOICES, PreparedChoice};
use plimsoll_policy::BackendId;

use crate::book::ConnBook;
use crate::distributor::Distributor;

/// A CPU that takes no choice for so long gets one at a time: what waits there counts as load.
const QUIET: Duration = Duration::from_secs(2);
/// Where the system says which CPUs run.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The ring of one CPU.
struct CpuRing {
    cpu: usize,
    /// Choices that were there after the last look.
    left: usize,
    /// When it last took one.
    taken: Option<Instant>,
}

/// The rings, and the numbers of choices.
pub(crate) struct FilledRings {
    rings: ChoiceRings,
    cpus: Vec<CpuRing>,
    depth: usize,
    next_number: u64,
}

impl FilledRings {
    /// Takes the rings over; what an earlier process has put in is taken out. Numbers begin with `first`.
    pub(crate) fn new(mut rings: ChoiceRings, depth: usize, first: u64) -> Self {
        rings.clear(|_| {});
        let online = fs::read_to_string(ONLINE).ok().and_then(|text| cpus_of(text.trim()));
        let all = 0..rings.cpus();
        let running: Vec<usize> = match online {
            Some(online) => online.into_iter().filter(|cpu| all.contains(cpu)).collect(),
            None => all.collect(),
        };
        let cpus = running.into_iter().map(|cpu| CpuRing { cpu, left: 0, taken: None }).collect();
        Self { rings, cpus, depth: depth.clamp(1, MOST_CHOICES), next_number: first.max(1) }
    }

    pub(crate) fn set_depth(&mut self, depth: usize) {
        self.depth = depth.clamp(1, MOST_CHOICES);
    }

    /// Fills the rings, in turn. Returns the lowest share of its depth that a ring had left.
    pub(crate) fn fill<A>(
        &mut self,
        book: &mut ConnBook<A>,
        by: &mut impl Distributor<Assignment = A>,
        taking: impl Fn(BackendId) -> Option<u16>,
        now: Instant,
    ) -> f64 {
        let mut least = 1.0_f64;
        let mut wanted = Vec::with_capacity(self.cpus.len());
        for ring in &mut self.cpus {
            let left = self.rings.len(ring.cpu);
            if left < ring.left {
                ring.taken = Some(now);
            }
            let is_busy = ring.taken.is_some_and(|taken| now.duration_since(taken) < QUIET);
            let depth = if is_busy { self.depth } else { 1 };
            least = least.min(left as f64 / depth as f64);
            ring.left = left;
            wanted.push(depth.saturating_sub(left));
        }
        let most = wanted.iter().copied().max().unwrap_or(0);
        for round in 0..most {
            for (at, _) in wanted.iter().enumerate().filter(|&(_, &count)| count > round) {
                if !self.put(at, book, by, &taking) {
                    return least;
                }
            }
        }
        least
    }

    /// False when there is no choice.
    fn put<A>(
        &mut self,
        at: usize,
        book: &mut ConnBook<A>,
        by: &mut impl Distributor<Assignment = A>,
        taking: &impl Fn(BackendId) -> Option<u16>,
    ) -> bool {
        let Some(assignment) = by.prepare() else { return false };
        let Some(index) = taking(by.backend(&assignment)) else {
            // Who decides has not heard of it yet.
            by.withdraw(assignment);
            return false;
        };
        let number = self.next_number;
        self.next_number += 1;
        let ring = &mut self.cpus[at];
        if !self.rings.put(ring.cpu, PreparedChoice { number, backend: index }) {
            by.withdraw(assignment);
            return false;
        }
        ring.left += 1;
        book.prepare(number, assignment);
        true
    }

    /// Withdraws all choices that no packet has taken.
    pub(crate) fn withdraw<A>(&mut self, book: &mut ConnBook<A>, by: &mut impl Distributor<Assignment = A>) {
        self.rings.withdraw(|_| true, |choice| book.withdraw(choice.number, by));
        for ring in &mut self.cpus {
            ring.left = 0;
        }
    }

    /// The numbers of the choices that wait in the rings.
    pub(crate) fn waiting(&self) -> Vec<u64> {
        self.rings.numbers()
    }
}

/// The CPUs of a list such as `0-3,8`.
fn cpus_of(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::cpus_of;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpus_of("0"), Some(vec![0]));
        assert_eq!(cpus_of("0-2,5,7-8"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!((cpus_of(""), cpus_of("0-"), cpus_of("a")), (None, None, None));
    }
}
