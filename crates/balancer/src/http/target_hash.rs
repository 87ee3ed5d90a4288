//! The hash by which targets are identified: keyed, so that no client can choose targets that are alike to a policy, or
//! that all belong to one back-end.

use std::hash::Hasher as _;
use std::io;

use plimsoll_config::{Config, HashKey};
use plimsoll_policy::TargetId;
use plimsoll_wire::random;
use siphasher::sip::SipHasher13;

use crate::partitioning::Partitioning;

/// Hashes the keys of targets.
#[derive(Clone, Copy)]
pub(crate) struct TargetHash {
    /// `None` hashes as the simulator does.
    key: Option<SipHasher13>,
    table_seed: u64,
    /// Which part of the data requests are for.
    partitioning: Option<Partitioning>,
}

impl TargetHash {
    /// The one that the configuration asks for.
    ///
    /// # Errors
    /// When the system provides no random numbers.
    pub(crate) fn of(config: &Config) -> io::Result<Self> {
        let partitioning = Partitioning::of(config);
        let secret = match (&config.target.hash_key, &config.peers) {
            (HashKey::None, _) => {
                return Ok(Self { key: None, table_seed: u64::from_le_bytes(random()?), partitioning });
            }
            (HashKey::Given(key), _) => key.derive(PURPOSE),
            (HashKey::Random, Some(peers)) => peers.key.derive(PURPOSE),
            (HashKey::Random, None) => random()?,
        };
        let mut key = [0; 16];
        key.copy_from_slice(&secret[..16]);
        let key = Some(SipHasher13::new_with_key(&key));
        Ok(Self { key, table_seed: u64::from_le_bytes(random()?), partitioning })
    }

    /// As the simulator hashes.
    pub(crate) const PLAIN: Self = Self { key: None, table_seed: 1, partitioning: None };

    /// The same, of data that is not divided.
    pub(crate) fn of_whole(self) -> Self {
        Self { partitioning: None, ..self }
    }

    /// The identity of the target with this key.
    pub(crate) fn target(&self, key: &[u8]) -> TargetId {
        match self.key {
            None => TargetId::from_key(key),
            Some(mut hasher) => {
                hasher.write(key);
                TargetId(hasher.finish())
            }
        }
    }

    /// Which part of the data requests are for; `None` where there are no parts.
    pub(crate) fn partitioning(&self) -> Option<Partitioning> {
        self.partitioning
    }

    /// The seed of hash tables of targets.
    pub(crate) fn table_seed(&self) -> u64 {
        self.table_seed
    }
}

/// What the key is derived for: never changes.
const PURPOSE: &str = "plimsoll 2026-11 hash of targets";

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(target: &str) -> TargetHash {
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n[target]\n{target}\n"
        );
        TargetHash::of(&Config::parse(&text, "test.toml").unwrap()).unwrap()
    }

    #[test]
    fn each_start_hashes_in_its_own_way_unless_told_otherwise() {
        assert_eq!(hash("hash_key = \"none\"").target(b"/a"), TargetId::from_key(b"/a"));
        let (one, other) = (hash(""), hash(""));
        assert_eq!(one.target(b"/a"), one.target(b"/a"));
        assert_ne!(one.target(b"/a"), other.target(b"/a"));
        assert_ne!(one.table_seed(), other.table_seed());
    }

    /// The attack that the key is for: targets are chosen so that an unkeyed hash sends them all to one of 16 back-ends.
    #[test]
    fn targets_chosen_to_meet_do_not() {
        let share = |id: TargetId| id.0 >> 60;
        let paths = (0..).map(|n| format!("/{n}"));
        let chosen: Vec<String> =
            paths.filter(|path| share(TargetId::from_key(path.as_bytes())) == 5).take(1600).collect();
        let hash = hash("");
        let mut counts = [0; 16];
        chosen.iter().for_each(|path| counts[share(hash.target(path.as_bytes())) as usize] += 1);
        // 100 each on average; 5 standard deviations are 48.
        assert!(counts.iter().all(|&n| (52..=148).contains(&n)), "{counts:?}");
    }
}
