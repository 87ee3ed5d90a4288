//! How often each client may ask: the generic cell rate algorithm (ITU-T I.371), one time for each client and limit.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_config::{IpNet, RouteRate};
use plimsoll_policy::{LruMap, TargetId};

use crate::http::target_hash::TargetHash;

/// Clients that are remembered, over all limits: those that have been silent longest are forgotten.
const MOST_CLIENTS: usize = 1 << 18;

/// When each client may ask next, for one limit or several.
struct NextTimes {
    /// The time in nanoseconds at which the client has used nothing of its limit.
    clients: LruMap<u64>,
}

impl NextTimes {
    fn new(clients: usize, table_seed: u64) -> Self {
        Self { clients: LruMap::with_seed(clients, table_seed) }
    }

    /// Takes a request of this client at this time, or tells after how many nanoseconds it would be taken.
    fn take(&mut self, client: TargetId, rate: RouteRate, now_ns: u64) -> Result<(), u64> {
        let interval_ns = rate.interval_ns();
        let ahead_ns = interval_ns.saturating_mul(u64::from(rate.burst.max(1)) - 1);
        let free = self.clients.get_or_insert_with(client, || now_ns).0;
        let begins_ns = (*free).max(now_ns);
        match (begins_ns - now_ns).checked_sub(ahead_ns) {
            None | Some(0) => {
                *free = begins_ns.saturating_add(interval_ns);
                Ok(())
            }
            Some(wait_ns) => Err(wait_ns),
        }
    }
}

/// The limits of all routes.
pub(crate) struct RateLimiter {
    origin: Instant,
    hash: TargetHash,
    times: Mutex<NextTimes>,
}

impl RateLimiter {
    pub(crate) fn new(hash: TargetHash) -> Self {
        let times = Mutex::new(NextTimes::new(MOST_CLIENTS, hash.table_seed()));
        Self { origin: Instant::now(), hash, times }
    }

    /// Takes a request of the client at this address for the limit of this number.
    ///
    /// # Errors
    /// How long it would have to wait.
    pub(crate) fn take(&self, limit: u64, address: IpAddr, rate: RouteRate) -> Result<(), Duration> {
        let now_ns = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let client = self.hash.target(&client_key(limit, address));
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.take(client, rate, now_ns).map_err(Duration::from_nanos)
    }
}

/// One for all addresses of one client: of IPv6 the first 64 bits, as one client has all of these.
fn client_key(limit: u64, address: IpAddr) -> [u8; 17] {
    let mut key = [0; 17];
    key[..8].copy_from_slice(&limit.to_le_bytes());
    match address.to_canonical() {
        IpAddr::V4(v4) => key[8..12].copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => {
            key[8..16].copy_from_slice(&v6.octets()[..8]);
            key[16] = 1;
        }
    }
    key
}

/// The address of the client of a request that came from `peer`: where that is a trusted proxy, the one that it names last in
/// the value of `X-Forwarded-For` as it is passed on, and so on while that is a trusted one.
pub(crate) fn client_address(forwarded_for: &[u8], peer: SocketAddr, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|net| net.contains(address));
    let mut client = peer.ip().to_canonical();
    // The last one is the peer itself.
    for named in forwarded_for.rsplit(|&b| b == b',').skip(1) {
        if !is_trusted(client) {
            break;
        }
        match std::str::from_utf8(named).ok().and_then(|text| text.trim().parse::<IpAddr>().ok()) {
            Some(address) => client = address.to_canonical(),
            None => break,
        }
    }
    client
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn rate(count: u32, per_s: u32, burst: u32) -> RouteRate {
        RouteRate { count, per_s, burst }
    }

    #[test]
    fn a_burst_is_taken_at_once_and_then_as_many_as_the_rate_says() {
        let mut times = NextTimes::new(10, 1);
        let (client, other) = (TargetId(1), TargetId(2));
        let mut take = |client, at_ns| times.take(client, rate(2, 1, 3), at_ns);
        let start = 7 * SECOND;
        assert_eq!([take(client, start), take(client, start), take(client, start)], [Ok(()); 3]);
        assert_eq!(take(client, start), Err(SECOND / 2));
        assert_eq!(take(client, start + SECOND / 2 - 1), Err(1), "what was refused costs nothing");
        assert_eq!(take(other, start), Ok(()), "each client has its own");
        assert_eq!(take(client, start + SECOND / 2), Ok(()));
        assert_eq!(take(client, start + SECOND / 2), Err(SECOND / 2));
        // In ten seconds, never more than the burst and ten times the rate.
        let taken = (0..10_000).filter(|i| take(client, start + SECOND + i * SECOND / 1000).is_ok()).count();
        assert!((20..=23).contains(&taken), "{taken}");
        // After a rest there is one burst, not more.
        let late = start + 1000 * SECOND;
        assert_eq!((0..5).filter(|_| take(client, late).is_ok()).count(), 3);
    }

    #[test]
    fn clients_are_bounded() {
        let mut times = NextTimes::new(100, 1);
        for n in 0..10_000 {
            assert_eq!(times.take(TargetId(n), rate(1, 60, 1), SECOND), Ok(()));
        }
        assert_eq!(times.clients.len(), 100);
        assert!(times.take(TargetId(9_999), rate(1, 60, 1), SECOND).is_err());
    }

    #[test]
    fn one_client_has_a_64_of_ipv6() {
        let key = |text: &str| client_key(1, text.parse().unwrap());
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:1"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_ne!(client_key(1, [192, 0, 2, 1].into()), client_key(2, [192, 0, 2, 1].into()));
    }

    #[test]
    fn only_trusted_proxies_name_clients() {
        let trusted = plimsoll_config::Config::parse(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n\
             [forwarded]\ntrusted = [\"10.0.0.0/8\"]\n",
            "test.toml",
        )
        .unwrap()
        .forwarded
        .trusted;
        let of = |peer: &str, value: &str| {
            client_address(value.as_bytes(), format!("{peer}:1").parse().unwrap(), &trusted).to_string()
        };
        assert_eq!(of("192.0.2.1", "6.6.6.6, 192.0.2.1"), "192.0.2.1");
        assert_eq!(of("10.0.0.1", "6.6.6.6, 192.0.2.9, 10.0.0.1"), "192.0.2.9");
        assert_eq!(of("10.0.0.1", "6.6.6.6, 192.0.2.9, 10.0.0.2, 10.0.0.1"), "192.0.2.9");
        assert_eq!(of("10.0.0.1", "nonsense, 10.0.0.1"), "10.0.0.1");
        assert_eq!(of("10.0.0.1", "10.0.0.1"), "10.0.0.1");
    }
}
