//! Who may be told the boot id and the clock: whoever asks with another boot id, within bounds.
//!
//! An inquiry with another boot id has no time that could be checked, so one that was recorded can be sent again. Were only the
//! renewals to a source counted, it would use up those of the machine that it pretends to come from, which could not learn this
//! agent. So each inquiry gets one renewal, and each instance has a rate of its own, both in a table of fixed size.

use std::net::IpAddr;

use super::counts::LoadRefusal;
use crate::source_rates::SourceRates;

/// Instances that share one of these share its rate, and forget one another's numbers.
const SLOTS: usize = 4096;
/// One instance gets this part of the renewals of its source.
const SHARE: u32 = 10;

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    client: u64,
    /// The highest number that was answered.
    renewed: u64,
    /// When its bucket would be empty.
    empty_at_ns: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Renewals {
    sources: SourceRates,
    slots: Box<[Slot]>,
    interval_ns: u64,
    tolerance_ns: u64,
    seed: u64,
}

impl Renewals {
    /// So many in a second to one source. `seed` is a secret.
    pub(super) fn new(per_source_s: u32, seed: u64) -> Self {
        let per_instance_s = per_source_s.div_ceil(SHARE).max(1);
        let interval_ns = 1_000_000_000 / u64::from(per_instance_s);
        Self {
            sources: SourceRates::new(per_source_s, per_source_s.div_ceil(SHARE), seed),
            slots: vec![Slot::default(); SLOTS].into(),
            interval_ns,
            tolerance_ns: interval_ns * u64::from(per_instance_s.div_ceil(SHARE) - 1),
            seed,
        }
    }

    /// Whether this instance gets a renewal now. `number` is that of its inquiry, where each has another one.
    pub(super) fn admit(
        &mut self,
        source: IpAddr,
        client: u64,
        number: Option<u64>,
        now_ns: u64,
    ) -> Result<(), LoadRefusal> {
        let slot = &mut self.slots[place(source, client, self.seed)];
        if slot.client == client && number.is_some_and(|number| number <= slot.renewed) {
            return Err(LoadRefusal::Replayed);
        }
        let empty_at_ns = slot.empty_at_ns.max(now_ns);
        if empty_at_ns - now_ns > self.tolerance_ns || !self.sources.admits(source, now_ns) {
            return Err(LoadRefusal::Limited);
        }
        *slot = Slot {
            client,
            renewed: number.unwrap_or(0),
            empty_at_ns: empty_at_ns.saturating_add(self.interval_ns),
        };
        Ok(())
    }
}

/// Where an instance at this source belongs.
fn place(source: IpAddr, client: u64, seed: u64) -> usize {
    let (high, low) = match source.to_canonical() {
        IpAddr::V4(v4) => (0, u64::from(v4.to_bits())),
        IpAddr::V6(v6) => ((v6.to_bits() >> 64) as u64, v6.to_bits() as u64),
    };
    let mixed = [high, low, client].into_iter().fold(seed, |mixed, part| {
        let mixed = (mixed ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 32).wrapping_mul(seed | 1)
    });
    (mixed >> 52) as usize & (SLOTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn an_inquiry_that_is_sent_again_uses_up_nothing() {
        let source: IpAddr = "10.0.0.1".parse().unwrap();
        let mut renewals = Renewals::new(1000, 7);
        assert_eq!(renewals.admit(source, 5, Some(9), 0), Ok(()));
        for at_ns in (0..SECOND).step_by(1000) {
            assert_eq!(renewals.admit(source, 5, Some(9), at_ns), Err(LoadRefusal::Replayed));
        }
        assert_eq!(renewals.admit(source, 6, Some(1), SECOND), Ok(()), "another instance of the source");
        assert_eq!(renewals.admit(source, 5, Some(10), SECOND), Ok(()), "and this one");
    }

    #[test]
    fn one_instance_leaves_the_others_theirs_and_all_are_bounded() {
        let source: IpAddr = "10.0.0.1".parse().unwrap();
        let mut renewals = Renewals::new(1000, 7);
        let mut admitted = |client: u64, numbers: std::ops::Range<u64>| {
            numbers.filter(|&number| renewals.admit(source, client, Some(number), SECOND).is_ok()).count()
        };
        assert_eq!(admitted(1, 1..1000), 10, "a tenth of a second's worth");
        assert_eq!(admitted(2, 1..1000), 10);
        let all: usize = (3..1000).map(|client| admitted(client, 1..20)).sum();
        assert_eq!(all, 80, "100 at once to one source");
        // Where each is said again until it is answered, the number tells nothing.
        let mut again = Renewals::new(1000, 7);
        assert_eq!((0..3).filter(|_| again.admit(source, 1, None, 0).is_ok()).count(), 3);
    }
}
