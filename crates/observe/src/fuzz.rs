//! Fuzz targets: what clients write into the access log.

use std::time::Instant;

use plimsoll_config::AccessLogFormat;

use crate::line::{AccessLine, Moment, RequestLine, Times, write_line};

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[("access_log_line", line)];

/// Whatever a client sends is one line of printable text, in which it cannot end a value; as JSON it reads back.
fn line(bytes: &[u8]) {
    let mut parts = bytes.split(|&b| b == b'\n');
    let mut part = || parts.next().unwrap_or_default();
    let request = RequestLine { method: part(), target: part(), version: "HTTP/1.1" };
    let now = Instant::now();
    let line = AccessLine {
        routed: None,
        coded: None,
        hit: None,
        client: "192.0.2.1",
        request: Some(request),
        referer: Some(part()),
        user_agent: Some(bytes),
        status: 200,
        content_bytes: 7,
        policy: "lard",
        backend: Some("b1"),
        reason: None,
        refused: None,
        mechanism: Some("proxy"),
        attempts: 1,
        waited: false,
        times: Times { received: now, assigned: Some(now), first_byte: Some(now) },
        class: None,
    };
    let mut out = Vec::new();
    write_line(AccessLogFormat::Combined, &line, Moment { time: b"now", at: now }, &mut out);
    check_text(&out);
    assert_eq!(plain_quotes(&out), 6, "{}", out.escape_ascii());
    out.clear();
    write_line(AccessLogFormat::Json, &line, Moment { time: b"now", at: now }, &mut out);
    check_text(&out);
    let read: serde_json::Value = serde_json::from_slice(&out).expect("a line is JSON");
    assert_eq!(read.as_object().and_then(|o| o.get("status")?.as_u64()), Some(200));
}

fn check_text(line: &[u8]) {
    let (&last, rest) = line.split_last().expect("a line is not empty");
    assert_eq!(last, b'\n');
    assert!(rest.iter().all(|&b| (b' '..=b'~').contains(&b) || b >= 0x80), "{}", line.escape_ascii());
}

/// Quotes without a backslash before them.
fn plain_quotes(line: &[u8]) -> usize {
    let (mut quotes, mut escaped) = (0, false);
    for &byte in line {
        quotes += usize::from(byte == b'"' && !escaped);
        escaped = byte == b'\\' && !escaped;
    }
    quotes
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_and_mutations_of_it() {
        let corpus = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
        plimsoll_testkit::replay_corpus(super::TARGETS, corpus, 200);
    }
}
