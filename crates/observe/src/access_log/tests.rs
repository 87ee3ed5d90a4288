use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use plimsoll_config::AccessLogFormat;
use plimsoll_testkit::{PATIENCE, Why, eventually, pace, wait_for};

use super::*;

const LINES: usize = BUFFER_BYTES / 16;

/// A buffer of lines of 16 bytes, numbered on from `first`.
fn buffer(first: usize) -> Vec<u8> {
    (first..first + LINES).flat_map(|i| format!("{i:015}\n").into_bytes()).collect()
}

/// A log into a pipe that nobody reads, as full as it can be, and how many lines were handed over.
fn stuck() -> (AccessLogSender, std::io::PipeReader, usize) {
    let (reader, writer) = std::io::pipe().unwrap();
    let out = Output::new(File::from(OwnedFd::from(writer)), "pipe".into()).unwrap();
    let (sender, _thread) = start_with(Some(out)).unwrap();
    let (mut next, mut refused) = (0, 0);
    // The thread takes one more when the pipe has taken some.
    while refused < 10 {
        if sender.push(buffer(next)) {
            next += LINES;
        } else {
            refused += 1;
            pace(Duration::from_millis(20), Why::Midst);
        }
    }
    (sender, reader, next)
}

fn to_file(path: &Path) -> AccessLog {
    AccessLog { file: Some(path.to_owned()), format: AccessLogFormat::Combined }
}

#[test]
fn a_full_pipe_is_left_for_a_file() {
    let (sender, mut reader, pushed) = stuck();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.log");
    // Does not wait for a reader: there is none yet.
    sender.reopen(Some(to_file(&path)));
    sender.flush_within(PATIENCE);
    let mut piped = String::new();
    reader.read_to_string(&mut piped).unwrap();
    let filed = std::fs::read_to_string(path).unwrap();
    // Each line is here or there; one that was begun here does not go on there.
    let lines: Vec<usize> = piped
        .split_inclusive('\n')
        .filter(|l| l.ends_with('\n'))
        .chain(filed.lines())
        .map(|l| l.trim().parse().unwrap())
        .collect();
    assert!(!filed.is_empty() && lines.is_sorted());
    assert_eq!(lines.len() as u64 + sender.lost(), pushed as u64);
    assert!(sender.lost() <= 1);
}

#[test]
fn nothing_is_lost_when_a_full_pipe_is_read_after_all() {
    let (sender, mut reader, pushed) = stuck();
    // What cannot be opened leaves everything as it is, also in the middle of a line.
    sender.reopen(Some(to_file(Path::new("/"))));
    let read = std::thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    });
    sender.flush_within(PATIENCE);
    assert_eq!((sender.lost(), sender.common.waiting.load(Ordering::Relaxed)), (0, 0));
    drop(sender);
    let text = read.join().unwrap();
    assert!(text.lines().map(|l| l.parse::<usize>().unwrap()).eq(0..pushed));
}

#[test]
fn the_end_does_not_wait_for_a_reader() {
    let (sender, mut reader, pushed) = stuck();
    sender.flush_within(Duration::from_millis(300));
    // The thread ends, and with it its side of the pipe. Lines of the buffer under way count as lost.
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    let whole = text.matches('\n').count();
    assert!(sender.lost() as usize + whole >= pushed, "{} {whole} {pushed}", sender.lost());
    assert!((sender.lost() as usize) < pushed);
    eventually("the end of the thread", || !sender.push(buffer(0)));
}

#[test]
fn a_pipe_without_reader_counts_what_is_lost() {
    let (sender, reader, pushed) = stuck();
    drop(reader);
    sender.flush_within(PATIENCE);
    assert!(sender.lost() > 0 && sender.lost() <= pushed as u64);
    assert_eq!(sender.common.waiting.load(Ordering::Relaxed), 0);
}

fn fifo(directory: &Path) -> PathBuf {
    let path = directory.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    path
}

#[test]
fn a_fifo_needs_a_reader() {
    let directory = tempfile::tempdir().unwrap();
    let path = fifo(directory.path());
    let log = to_file(&path);
    let error = probe(Some(&log)).unwrap_err().to_string();
    assert!(error.ends_with("fifo: a FIFO that nobody reads; start its reader first"), "{error}");
    let reading = std::thread::spawn(move || std::fs::read(path).unwrap());
    // The reader comes some time after its thread.
    let (sender, _thread) = wait_for("a reader", || start(Some(&log)).ok());
    assert!(sender.push(buffer(0)));
    sender.flush();
    drop(sender);
    assert_eq!(reading.join().unwrap(), buffer(0));
}

#[test]
fn what_cannot_be_opened_is_named() {
    let error = probe(Some(&to_file(Path::new("/nowhere/log")))).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/log: "), "{error}");
    assert!(probe(None).is_ok());
}
