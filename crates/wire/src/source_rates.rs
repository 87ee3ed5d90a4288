//! How often each source may ask.

use std::net::IpAddr;

/// Sources that share one of these share its rate.
const BUCKETS: usize = 4096;

/// Bounds the rate of each source, with the generic cell rate algorithm: a bucket knows when it would be empty.
#[derive(Debug)]
pub struct SourceRates {
    empty_at_ns: Box<[u64]>,
    interval_ns: u64,
    tolerance_ns: u64,
    seed: u64,
}

impl SourceRates {
    /// So many in a second from each source, and so many at once. `seed` is a secret.
    #[must_use]
    pub fn new(per_s: u32, at_once: u32, seed: u64) -> Self {
        let interval_ns = 1_000_000_000 / u64::from(per_s.max(1));
        let tolerance_ns = interval_ns * u64::from(at_once.max(1) - u32::from(at_once > 0));
        Self { empty_at_ns: vec![0; BUCKETS].into(), interval_ns, tolerance_ns, seed }
    }

    /// Counts one from this source, if it may come. Time that goes back gives nothing.
    pub fn admits(&mut self, source: IpAddr, now_ns: u64) -> bool {
        let slot = &mut self.empty_at_ns[bucket(source, self.seed)];
        let empty_at_ns = (*slot).max(now_ns);
        let admitted = empty_at_ns - now_ns <= self.tolerance_ns;
        if admitted {
            *slot = empty_at_ns.saturating_add(self.interval_ns);
        }
        admitted
    }
}

/// Of an IPv4 address, or the network of an IPv6 address: a machine has all addresses of one.
fn bucket(source: IpAddr, seed: u64) -> usize {
    let number = match source.to_canonical() {
        IpAddr::V4(v4) => u64::from(v4.to_bits()),
        IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64,
    };
    let mut mixed = (number ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^= mixed >> 32;
    mixed = mixed.wrapping_mul(seed | 1);
    (mixed >> 52) as usize & (BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_the_rate() {
        let source: IpAddr = "10.0.0.1".parse().unwrap();
        let mut rates = SourceRates::new(1000, 10, 7);
        let admitted = (0..100).filter(|_| rates.admits(source, 5_000_000_000)).count();
        assert_eq!(admitted, 10);
        let other: IpAddr = "10.0.0.2".parse().unwrap();
        assert!(rates.admits(other, 5_000_000_000));
        let in_a_second =
            (0..100_000_u64).filter(|i| rates.admits(source, 5_000_000_000 + i * 10_000)).count();
        assert!((999..=1001).contains(&in_a_second), "{in_a_second}");
    }

    #[test]
    fn one_loud_source_leaves_the_others_theirs() {
        let (loud, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut rates = SourceRates::new(2000, 2000, 3);
        assert_eq!((0..100_000).filter(|_| rates.admits(loud, 7_000_000_000)).count(), 2000);
        assert!(rates.admits(other, 7_000_000_000));
        assert!(!rates.admits(loud, 1_000_000_000));
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let at = |text: &str| bucket(text.parse().unwrap(), 7);
        assert_eq!(at("fd00::1"), at("fd00::ffff:2"));
        assert_ne!(at("fd00::1"), at("fd00:1::1"));
        assert_eq!(at("::ffff:10.0.0.1"), at("10.0.0.1"));
    }
}
