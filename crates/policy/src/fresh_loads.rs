//! Loads that back-ends told a moment ago. Where many requests come at once, asking again for each of them costs as much as the
//! rest of a request, and tells what is known: the view follows this front-end's own requests by itself.

use crate::cluster::BackendId;
use crate::decision::Candidates;
use crate::time::{Nanos, Time};

/// When each back-end was heard of last, for a runtime that does not ask for what it knows.
#[derive(Debug, Clone)]
pub struct FreshLoads {
    /// A load that was told longer ago is asked for again; zero asks always.
    max_age: Nanos,
    told: Vec<Option<Time>>,
}

impl FreshLoads {
    /// Of which loads count as known that were told less than `max_age` ago; zero for none.
    #[must_use]
    pub const fn new(max_age: Nanos) -> Self {
        Self { max_age, told: Vec::new() }
    }

    /// `b` has answered.
    pub fn tell(&mut self, b: BackendId, now: Time) {
        if self.told.len() <= b.index() {
            self.told.resize(b.index() + 1, None);
        }
        self.told[b.index()] = Some(now);
    }

    /// What was known of `b` counts no more.
    pub fn forget(&mut self, b: BackendId) {
        if let Some(told) = self.told.get_mut(b.index()) {
            *told = None;
        }
    }

    /// Those of `candidates` whose load is known, and those that are to be asked.
    #[must_use]
    pub fn split(&self, candidates: Candidates, now: Time) -> (Candidates, Candidates) {
        let (mut known, mut old) = (Candidates::NONE, Candidates::NONE);
        for &b in candidates.as_slice() {
            let told = self.told.get(b.index()).copied().flatten();
            let list =
                if told.is_some_and(|told| now.since(told) < self.max_age) { &mut known } else { &mut old };
            list.push(b);
        }
        (known, old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BackendId = BackendId(0);
    const B: BackendId = BackendId(1);

    fn us(us: u64) -> Time {
        Time::ZERO + Nanos::from_micros(us)
    }

    fn old(loads: &FreshLoads, at_us: u64) -> Vec<BackendId> {
        let (known, old) = loads.split(Candidates::new([A, B]), us(at_us));
        assert_eq!(known.as_slice().len() + old.as_slice().len(), 2);
        old.as_slice().to_vec()
    }

    #[test]
    fn a_load_is_known_until_it_is_old_or_its_back_end_another() {
        let mut loads = FreshLoads::new(Nanos::from_micros(250));
        assert_eq!(old(&loads, 0), [A, B]);
        loads.tell(B, us(100));
        assert_eq!(old(&loads, 349), [A]);
        assert_eq!(old(&loads, 350), [A, B]);
        loads.tell(A, us(400));
        loads.tell(B, us(400));
        assert_eq!(old(&loads, 400), []);
        loads.forget(A);
        assert_eq!(old(&loads, 401), [A]);
    }

    #[test]
    fn without_an_age_everybody_is_asked_for_each_request() {
        let mut loads = FreshLoads::new(Nanos::ZERO);
        loads.tell(A, us(5));
        assert_eq!(old(&loads, 5), [A, B]);
    }
}
