//! What access logs mean: which requests count, with which target and size.

use plimsoll_trace::{AnswerKind, Include, ReadOptions, Trace, formats};

use crate::helpers::{listed, load_bytes, load_path, load_text, real_trace, stamped};

/// A common log line; every line is a second after the one before.
fn line(second: u64, request: &str, rest: &str) -> String {
    format!("h - - [01/Jul/1995:00:00:{second:02} +0000] \"{request}\" {rest}\n")
}

fn lines(requests: &[(&str, &str)]) -> String {
    requests.iter().zip(0..).map(|((request, rest), second)| line(second, request, rest)).collect()
}

#[test]
fn sizes_are_the_bodies_sent() {
    let trace = load_text(&lines(&[
        ("GET /a HTTP/1.0", "200 100"),
        ("HEAD /a HTTP/1.0", "200 100"),
        ("GET /a HTTP/1.0", "304 250"),
        ("GET /a HTTP/1.0", "206 900"),
        ("GET /b HTTP/1.0", "206 70"),
        ("GET /c HTTP/1.0", "200 -"),
    ]))
    .unwrap();
    let sizes: Vec<u64> = listed(&trace).iter().map(|r| r.2).collect();
    assert_eq!(sizes, [100, 0, 0, 900, 70, 0]);
    let documents: Vec<u64> = (0..3).map(|id| trace.targets.document_size_bytes(id)).collect();
    assert_eq!(documents, [100, 70, 0]);
    assert_eq!(trace.targets.requests(0), 4);
}

#[test]
fn other_methods_and_statuses_do_not_count() {
    let text = lines(&[
        ("GET /a HTTP/1.0", "200 1"),
        ("POST /a HTTP/1.0", "200 2"),
        ("GET /missing HTTP/1.0", "404 3"),
        ("GET /missing HTTP/1.0", "404 3"),
        ("-", "408 -"),
        ("\\x16\\x03\\x01", "400 157"),
        ("POST /b HTTP/1.0", "500 4"),
    ]);
    let trace = load_text(&text).unwrap();
    assert_eq!((trace.len(), trace.report.lines, trace.report.lines_rejected), (1, 7, 0));
    let counts: Vec<_> = trace.report.not_counted.into_iter().collect();
    let expected =
        [("method POST", 1), ("status 400", 1), ("status 404", 2), ("status 408", 1), ("status 500", 1)];
    assert_eq!(counts, expected.map(|(reason, count)| (reason.to_owned(), count)));

    let options = ReadOptions { include: Include::All, ..ReadOptions::default() };
    let trace = load_bytes(text.as_bytes(), &options).unwrap();
    assert_eq!(trace.len(), 5);
    assert_eq!(trace.report.not_counted["no usable target"], 2);
    assert_eq!(trace.targets.len(), 3);
}

#[test]
fn what_is_answered_and_the_version_are_kept() {
    let text = lines(&[
        ("GET /a HTTP/1.0", "200 100"),
        ("GET /a HTTP/1.1", "304 -"),
        ("GET /b HTTP/1.1", "206 7"),
        ("GET /missing HTTP/1.1", "404 3"),
        ("GET /old", "200 3"),
    ]);
    let kept = |trace: &Trace| -> Vec<_> { stamped(trace).iter().map(|r| (r.answer, r.http11)).collect() };
    use AnswerKind::{Document, Invalid, NotModified};
    let trace = load_text(&text).unwrap();
    assert_eq!(kept(&trace), [(Document, false), (NotModified, true), (Document, true), (Document, false)]);
    let options = ReadOptions { include: Include::All, ..ReadOptions::default() };
    let trace = load_bytes(text.as_bytes(), &options).unwrap();
    assert_eq!(kept(&trace)[3], (Invalid, true));
}

/// Counted apart from this code: `python3 -c` over the records, 304s by the low six bits of the status, versions by the top two.
#[test]
fn the_world_cup_logs_tell_both() {
    let Some(path) = real_trace("worldcup98_test_log.gz") else { return };
    let trace = load_path(&path, &ReadOptions::default()).unwrap();
    let all = stamped(&trace);
    let not_modified = all.iter().filter(|r| r.answer == AnswerKind::NotModified).count();
    let http11 = all.iter().filter(|r| r.http11).count();
    assert_eq!((not_modified, http11), (152, 105));
}

#[test]
fn unusual_request_lines_are_understood() {
    let trace = load_text(&lines(&[
        ("GET /a.mpg", "200 946425"),
        ("GET /a\\\"b\\\".html HTTP/1.0", "200 2"),
        ("GET /say\"hello\".html HTTP/1.0", "200 3"),
        ("GET /my file.html HTTP/1.0", "200 4"),
        ("GET http://www.example.org/%7euser?q#top HTTP/1.1", "200 5"),
        ("GET /back\\\\ HTTP/1.0", "200 6"),
    ]))
    .unwrap();
    let names: Vec<String> = listed(&trace).into_iter().map(|r| r.1).collect();
    assert_eq!(
        names,
        ["/a.mpg", "/a\\\"b\\\".html", "/say\"hello\".html", "/my file.html", "/~user?q", "/back\\\\"]
    );
}

#[test]
fn queries_can_be_left_out() {
    let text = lines(&[("GET /a?1 HTTP/1.0", "200 1"), ("GET /a?2 HTTP/1.0", "200 1")]);
    assert_eq!(load_text(&text).unwrap().targets.len(), 2);
    let options = ReadOptions { strip_query: true, ..ReadOptions::default() };
    let trace = load_bytes(text.as_bytes(), &options).unwrap();
    assert_eq!((trace.targets.len(), trace.targets.name(0)), (1, &b"/a"[..]));
}

#[test]
fn broken_lines_are_counted_and_shown() {
    let mut text = lines(&[("GET /a HTTP/1.0", "200 1"); 59]);
    let broken = [
        "rubbish\n".to_owned(),
        "h - - [01/Jul/1995:00:00:01 +0000]\n".to_owned(),
        "h - - [01/Foo/1995:00:00:01 +0000] \"GET / HTTP/1.0\" 200 1\n".to_owned(),
        line(1, "GET / HTTP/1.0", "200 "),
        line(1, "GET / HTTP/1.0", "200 9007199254740993"),
        line(1, "GET", "200 1"),
        line(1, "get / HTTP/1.0", "200 1"),
        line(1, "GET HTTP/1.0", "200 1"),
        line(1, "GET index.html HTTP/1.0", "200 1"),
        line(1, &format!("GET /{} HTTP/1.0", "x".repeat(70_000)), "200 1"),
        "h - - [01/Jul/1995:00:00:01\n".to_owned(),
    ];
    text.push_str(&broken.concat());
    let options = ReadOptions { max_bad_ratio: 0.2, ..ReadOptions::default() };
    let trace = load_bytes(text.as_bytes(), &options).unwrap();
    assert_eq!((trace.len(), trace.report.lines_rejected), (59, 11));
    let reasons: Vec<_> = trace.report.rejections.iter().map(|r| (r.line, r.reason.as_str())).collect();
    assert_eq!(
        reasons,
        [
            (60, "line is not an access log line"),
            (61, "time stamp is not followed by a request in quotes"),
            (62, "time stamp is not of the form dd/Mon/yyyy:hh:mm:ss +hhmm"),
            (63, "request is not followed by a status and a size"),
            (64, "size is beyond 2^53 bytes"),
            (65, "request has no target"),
            (66, "request does not start with a method"),
            (67, "request has no target"),
            (68, "target is neither a path nor a URL"),
            (69, "line or record is longer than 65536 bytes"),
        ]
    );
}

#[test]
fn times_that_go_back_are_sorted_within_the_window() {
    let text = [
        "h - - [01/Jul/1995:00:20:00 +0000] \"GET /a HTTP/1.0\" 200 1\n",
        "h - - [01/Jul/1995:00:10:00 +0000] \"GET /b HTTP/1.0\" 200 1\n",
        "h - - [01/Jul/1995:00:15:00 +0000] \"GET /c HTTP/1.0\" 200 1\n",
        "h - - [01/Jul/1995:00:09:59 +0000] \"GET /d HTTP/1.0\" 200 1\n",
    ]
    .concat();
    let options = ReadOptions { max_bad_ratio: 0.3, ..ReadOptions::default() };
    let trace = load_bytes(text.as_bytes(), &options).unwrap();
    let names: Vec<String> = listed(&trace).into_iter().map(|r| r.1).collect();
    assert_eq!(names, ["/b", "/c", "/a"]);
    assert_eq!(trace.report.out_of_order, 1);
    assert!(trace.report.stamp_assumption.contains("Apache"));
    assert_eq!(
        trace.report.rejections[0].reason,
        "time goes backwards by 601 s, more than can be sorted within the window of 600 s"
    );
    // A refused line leaves no trace in the table.
    assert_eq!(trace.targets.len(), 3);
    let narrow = ReadOptions { reorder_window_s: 60, max_bad_ratio: 0.9, ..ReadOptions::default() };
    assert_eq!(load_bytes(text.as_bytes(), &narrow).unwrap().len(), 1);
}

#[test]
fn clients_and_zones_are_told_apart() {
    let text = "a - - [01/Jul/1995:02:00:00 +0200] \"GET / HTTP/1.0\" 200 1\n\
                b x \"y [z\" [01/Jul/1995:00:00:01 +0000] \"GET / HTTP/1.0\" 200 1\n\
                a - john doe [01/Jul/1995:00:00:02 +0000] \"GET / HTTP/1.0\" 200 1 \"-\" \"M\n";
    // The second line's user name holds a bracket, which no date follows.
    let trace = load_text(text).unwrap();
    assert_eq!(trace.report.format, Some(formats::log::COMBINED));
    let times: Vec<u64> = listed(&trace).iter().map(|r| r.0 / 1_000_000_000).collect();
    assert_eq!(times, [804_556_800, 804_556_801, 804_556_802]);
    assert_eq!((trace.report.clients, trace.report.lines_rejected), (2, 0));
}

#[test]
fn the_limit_counts_records() {
    let text = lines(&[
        ("GET /a HTTP/1.0", "404 1"),
        ("GET /b HTTP/1.0", "200 1"),
        ("GET /c HTTP/1.0", "200 1"),
        ("GET /d HTTP/1.0", "200 1"),
    ]);
    let options = ReadOptions { limit: Some(2), ..ReadOptions::default() };
    let trace = load_bytes(text.as_bytes(), &options).unwrap();
    let whole = load_text(&text).unwrap();
    assert_eq!((trace.len(), trace.targets.len()), (2, 2));
    // The digest is that of the whole file nonetheless.
    assert_eq!(trace.report.sha256, whole.report.sha256);
}
