//! What is written reads back the same.

use std::path::Path;

use plimsoll_trace::{
    Format, ReadOptions, Record, RecordKind, TargetTable, Trace, convert, format_of_output, formats,
};

use crate::helpers::{Scratch, listed, load_path, real_trace, stamped};

fn rewrite(trace: &Trace, name: &str) -> Trace {
    let scratch = Scratch::new();
    let path = scratch.path(name);
    convert(trace, format_of_output(&path).unwrap(), &path).unwrap();
    let back = load_path(&path, &ReadOptions::default()).unwrap();
    assert_eq!(back.report.format, format_of_output(&path));
    back
}

/// A trace with every field in use and names that need care.
fn rich() -> Trace {
    let mut targets = TargetTable::new();
    for name in ["/a,b", "/\"quoted\"", "/line\nbreak", "/ä ö", "/plain"] {
        targets.intern(name.as_bytes()).unwrap();
    }
    let records = (0..300_000u64).map(|i| Record {
        time_ns: 1_400_000_000_000_000_000 + i / 2 * 1_234_567,
        size_bytes: if i % 1000 == 0 { 1 << 53 } else { i },
        service_ns: if i % 3 == 0 { i * 1001 } else { 0 },
        target: if i < 5 { i as u32 } else { (i * 7 % 5) as u32 },
        client: if i < 9 { i as u32 } else { (i % 9) as u32 },
        class: (i % 4) as u16,
        kind: if i % 6 == 0 { RecordKind::Dynamic } else { RecordKind::Static },
        ..Record::default()
    });
    Trace::from_records(targets, records).unwrap()
}

#[test]
fn csv_and_parquet_keep_everything() {
    let trace = rich();
    for name in ["t.csv", "t.csv.gz", "t.parquet", "t.parquet.zst"] {
        let back = rewrite(&trace, name);
        assert!(stamped(&back) == stamped(&trace), "{name}");
        assert!(listed(&back) == listed(&trace), "{name}");
        assert_eq!(back.report.clients, 9);
        assert!(!back.report.times_spread);
    }
}

#[test]
fn real_traces_survive_every_format() {
    for file in [
        "nasa_1995_excerpt.log.gz",
        "apache_combined_2015.log.gz",
        "cdn_time_id_size.tr.gz",
        "worldcup98_test_log.gz",
    ] {
        let Some(path) = real_trace(file) else {
            return;
        };
        let trace = load_path(&path, &ReadOptions::default()).unwrap();
        for name in ["t.csv.xz", "t.parquet", "t.tr.zst", "t.oracleGeneral.gz"] {
            let back = rewrite(&trace, name);
            // Oracle and (with spaces in names) `time id size` may number targets anew.
            let key =
                |t: &Trace| -> Vec<_> { stamped(t).iter().map(|r| (r.time_ns, r.size_bytes)).collect() };
            assert!(key(&back) == key(&trace), "{file} as {name}");
            assert_eq!(back.targets.len(), trace.targets.len(), "{file} as {name}");
            if name.starts_with("t.csv") || name == "t.parquet" {
                assert!(listed(&back) == listed(&trace), "{file} as {name}");
                assert_eq!(back.report.clients, trace.report.clients);
            }
        }
    }
}

#[test]
fn numbers_stay_numbers_and_next_accesses_are_right() {
    let scratch = Scratch::new();
    let source = scratch.file("s", b"1 900 10\n2 7 20\n3 900 10\n4 900 11\n");
    let trace = load_path(&source, &ReadOptions::default()).unwrap();
    let output = scratch.path("o.oracleGeneral");
    convert(&trace, formats::oracle::FORMAT, &output).unwrap();
    let bytes = std::fs::read(&output).unwrap();
    let records: Vec<_> = bytes
        .chunks_exact(24)
        .map(|r| {
            (
                u32::from_le_bytes(r[..4].try_into().unwrap()),
                u64::from_le_bytes(r[4..12].try_into().unwrap()),
                u32::from_le_bytes(r[12..16].try_into().unwrap()),
                i64::from_le_bytes(r[16..].try_into().unwrap()),
            )
        })
        .collect();
    assert_eq!(records, [(1, 900, 10, 2), (2, 7, 20, -1), (3, 900, 10, 3), (4, 900, 11, -1)]);
    let output = scratch.path("o.tr");
    convert(&trace, formats::time_id_size::FORMAT, &output).unwrap();
    assert_eq!(std::fs::read(&output).unwrap(), std::fs::read(&source).unwrap());
}

#[test]
fn csv_is_canonical() {
    let scratch = Scratch::new();
    let source = scratch.file("s", b"1.5 /a 10\n2 /b 20\n");
    let trace = load_path(&source, &ReadOptions::default()).unwrap();
    let output = scratch.path("o.csv");
    convert(&trace, formats::csv::FORMAT, &output).unwrap();
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "time_s,target,size_bytes\n1.5,/a,10\n2,/b,20\n");
}

#[test]
fn what_does_not_fit_is_refused() {
    let trace = rich();
    let scratch = Scratch::new();
    let error = |format: Format, path: &Path| convert(&trace, format, path).unwrap_err().to_string();
    let text = error(formats::oracle::FORMAT, &scratch.path("o.bin"));
    assert!(text.contains("o.bin") && text.contains("9007199254740992 bytes"), "{text}");
    let text = error(formats::log::COMMON, &scratch.path("o.log"));
    assert!(text.contains("cannot") || text.contains("not written"), "{text}");
    let text = error(formats::csv::FORMAT, &scratch.path("no/such/dir/o.csv"));
    assert!(text.contains("no/such/dir"), "{text}");
}

#[test]
fn writing_twice_gives_the_same_bytes() {
    let trace = rich();
    let scratch = Scratch::new();
    for name in ["a.csv.gz", "a.parquet", "a.csv.zst"] {
        let (first, second) = (scratch.path(name), scratch.path(&format!("second-{name}")));
        convert(&trace, format_of_output(&first).unwrap(), &first).unwrap();
        convert(&trace, format_of_output(&second).unwrap(), &second).unwrap();
        assert!(std::fs::read(first).unwrap() == std::fs::read(second).unwrap(), "{name}");
    }
}
