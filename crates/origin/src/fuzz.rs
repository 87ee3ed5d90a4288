//! Fuzz targets: fields of requests.

use http::header::{HeaderMap, HeaderValue, RANGE};

use crate::range::{Selection, select};

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[("origin_range", range)];

/// Ranges are within the document, and not more than it.
fn range(bytes: &[u8]) {
    let Some((size, value)) = bytes.split_first_chunk::<4>() else { return };
    let size_bytes = u64::from(u32::from_le_bytes(*size));
    let Ok(value) = HeaderValue::from_bytes(value) else { return };
    let headers = HeaderMap::from_iter([(RANGE, value)]);
    if let Selection::Ranges(ranges) = select(&headers, size_bytes) {
        assert!((1..=16).contains(&ranges.len()));
        assert!(ranges.iter().all(|range| range.start < range.end && range.end <= size_bytes));
        assert!(ranges.iter().map(|range| range.end - range.start).sum::<u64>() <= size_bytes);
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
