//! Files: bounded, rotating, one log after the other.

use std::fs;
use std::path::Path;

use plimsoll_decisions::{LogConfig, LogItem, LogReader, LogRetention, LogWriter, Missing};

use crate::live::{Live, config, header, prove, write};

fn sizes(directory: &Path) -> Vec<(String, u64)> {
    let file = |entry: Result<fs::DirEntry, std::io::Error>| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len())
    };
    let mut sizes: Vec<_> = fs::read_dir(directory).unwrap().map(file).collect();
    sizes.sort();
    sizes
}

/// Writes chunks of about a kilobyte into files of 4 KiB.
fn fill(directory: &Path, when_full: LogRetention, chunks: usize) -> LogWriter {
    let config = LogConfig { file_bytes: 4096, files: 3, when_full, ..config(directory) };
    let writer = LogWriter::open(&config).unwrap();
    let mut live = Live::new(header("lard"), 2);
    for _ in 0..chunks {
        live.steps(60);
        let chunk = live.take();
        assert!(chunk.len() < 2000);
        if let Some(buffer) = writer.push(chunk) {
            live.core.witness_mut().recorder.recycle(buffer);
        }
        writer.flush();
    }
    assert_eq!((writer.dropped_chunks(), writer.errors(), writer.last_error()), (0, 0, None));
    writer
}

#[test]
fn old_files_go_and_the_replay_says_so() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path(), LogRetention::Rotate, 40).close();
    let sizes = sizes(directory.path());
    assert_eq!(sizes.len(), 3);
    assert!(sizes.iter().all(|(_, bytes)| *bytes <= 4096), "{sizes:?}");
    assert!(sizes[0].0.as_str() > "decisions-00000005.plog", "{sizes:?}");
    let proof = prove(directory.path());
    assert!(!proof.is_proved());
    assert_eq!(proof.missing.len(), 1);
    assert_eq!(proof.missing[0].1, Missing::Start);
    let (decisions, identical) = proof.decisions();
    assert!(decisions > 100 && identical > 0);
    assert_eq!(proof.runs[0].header.policy, "lard");
}

#[test]
fn a_log_told_to_stop_stops_and_stays_proved() {
    let directory = tempfile::tempdir().unwrap();
    let writer = fill(directory.path(), LogRetention::Stop, 40);
    assert!(writer.stopped());
    writer.close();
    let before = sizes(directory.path());
    assert_eq!(before.len(), 3);
    assert!(before.iter().all(|(_, bytes)| *bytes <= 4096 + 13), "{before:?}");
    let proof = prove(directory.path());
    assert!(proof.is_proved() && proof.full && !proof.ended);
    // There is no room for another log.
    let writer = fill(directory.path(), LogRetention::Stop, 2);
    assert!(writer.stopped());
    drop(writer);
    assert_eq!(sizes(directory.path()), before);
}

#[test]
fn one_log_follows_the_other_in_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    for policy in ["lard", "random"] {
        let mut live = Live::new(header(policy), 2);
        live.steps(200);
        write(directory.path(), [live.take()]);
    }
    // A writer that crashed before its first byte.
    fs::write(directory.path().join("decisions-00000003.plog"), b"PLO").unwrap();
    // Not ours.
    fs::write(directory.path().join("decisions-4.plog"), b"?").unwrap();
    fs::write(directory.path().join("notes.txt"), b"?").unwrap();
    let proof = prove(directory.path());
    assert!(!proof.is_proved() && proof.runs.iter().all(|run| run.whole && run.identical == run.decisions));
    assert_eq!(proof.runs.len(), 2);
    assert_eq!((proof.truncated.len(), proof.truncated[0].1, proof.endless.len()), (1, 3, 1));
    let names: Vec<_> = proof.runs.iter().map(|r| r.header.policy.as_str()).collect();
    assert_eq!(names, ["lard", "random"]);
    assert_eq!(prove(&directory.path().join("decisions-00000002.plog")).runs.len(), 1);
}

#[test]
fn two_writers_at_once_are_read_one_after_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let small = LogConfig { file_bytes: 4096, ..config(directory.path()) };
    let old = LogWriter::open(&small).unwrap();
    let mut before = Live::new(header("lard"), 2);
    let new = LogWriter::open(&small).unwrap();
    let mut after = Live::new(header("random"), 2);
    for _ in 0..8 {
        for (live, writer) in [(&mut before, &old), (&mut after, &new)] {
            live.steps(60);
            writer.push(live.take());
            writer.flush();
        }
    }
    drop((old, new));
    assert!(sizes(directory.path()).len() > 4);
    let proof = prove(directory.path());
    assert!(proof.is_proved(), "{proof:?}");
    assert_eq!(proof.runs.len(), 2);
}

#[test]
fn a_chunk_too_large_is_lost_and_the_log_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let writer = LogWriter::open(&config(directory.path())).unwrap();
    let mut live = Live::new(header("lard"), 2);
    live.steps(100);
    writer.push(live.take());
    live.steps(100);
    drop(live.take());
    writer.push(vec![0; (16 << 20) + 1]);
    live.steps(100);
    writer.push(live.take());
    writer.flush();
    assert_eq!((writer.dropped_chunks(), writer.errors()), (1, 1));
    assert!(writer.last_error().unwrap().contains("16 MiB"));
    // Lost at the end: known from the mark alone.
    writer.push(vec![0; (16 << 20) + 1]);
    writer.close();
    let items: Vec<LogItem> = LogReader::open(directory.path()).unwrap().map(Result::unwrap).collect();
    let marks: Vec<&LogItem> = items.iter().filter(|i| !matches!(i, LogItem::Event(_))).collect();
    assert!(matches!(marks[0], LogItem::Dropped { chunks: 1 }), "{marks:?}");
    assert!(
        matches!(marks[1], LogItem::Resumed { missing: Missing::Chunks(1), run: Some(_), .. }),
        "{marks:?}"
    );
    assert!(matches!(marks[2..], [LogItem::Dropped { chunks: 1 }, LogItem::Ended]), "{marks:?}");
    let proof = prove(directory.path());
    assert_eq!(proof.dropped_chunks, 2);
    assert!(!proof.is_proved());
}

#[test]
fn a_disk_that_fails_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("log");
    let writer = LogWriter::open(&LogConfig { file_bytes: 4096, ..config(&inner) }).unwrap();
    fs::remove_dir_all(&inner).unwrap();
    let mut live = Live::new(header("lard"), 2);
    for _ in 0..10 {
        live.steps(60);
        writer.push(live.take());
    }
    writer.flush();
    assert!(writer.errors() > 0 && writer.dropped_chunks() > 0);
    assert!(writer.last_error().unwrap().contains("log"), "{:?}", writer.last_error());
}

#[test]
fn configurations_without_sense_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let good = config(directory.path());
    let error = LogWriter::open(&LogConfig { files: 0, ..good.clone() }).err().unwrap().to_string();
    assert!(error.contains("at least 1 file"), "{error}");
    let error = LogWriter::open(&LogConfig { file_bytes: 100, ..good }).err().unwrap().to_string();
    assert!(error.contains("4096 bytes, not 100"), "{error}");
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = LogWriter::open(&config(&file)).err().unwrap().to_string();
    assert!(error.contains("file"), "{error}");
}
