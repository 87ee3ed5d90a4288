//! Fuzz targets: what other nodes and etcd tell, and what must hold whatever it is.

use plimsoll_wire::Key;

use crate::announcement::{Announcement, AnnouncementKey, MOST_ANNOUNCEMENT_BYTES, Said, sealed};
use crate::etcd::EtcdSettings;

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] =
    &[("directory_announcement", announcement), ("directory_etcd_key", etcd_key)];

/// Nobody without the key announces anything; what somebody with it says is within its bounds, and can be said again.
fn announcement(bytes: &[u8]) {
    let key = AnnouncementKey::of(&Key::new([5; 32]));
    assert!(Announcement::open(bytes, &key).is_err(), "nobody without the key is heard");
    let whole = sealed(bytes, &key);
    let Ok(announcement) = Announcement::open(&whole, &key) else { return };
    assert!(whole.len() <= MOST_ANNOUNCEMENT_BYTES);
    if let Said::Offers(offers) = &announcement.said {
        assert!(offers.iter().all(|offer| offer.fault().is_none() && offer.address.port() != 0));
    }
    let again = announcement.seal(&key);
    assert_eq!(Announcement::open(&again, &key).as_ref(), Ok(&announcement));
    let mut changed = whole;
    let at = usize::from(bytes[0]) % changed.len();
    changed[at] ^= 1;
    assert!(Announcement::open(&changed, &key).is_err(), "what was changed is not heard");
}

/// A key of etcd that names a replica is the one that this replica has.
fn etcd_key(bytes: &[u8]) {
    let settings = EtcdSettings::new(Vec::new());
    if let Some((offered, node)) = settings.id(bytes) {
        assert_eq!(settings.key(&offered, &node).as_bytes(), bytes);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_and_mutations_of_it() {
        let corpus = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
        plimsoll_testkit::replay_corpus(super::TARGETS, corpus, 200);
    }
}
