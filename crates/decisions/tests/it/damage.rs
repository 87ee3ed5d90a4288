//! Damaged and cut logs: an error or a note, never a panic, never without end.

use std::fs;
use std::path::Path;

use plimsoll_decisions::{CompareOptions, LogItem, LogReadError, LogReader, compare, replay};
use proptest::prelude::*;

use crate::live::{Live, header, write};

/// A log of two chunks in one file.
fn log(directory: &Path) -> Vec<u8> {
    let mut live = Live::new(header("lard_r"), 1);
    live.steps(40);
    let first = live.take();
    live.steps(40);
    write(directory, [first, live.take()]);
    fs::read(directory.join("decisions-00000001.plog")).unwrap()
}

struct Read {
    events: usize,
    truncated: bool,
    error: Option<LogReadError>,
}

fn read(path: &Path) -> Read {
    let mut out = Read { events: 0, truncated: false, error: None };
    let reader = match LogReader::open(path) {
        Ok(reader) => reader,
        Err(error) => return Read { error: Some(error), ..out },
    };
    for item in reader {
        match item {
            Ok(LogItem::Event(_)) => out.events += 1,
            Ok(LogItem::Truncated { .. }) => out.truncated = true,
            Ok(_) => {}
            Err(error) => out.error = Some(error),
        }
    }
    out
}

#[test]
fn every_changed_byte_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = log(directory.path());
    let file = directory.path().join("changed.plog");
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&file, changed).unwrap();
        let read = read(&file);
        assert!(read.truncated || read.error.is_some(), "byte {at}");
        let proof = LogReader::open(&file).ok().and_then(|mut log| replay(&mut log, &mut |_| {}).ok());
        assert!(proof.is_none_or(|proof| !proof.is_proved()), "byte {at}");
        if let Some(error) = read.error {
            assert!(error.to_string().contains("changed.plog, byte "), "{error}");
        }
    }
}

#[test]
fn what_comes_before_a_cut_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = log(directory.path());
    let file = directory.path().join("cut.plog");
    let mut most = 0;
    for len in 0..bytes.len() {
        fs::write(&file, &bytes[..len]).unwrap();
        let read = read(&file);
        assert!(read.error.is_none(), "{len} bytes: {:?}", read.error);
        assert!(read.events >= most, "{len} bytes");
        most = read.events;
        let proof = replay(&mut LogReader::open(&file).unwrap(), &mut |_| {}).unwrap();
        assert!(!proof.is_proved(), "{len} bytes");
        assert_eq!((proof.truncated.is_empty(), proof.endless.len()), (!read.truncated, 1), "{len} bytes");
        let unread: u64 = proof.truncated.iter().map(|cut| cut.1).sum();
        assert!(unread < 32 + 13 + bytes.len() as u64, "{len} bytes");
    }
    let file = directory.path().join("decisions-00000001.plog");
    assert!(replay(&mut LogReader::open(&file).unwrap(), &mut |_| {}).unwrap().is_proved());
    assert_eq!(most, 81);
}

#[test]
fn other_files_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("access.log");
    fs::write(&file, "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1").unwrap();
    let error = LogReader::open(&file).err().unwrap().to_string();
    assert!(error.contains("access.log, byte 0: this is no decision log"), "{error}");
    let error = LogReader::open(directory.path()).err().unwrap().to_string();
    assert!(error.contains("holds no decision log"), "{error}");
    let error = LogReader::open(&directory.path().join("none")).err().unwrap().to_string();
    assert!(error.contains("cannot read") && error.contains("none"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Bytes whose checksum agrees, but that no recorder wrote.
    #[test]
    fn nonsense_under_a_good_checksum_never_panics(
        policy in prop::sample::select(plimsoll_policy::REGISTRY.to_vec()),
        seed: u64,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        cut_it: bool,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut live = Live::new(header(policy.name), seed);
        live.steps(150);
        let mut chunk = live.take();
        for (at, byte) in changes {
            let at = at.index(chunk.len());
            chunk[at] = byte;
        }
        if cut_it {
            let len = 1 + cut.index(chunk.len());
            chunk.truncate(len);
        }
        live.steps(50);
        write(directory.path(), [chunk, live.take()]);
        let mut decisions = 0u64;
        let _ = replay(&mut LogReader::open(directory.path()).unwrap(), &mut |_| decisions += 1);
        prop_assert!(decisions < 10_000);
        let options = CompareOptions {
            policies: vec![(policy.name.to_owned(), Vec::new()), ("lard".to_owned(), Vec::new())],
            cache: Some(&plimsoll_cache::caches::gds::SPEC),
            cache_bytes: Some(5000),
        };
        let _ = compare(&mut LogReader::open(directory.path()).unwrap(), &options, &mut |_, _| {});
    }
}
