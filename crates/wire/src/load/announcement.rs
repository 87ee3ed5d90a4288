//! Announces a load at jittered intervals.

use super::datagram::{Datagram, LoadAnnouncement, LoadKeys, MOST_LOAD};
use super::gate::BootId;

/// Makes announcements. Each interval is drawn evenly from 0.5 to 1.5 times the mean, so that agents do not fall into step
/// (Floyd and Jacobson, "The Synchronization of Periodic Routing Messages", SIGCOMM 1993).
#[derive(Debug)]
pub struct LoadAnnouncer {
    keys: LoadKeys,
    boot: BootId,
    mean_ns: u64,
    sequence: u64,
    due_ns: u64,
    random: u64,
}

impl LoadAnnouncer {
    /// Announces from `now_ns` on. `boot` is that of the answerer, so that receivers can ask for it; `seed` is any number.
    #[must_use]
    pub fn new(keys: LoadKeys, boot: BootId, mean_ns: u64, seed: u64, now_ns: u64) -> Self {
        let mut announcer = Self { keys, boot, mean_ns, sequence: 0, due_ns: now_ns, random: seed };
        announcer.due_ns = now_ns.saturating_add(announcer.interval_ns());
        announcer
    }

    /// When the next one is due.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// The announcement that is due.
    pub fn announce(&mut self, now_ns: u64, load: u32, latency_us: u32) -> Datagram {
        self.sequence += 1;
        // What was missed while nothing ran is not made up for.
        self.due_ns = now_ns.saturating_add(self.interval_ns());
        let load = load.min(MOST_LOAD);
        let (boot, sequence, interval_ns) = (self.boot.number(), self.sequence, self.mean_ns);
        LoadAnnouncement { boot, sequence, clock_ns: now_ns, interval_ns, load, latency_us }.seal(&self.keys)
    }

    /// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), for one number in a while.
    fn interval_ns(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let spread = (u128::from(self.mean_ns) * u128::from(mixed)) >> 64;
        self.mean_ns / 2 + u64::try_from(spread).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn intervals_are_spread_evenly_around_the_mean() {
        let keys = LoadKeys::new(&Key::new([1; 32]));
        let mean_ns = 1_000_000;
        let mut announcer = LoadAnnouncer::new(keys, BootId::new([1; 8]), mean_ns, 5, 0);
        let (mut now_ns, mut tenths) = (announcer.due_ns(), [0_u32; 10]);
        for _ in 0..10_000 {
            announcer.announce(now_ns, 1, 0);
            let interval_ns = announcer.due_ns() - now_ns;
            assert!((mean_ns / 2..=mean_ns * 3 / 2).contains(&interval_ns));
            let tenth = (interval_ns - mean_ns / 2) * 10 / (mean_ns + 1);
            tenths[usize::try_from(tenth).unwrap()] += 1;
            now_ns = announcer.due_ns();
        }
        assert!(tenths.iter().all(|&count| (850..1150).contains(&count)), "{tenths:?}");
    }
}
