//! Fuzz targets: logs and traces that users name.

use std::io::Write as _;

use crate::{Format, ReadOptions, TraceInput, TraceReader};

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[("trace_file", file)];

/// A file in a format that the first byte chooses, or in the one that it seems to have: it is read to its end, and what was counted
/// adds up.
fn file(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let mut on_disk = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    on_disk.write_all(rest).expect("a temporary file can be written");
    let chosen = usize::from(first.wrapping_sub(b'0'));
    let options = ReadOptions { format: Format::all().nth(chosen), ..ReadOptions::default() };
    let input = TraceInput::File(on_disk.path().to_owned());
    let mut reader = TraceReader::new(&[input], &options);
    let (mut records, mut failed) = (0, false);
    for record in reader.by_ref() {
        assert!(!failed, "nothing follows an error");
        failed = record.is_err();
        records += u64::from(record.is_ok());
        assert!(records <= 1_000_000, "a record has bytes");
    }
    let report = reader.report();
    assert!(report.lines_rejected <= report.lines && report.rejections.len() <= 10);
    assert!(report.records >= records);
    assert!(report.records <= report.lines);
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_and_mutations_of_it() {
        let corpus = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
        plimsoll_testkit::replay_corpus(super::TARGETS, corpus, 200);
    }
}
