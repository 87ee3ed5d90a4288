//! Fuzz targets: logs that users name, and what must hold whatever is in them.

use crate::decoder::EventDecoder;
use crate::frame::{FileHead, FrameKind, frame_head};
use crate::reader::LogReader;

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[("decision_events", events), ("decision_log", log)];

/// The most events that a chunk of so many bytes can hold: each has a tag and a time.
fn most_events(bytes: usize) -> usize {
    bytes / 2
}

/// A chunk of events: it ends, and within its bytes.
fn events(bytes: &[u8]) {
    let mut decoder = EventDecoder::new();
    if decoder.begin(bytes.to_vec()).is_err() {
        return;
    }
    let mut count = 0;
    while let Ok(Some(event)) = decoder.event() {
        count += 1;
        assert!(count <= most_events(bytes.len()) && decoder.at() <= bytes.len());
        // What was decoded can be shown.
        assert!(!format!("{event:?}").is_empty());
    }
}

/// A file of a log. With an odd first byte it has its head and its checksums, and only what they cover is any bytes.
fn log(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let mut file = Vec::new();
    if first & 1 == 0 {
        file.extend_from_slice(rest);
    } else {
        file.extend_from_slice(&FileHead { session: 1, number: 1 }.to_bytes());
        let kinds = [FrameKind::Chunk, FrameKind::Gap, FrameKind::Full, FrameKind::End];
        for payload in rest.split(|&b| b == b'\n').take(20) {
            let Some((&kind, payload)) = payload.split_first() else { continue };
            // Most frames are chunks.
            let kind = kinds[usize::from(kind.saturating_sub(b'0')).min(3)];
            file.extend_from_slice(&frame_head(kind, payload));
            file.extend_from_slice(payload);
        }
    }
    let name = format!("plimsoll-fuzz-{}-{:?}.plog", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, &file).expect("a temporary file can be written");
    let opened = LogReader::open(&path);
    std::fs::remove_file(&path).expect("it is there");
    let Ok(reader) = opened else { return };
    let (mut items, mut failed) = (0, false);
    for item in reader {
        assert!(!failed, "nothing follows an error");
        failed = item.is_err();
        items += 1;
        assert!(items <= file.len() + 3, "each item has a byte, but for the end");
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
