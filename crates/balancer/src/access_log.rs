//! The access log: workers gather lines, a thread of its own writes them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use plimsoll_config::{AccessLog, AccessLogFormat};
use serde::Serialize;

use crate::http::Version;
use crate::http::request::Span;
use crate::observe::Record;

/// Buffers of lines that may wait for the disk; more are lost and counted.
const BUFFERS_IN_FLIGHT: usize = 64;
/// A worker hands its lines over when there are this many bytes.
pub(crate) const BUFFER_BYTES: usize = 32 << 10;

enum Message {
    Lines(Vec<u8>),
    Reopen(Option<AccessLog>),
    Flush(SyncSender<()>),
}

/// Where lines go. Cheap to clone; each worker has one.
#[derive(Clone)]
pub(crate) struct AccessLogSender(SyncSender<Message>);

impl AccessLogSender {
    /// Hands lines over without waiting; false when they are lost.
    pub(crate) fn push(&self, lines: Vec<u8>) -> bool {
        self.0.try_send(Message::Lines(lines)).is_ok()
    }

    /// Closes the file and opens what the configuration says now.
    pub(crate) fn reopen(&self, config: Option<AccessLog>) {
        drop(self.0.send(Message::Reopen(config)));
    }

    /// Returns once everything handed over before is written.
    pub(crate) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.0.send(Message::Flush(done)).is_ok() {
            drop(wait.recv());
        }
    }
}

/// Opens the log and starts the thread that writes it.
///
/// # Errors
/// When the file cannot be opened.
pub(crate) fn start(config: Option<&AccessLog>) -> io::Result<(AccessLogSender, JoinHandle<()>)> {
    let out = open(config)?;
    let (sender, messages) = sync_channel(BUFFERS_IN_FLIGHT);
    let thread = std::thread::Builder::new().name("access-log".into()).spawn(move || write(out, &messages))?;
    Ok((AccessLogSender(sender), thread))
}

/// Whether a log that is configured like this can be opened.
///
/// # Errors
/// Those of opening it.
pub(crate) fn probe(config: Option<&AccessLog>) -> io::Result<()> {
    open(config).map(drop)
}

enum Out {
    Nowhere,
    Stdout,
    File(File, PathBuf),
}

fn open(config: Option<&AccessLog>) -> io::Result<Out> {
    match config {
        None => Ok(Out::Nowhere),
        Some(AccessLog { file: None, .. }) => Ok(Out::Stdout),
        Some(AccessLog { file: Some(path), .. }) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
            Ok(Out::File(file.map_err(named)?, path.clone()))
        }
    }
}

fn write(mut out: Out, messages: &Receiver<Message>) {
    let mut complained = false;
    while let Ok(message) = messages.recv() {
        let result = match message {
            Message::Lines(lines) => match &mut out {
                Out::Nowhere => Ok(()),
                Out::Stdout => io::stdout().lock().write_all(&lines),
                Out::File(file, _) => file.write_all(&lines),
            },
            Message::Reopen(config) => open(config.as_ref()).map(|opened| {
                out = opened;
                complained = false;
            }),
            Message::Flush(done) => {
                drop(done.send(()));
                Ok(())
            }
        };
        if let Err(error) = result
            && !complained
        {
            complained = true;
            let file = if let Out::File(_, path) = &out { path.display().to_string() } else { "stdout".into() };
            tracing::error!(%error, file, "cannot write the access log");
        }
    }
}

/// Appends the line for a request that ended just now. `time` is that time in the format's own notation.
pub(crate) fn line(format: AccessLogFormat, record: &Record<'_>, policy: &str, time: &str, out: &mut Vec<u8>) {
    match format {
        AccessLogFormat::Combined => combined(record, time, out),
        AccessLogFormat::Json => json(record, policy, time, out),
    }
}

/// Method, target and version; nothing for a request that was not understood.
fn request_line<'a>(record: &Record<'a>) -> (&'a [u8], &'a [u8], &'static str) {
    let Some(head) = record.head else { return (b"", b"", "") };
    let line = head.line.of(record.head_bytes);
    let space = memchr::memchr(b' ', line).unwrap_or(line.len());
    let target = line.get(space + 1..).unwrap_or_default();
    (&line[..space], target, if head.version == Version::Http11 { "HTTP/1.1" } else { "HTTP/1.0" })
}

fn combined(record: &Record<'_>, time: &str, out: &mut Vec<u8>) {
    let (method, target, version) = request_line(record);
    out.extend_from_slice(record.peer.as_bytes());
    out.extend_from_slice(b" - - [");
    out.extend_from_slice(time.as_bytes());
    out.extend_from_slice(b"] \"");
    if version.is_empty() {
        out.push(b'-');
    } else {
        quoted(method, out);
        out.push(b' ');
        quoted(target, out);
        out.push(b' ');
        out.extend_from_slice(version.as_bytes());
    }
    out.extend_from_slice(b"\" ");
    crate::http::fields::push_number(out, u64::from(record.status));
    out.push(b' ');
    crate::http::fields::push_number(out, record.content_bytes);
    for span in [record.head.map(|h| h.referer), record.head.map(|h| h.user_agent)] {
        out.extend_from_slice(b" \"");
        match span {
            Some(span) if span != Span::default() => quoted(span.of(record.head_bytes), out),
            _ => out.push(b'-'),
        }
        out.push(b'"');
    }
    out.push(b'\n');
}

/// As Apache writes what stands between quotes.
fn quoted(bytes: &[u8], out: &mut Vec<u8>) {
    for &b in bytes {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', b]),
            b' '..=b'~' => out.push(b),
            _ => out.extend_from_slice(format!("\\x{b:02x}").as_bytes()),
        }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    time: &'a str,
    client: &'a str,
    method: std::borrow::Cow<'a, str>,
    target: std::borrow::Cow<'a, str>,
    version: &'static str,
    status: u16,
    bytes: u64,
    policy: &'a str,
    backend: Option<&'a str>,
    reason: Option<&'static str>,
    attempts: u32,
    waited: bool,
    assign_s: Option<f64>,
    first_byte_s: Option<f64>,
    total_s: f64,
    referer: std::borrow::Cow<'a, str>,
    user_agent: std::borrow::Cow<'a, str>,
}

fn json(record: &Record<'_>, policy: &str, time: &str, out: &mut Vec<u8>) {
    let text = String::from_utf8_lossy;
    let (method, target, version) = request_line(record);
    let span = |span: Option<Span>| text(span.unwrap_or_default().of(record.head_bytes));
    let times = &record.times;
    let since = |from, to: std::time::Instant| to.saturating_duration_since(from).as_secs_f64();
    let line = Line {
        time,
        client: record.peer,
        method: text(method),
        target: text(target),
        version,
        status: record.status,
        bytes: record.content_bytes,
        policy,
        backend: record.backend.map(|b| &*b.name),
        reason: record.reason.map(crate::dispatch::Reason::name),
        attempts: record.attempts,
        waited: record.waited,
        assign_s: times.assigned.map(|at| since(times.received, at)),
        first_byte_s: times.assigned.zip(times.first_byte).map(|(from, to)| since(from, to)),
        total_s: times.received.elapsed().as_secs_f64(),
        referer: span(record.head.map(|h| h.referer)),
        user_agent: span(record.head.map(|h| h.user_agent)),
    };
    if serde_json::to_writer(&mut *out, &line).is_ok() {
        out.push(b'\n');
    }
}
