//! Fuzz targets: packets that were copied or held.

use crate::{frame, tap};

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[("tap_packet", tap::fuzzed::packet), ("held_frame", held_frame)];

/// A frame is completed once, and its acknowledgment carries nothing else.
fn held_frame(bytes: &[u8]) {
    let whole = frame::with_checksum(bytes);
    if let Ok(whole) = &whole {
        assert_eq!(whole.len(), bytes.len());
        assert_eq!(frame::with_checksum(whole).ok().as_ref(), Some(whole), "a complete frame stays as it is");
    }
    let reset = frame::reset_seq(bytes);
    assert!(reset.is_none() || frame::is_of_stream(bytes));
    if let Some(data) = frame::data_at(bytes, 7, 9, 1000) {
        assert!(!data.is_empty() && data.len() < bytes.len() && frame::is_of_stream(bytes));
        assert!(whole.is_ok() && reset.is_none());
    }
    if let Ok(acknowledgment) = frame::acknowledgment(bytes) {
        assert!(acknowledgment.len() <= bytes.len());
        assert!(!frame::is_of_stream(&acknowledgment) || frame::reset_seq(&acknowledgment).is_some());
        assert_eq!(frame::with_checksum(&acknowledgment).ok(), Some(acknowledgment));
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
