//! What a node says of itself: the replicas that it offers. Without input or output.

use std::time::Duration;

use plimsoll_wire::{Key, check_service_name};
use serde::{Deserialize, Serialize};

use crate::drop_reason::DropReason;
use crate::offer::ServiceOffer;

/// The most bytes of an announcement: it fits in one frame of Ethernet, with IPv6 and tunnels.
pub const MOST_ANNOUNCEMENT_BYTES: usize = 1200;
/// The shortest time to live.
pub const LEAST_TTL: Duration = Duration::from_millis(400);
/// The longest time to live.
pub const MOST_TTL: Duration = Duration::from_secs(3600);

const PURPOSE: &str = "plimsoll directory 1: announcements";
const MAGIC: [u8; 4] = *b"PlSD";
const VERSION: u8 = 1;
/// Magic, version, length of the body.
const HEAD_BYTES: usize = 7;
const MAC_BYTES: usize = 32;

/// What an announcement says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// The node offers these, maybe beside others.
    Offers(Vec<ServiceOffer>),
    /// The node offers nothing any more.
    Goodbye,
}

/// One announcement of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// The name of the node.
    pub node: String,
    /// When its process started, in microseconds since 1970: a later one replaces an earlier one.
    pub boot: u64,
    /// Greater in each announcement of the process.
    pub sequence: u64,
    /// When it was made, in milliseconds since 1970.
    pub sent_ms: u64,
    /// How long it counts.
    pub ttl_ms: u32,
    /// What it says.
    pub said: Said,
}

/// The key of announcements, derived from the one that nodes share.
#[derive(Clone)]
pub struct AnnouncementKey([u8; 32]);

impl AnnouncementKey {
    /// Derives it.
    #[must_use]
    pub fn of(key: &Key) -> Self {
        Self(key.derive(PURPOSE))
    }
}

impl std::fmt::Debug for AnnouncementKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AnnouncementKey(…)")
    }
}

impl Announcement {
    /// The bytes that are sent: head, body, MAC over both.
    #[must_use]
    pub fn seal(&self, key: &AnnouncementKey) -> Vec<u8> {
        // Neither lengths nor memory can fail: the types are plain, and the bytes go to a vector.
        let body = postcard::to_stdvec(self).unwrap_or_default();
        sealed(&body, key)
    }

    /// Reads what was received, unless somebody without the key has written or changed it.
    ///
    /// # Errors
    /// Why it is dropped.
    pub fn open(bytes: &[u8], key: &AnnouncementKey) -> Result<Self, DropReason> {
        let shared = bytes.len().min(MAGIC.len());
        if bytes[..shared] != MAGIC[..shared] {
            return Err(DropReason::Foreign);
        }
        if bytes.len() < HEAD_BYTES {
            return Err(DropReason::Truncated);
        }
        if bytes[4] != VERSION {
            return Err(DropReason::Foreign);
        }
        let length = usize::from(u16::from_be_bytes([bytes[5], bytes[6]]));
        let whole = HEAD_BYTES + length + MAC_BYTES;
        if bytes.len() > whole || whole > MOST_ANNOUNCEMENT_BYTES {
            return Err(DropReason::Oversized);
        }
        if bytes.len() < whole {
            return Err(DropReason::Truncated);
        }
        let (sealed, mac) = bytes.split_at(HEAD_BYTES + length);
        let mac: [u8; MAC_BYTES] = mac.try_into().map_err(|_| DropReason::Truncated)?;
        // The comparison of hashes takes the same time wherever they differ.
        if blake3::keyed_hash(&key.0, sealed) != blake3::Hash::from_bytes(mac) {
            return Err(DropReason::Forged);
        }
        match postcard::take_from_bytes::<Self>(&sealed[HEAD_BYTES..]) {
            Ok((announcement, [])) if announcement.is_valid() => Ok(announcement),
            _ => Err(DropReason::Malformed),
        }
    }

    /// How long it counts.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms.into())
    }

    fn is_valid(&self) -> bool {
        let offers_good = match &self.said {
            Said::Offers(offers) => offers.iter().all(|offer| offer.fault().is_none()),
            Said::Goodbye => true,
        };
        offers_good && check_service_name(&self.node).is_ok() && (LEAST_TTL..=MOST_TTL).contains(&self.ttl())
    }
}

/// A body with its head and the MAC over both.
pub(crate) fn sealed(body: &[u8], key: &AnnouncementKey) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX);
    let mut bytes = Vec::with_capacity(HEAD_BYTES + body.len() + MAC_BYTES);
    bytes.extend(MAGIC);
    bytes.push(VERSION);
    bytes.extend(length.to_be_bytes());
    bytes.extend(body);
    let mac = blake3::keyed_hash(&key.0, &bytes);
    bytes.extend(mac.as_bytes());
    bytes
}

/// Makes a node's announcements.
#[derive(Debug)]
pub struct Announcer {
    key: AnnouncementKey,
    node: String,
    boot: u64,
    sequence: u64,
    ttl_ms: u32,
}

impl Announcer {
    /// Of the node of this name, whose process started at `boot`, in microseconds since 1970.
    #[must_use]
    pub fn new(key: AnnouncementKey, node: String, boot: u64, ttl: Duration) -> Self {
        let ttl = ttl.clamp(LEAST_TTL, MOST_TTL);
        // An hour has fewer milliseconds.
        let ttl_ms = u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX);
        Self { key, node, boot, sequence: 0, ttl_ms }
    }

    /// The name of the node.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// How long an announcement counts.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms.into())
    }

    fn announcement(&mut self, said: Said, now_ms: u64) -> Announcement {
        self.sequence += 1;
        let (node, boot, sequence) = (self.node.clone(), self.boot, self.sequence);
        Announcement { node, boot, sequence, sent_ms: now_ms, ttl_ms: self.ttl_ms, said }
    }

    /// One announcement of these.
    pub fn seal(&mut self, said: Said, now_ms: u64) -> Vec<u8> {
        let key = self.key.clone();
        self.announcement(said, now_ms).seal(&key)
    }

    /// As few announcements of these as their size allows; each offer fits in one, as [`ServiceOffer::check`] has seen.
    pub fn seal_all(&mut self, offers: &[ServiceOffer], now_ms: u64) -> Vec<Vec<u8>> {
        let mut sealed: Vec<Vec<u8>> = Vec::new();
        let mut rest = offers;
        while !rest.is_empty() {
            let mut many = rest.len();
            loop {
                let bytes = self.seal(Said::Offers(rest[..many].to_vec()), now_ms);
                if bytes.len() <= MOST_ANNOUNCEMENT_BYTES || many == 1 {
                    sealed.push(bytes);
                    break;
                }
                // At least as many times smaller as it is too large.
                many = (many * MOST_ANNOUNCEMENT_BYTES / bytes.len()).clamp(1, many - 1);
            }
            rest = &rest[many..];
        }
        sealed
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::ServiceKey;

    use super::*;
    use crate::offer::MOST_OFFERS;

    fn key() -> AnnouncementKey {
        AnnouncementKey::of(&Key::new([7; 32]))
    }

    fn offer(partition: usize) -> ServiceOffer {
        let key = ServiceKey::new("image-store", &partition.to_string()).unwrap();
        let methods = vec!["GET /image".to_owned(), "PUT /image".to_owned()];
        ServiceOffer { methods, ..ServiceOffer::new(key, ([10, 0, 0, 1], 80).into()) }
    }

    fn announcer() -> Announcer {
        Announcer::new(key(), "node-1".to_owned(), 5, Duration::from_secs(3))
    }

    #[test]
    fn what_is_sealed_is_read_by_whoever_has_the_key() {
        let bytes = announcer().seal(Said::Offers(vec![offer(0)]), 9);
        let read = Announcement::open(&bytes, &key()).unwrap();
        assert_eq!(
            (&*read.node, read.boot, read.sequence, read.sent_ms, read.ttl_ms),
            ("node-1", 5, 1, 9, 3000)
        );
        assert_eq!(read.said, Said::Offers(vec![offer(0)]));
        let other = AnnouncementKey::of(&Key::new([8; 32]));
        assert_eq!(Announcement::open(&bytes, &other), Err(DropReason::Forged));
    }

    #[test]
    fn no_change_of_a_byte_and_no_cut_is_accepted() {
        let bytes = announcer().seal(Said::Offers(vec![offer(0)]), 9);
        for index in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[index] ^= 1 << bit;
                assert!(Announcement::open(&changed, &key()).is_err(), "byte {index}, bit {bit}");
            }
            let cut = Announcement::open(&bytes[..index], &key());
            assert_eq!(cut, Err(DropReason::Truncated), "{index} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(Announcement::open(&longer, &key()), Err(DropReason::Oversized));
        assert_eq!(Announcement::open(b"GET / HTTP/1.1", &key()), Err(DropReason::Foreign));
    }

    #[test]
    fn sealed_nonsense_is_malformed() {
        let good = announcer().announcement(Said::Offers(vec![offer(0)]), 9);
        let open = |said: Announcement| Announcement::open(&said.seal(&key()), &key());
        assert!(open(good.clone()).is_ok());
        let mut nowhere = offer(0);
        nowhere.address.set_port(0);
        for bad in [
            Announcement { node: "a b".to_owned(), ..good.clone() },
            Announcement { ttl_ms: 1, ..good.clone() },
            Announcement { ttl_ms: u32::MAX, ..good.clone() },
            Announcement { said: Said::Offers(vec![nowhere]), ..good.clone() },
            Announcement {
                said: Said::Offers(vec![ServiceOffer { weight_steps: u32::MAX, ..offer(0) }]),
                ..good
            },
        ] {
            assert_eq!(open(bad.clone()), Err(DropReason::Malformed), "{bad:?}");
        }
    }

    #[test]
    fn many_offers_are_split_and_none_is_lost() {
        let offers: Vec<ServiceOffer> = (0..MOST_OFFERS).map(offer).collect();
        let sealed = announcer().seal_all(&offers, 9);
        assert!(sealed.len() > 1 && sealed.iter().all(|bytes| bytes.len() <= MOST_ANNOUNCEMENT_BYTES));
        let read = sealed.iter().flat_map(|bytes| match Announcement::open(bytes, &key()).unwrap().said {
            Said::Offers(offers) => offers,
            Said::Goodbye => Vec::new(),
        });
        assert_eq!(read.collect::<Vec<_>>(), offers);
    }

    #[test]
    fn the_largest_offer_fits_in_one_announcement() {
        let mut announcer = Announcer::new(key(), "n".repeat(64), u64::MAX, MOST_TTL);
        announcer.sequence = u64::MAX - 1;
        let bytes = announcer.seal(Said::Offers(vec![crate::offer::tests::largest()]), u64::MAX);
        assert!(bytes.len() <= MOST_ANNOUNCEMENT_BYTES && bytes.len() > 1100, "{}", bytes.len());
        assert!(Announcement::open(&bytes, &key()).is_ok());
    }
}
