//! Requests that must not be passed on, and those that must: judged by what the back-end got.

use plimsoll_testkit::{Why, pace};

use super::common::origin::Origin;
use super::common::{End, FrontEnd, get, statuses};

/// Requests that are refused. `@` stands for a line end and `Host: a`; the empty line is in the text where it matters.
const REFUSED: &[(&str, &str)] = &[
    // Framing that two readers may see in two ways.
    ("400", "POST / HTTP/1.1@Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n"),
    ("400 501", "POST / HTTP/1.1@Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding: chunked\r\ntransfer-encoding:\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@ Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding: chunked\x0c\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding: chunked\0\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding:\n chunked\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding: 'chunked'\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
    ("501", "POST / HTTP/1.1@Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n"),
    ("501", "POST / HTTP/1.1@Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Transfer-Encoding: chunk\r\n\r\n0\r\n\r\n"),
    ("501", "POST / HTTP/1.1@Transfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
    ("501", "POST / HTTP/1.1@Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n"),
    ("501", "POST / HTTP/1.1@Transfer-Encoding: \r\n\r\n0\r\n\r\n"),
    ("501", "POST / HTTP/1.1@Transfer-Encoding: cow\r\nContent-Length: 3\r\n\r\nabc"),
    ("400", "POST / HTTP/1.0@Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.0@Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n"),
    ("400", "POST / HTTP/1.1@Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length: 3\r\nContent-Length: 0\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length: 3, 3\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length: 3,\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length: +3\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length: -3\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length: 3 3\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length: 0x3\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length: 3.0\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length: 3;a\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length: \"3\"\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length:\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length : 3\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length: 99999999999999999999999\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length: 18446744073709551619\r\n\r\nabc"),
    ("400", "POST / HTTP/1.1@Content-Length: \u{ff13}\r\n\r\nabc"),
    // Lines.
    ("400", "GET / HTTP/1.1@X: b\r\n folded\r\n\r\n"),
    ("400", "GET / HTTP/1.1@X: b\r\n\tfolded\r\n\r\n"),
    ("400", "GET / HTTP/1.1\r\n Host: a\r\nHost: a\r\n\r\n"),
    ("400", "GET / HTTP/1.1@X: a\rY: b\r\n\r\n"),
    ("400", "GET / HTTP/1.1@X: a\nY: b\r\n\r\n"),
    ("400", "GET / HTTP/1.1\nHost: a\n\n"),
    ("400", "GET / HTTP/1.1\rHost: a\r\r\n\r\n"),
    ("400", "GET / HTTP/1.1@X: a\r\r\n\r\n"),
    ("400", "GET / HTTP/1.1@X: y\r\n\nGET"),
    ("400", "GET / HTTP/1.1@X: a\0b\r\n\r\n"),
    ("400", "GET / HTTP/1.1@X\0Y: a\r\n\r\n"),
    ("400", "GET / HTTP/1.1@X: a\x7fb\r\n\r\n"),
    ("400", "GET / HTTP/1.1@X: a\x1bb\r\n\r\n"),
    ("400", "GET / HTTP/1.1@X : a\r\n\r\n"),
    ("400", "GET / HTTP/1.1@X Y: a\r\n\r\n"),
    ("400", "GET / HTTP/1.1@: a\r\n\r\n"),
    ("400", "GET / HTTP/1.1@X\r\n\r\n"),
    ("400", "GET / HTTP/1.1@X(y): a\r\n\r\n"),
    ("400", "GET / HTTP/1.1@\u{e9}: a\r\n\r\n"),
    ("400", "\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1@\r\n"),
    ("400", " GET / HTTP/1.1@\r\n"),
    ("400", "\tGET / HTTP/1.1@\r\n"),
    ("400", "GET  / HTTP/1.1@\r\n"),
    ("400 505", "GET /  HTTP/1.1@\r\n"),
    ("400", "GET\t/\tHTTP/1.1@\r\n"),
    ("400 505", "GET / HTTP/1.1 @\r\n"),
    ("400 505", "GET / x HTTP/1.1@\r\n"),
    ("400", "GET /\0 HTTP/1.1@\r\n"),
    ("400", "GET /\x7f HTTP/1.1@\r\n"),
    // Method, target, version.
    ("400", "G(T / HTTP/1.1@\r\n"),
    ("400", "G\u{e9}T / HTTP/1.1@\r\n"),
    ("400", "\0GET / HTTP/1.1@\r\n"),
    ("400", "/ HTTP/1.1@\r\n"),
    ("400", "GET HTTP/1.1@\r\n"),
    ("400", "GET /#fragment HTTP/1.1@\r\n"),
    ("400", "GET path HTTP/1.1@\r\n"),
    ("400", "GET * HTTP/1.1@\r\n"),
    ("400", "GET ftp://a/ HTTP/1.1@\r\n"),
    ("400", "GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("400", "GET http:///x HTTP/1.1@\r\n"),
    ("400", "GET http://b/ HTTP/1.1@\r\n"),
    ("400", "GET http://a:81/ HTTP/1.1@\r\n"),
    ("400", "GET http://a/#f HTTP/1.1@\r\n"),
    ("400 505", "GET http://a b/ HTTP/1.1@\r\n"),
    ("501", "CONNECT a:443 HTTP/1.1@\r\n"),
    ("501", "TRACE / HTTP/1.1@\r\n"),
    ("505", "GET / HTTP/2.0@\r\n"),
    ("505", "PRI * HTTP/2.0@\r\n"),
    ("505", "GET / HTTP/0.9@\r\n"),
    ("400 505", "GET / http/1.1@\r\n"),
    ("400 505", "GET / HTTP/1.10@\r\n"),
    ("400 505", "GET / HTTP/11@\r\n"),
    ("400 505", "GET / HTTP 1.1@\r\n"),
    ("400", "GET /\r\n\r\n"),
    // Host.
    ("400", "GET / HTTP/1.1\r\n\r\n"),
    ("400", "GET http://a/ HTTP/1.1\r\n\r\n"),
    ("400", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
    ("400", "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"),
    ("400", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
    ("400", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
    ("400", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    ("400", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
    ("400", "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n"),
    ("400", "GET / HTTP/1.1\r\nHost: a:999999\r\n\r\n"),
    ("400", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"),
    ("400", "GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n"),
    ("400", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"),
    // Expectations.
    ("417", "POST / HTTP/1.1@Expect: 200-ok\r\nContent-Length: 3\r\n\r\nabc"),
];

/// Bodies that turn out bad: behind `Transfer-Encoding: chunked`.
const BAD_CHUNKS: &[&str] = &[
    "x\r\nabc\r\n0\r\n\r\n",
    "\r\nabc\r\n0\r\n\r\n",
    "-3\r\nabc\r\n0\r\n\r\n",
    "+3\r\nabc\r\n0\r\n\r\n",
    "0x3\r\nabc\r\n0\r\n\r\n",
    " 3\r\nabc\r\n0\r\n\r\n",
    "3 \r\nabc\r\n0\r\n\r\n",
    "3\nabc\r\n0\r\n\r\n",
    "3\r\nabc\n0\r\n\r\n",
    "3\r\nabcd\r\n0\r\n\r\n",
    "3\r\nab\r\n0\r\n\r\n",
    "3\rabc\r\n0\r\n\r\n",
    "3;\r\nabc\r\n0\r\n\r\n",
    "3;a=\"b\r\nabc\r\n0\r\n\r\n",
    "3;a\nb\r\nabc\r\n0\r\n\r\n",
    "3;a\rb\r\nabc\r\n0\r\n\r\n",
    "3;a\0\r\nabc\r\n0\r\n\r\n",
    "3, 3\r\nabc\r\n0\r\n\r\n",
    "10000000000000003\r\nabc\r\n0\r\n\r\n",
    "FFFFFFFFFFFFFFFFFF\r\nabc\r\n0\r\n\r\n",
    "3\r\nabc\r\n0\r\nContent-Length: 5\r\n\r\n",
    "3\r\nabc\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "3\r\nabc\r\n0\r\nHost: b\r\n\r\n",
    "3\r\nabc\r\n0\r\nX : b\r\n\r\n",
    "3\r\nabc\r\n0\r\nX: b\r\n c\r\n\r\n",
    "3\r\nabc\r\n0\r\nX: b\nY: c\r\n\r\n",
    "3\r\nabc\r\n0\r\nX\r\n\r\n",
    "3\r\nabc\r\n0\r\n\n",
];

#[test]
fn what_is_not_a_request_is_refused_and_so_is_what_follows() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    for (number, (expected, text)) in REFUSED.iter().enumerate() {
        let mut bytes =
            text.replacen('@', "\r\nHost: a\r\n", usize::from(!text.contains("u:p@"))).into_bytes();
        bytes.extend_from_slice(get(&format!("/smuggled-{number}")).as_bytes());
        let mut client = front_end.client();
        client.send(&bytes);
        let (answer, end) = client.rest();
        let found = statuses(&answer, &["POST"]);
        assert!(found.len() == 1 && expected.contains(&found[0].to_string()), "{text:?}: {found:?}");
        assert_eq!(end, End::Closed, "{text:?}");
        assert_eq!(origin.take_lines(), [""; 0], "{text:?}");
    }
    front_end.client().get("/last");
    assert_eq!(origin.take_lines(), ["GET /last"]);
    drop(front_end);
    assert_eq!(origin.unfinished(), Vec::<Vec<u8>>::new());
}

#[test]
fn bad_chunks_never_make_a_whole_request() {
    for joined in [true, false] {
        let origin = Origin::echo();
        let front_end = FrontEnd::new(&[origin.address], "");
        for (number, chunks) in BAD_CHUNKS.iter().enumerate() {
            let mut client = front_end.client();
            let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
            let rest = format!("{chunks}{}", get(&format!("/smuggled-{number}")));
            if joined {
                client.send(format!("{head}{rest}"));
            } else {
                client.send(head);
                pace(std::time::Duration::from_millis(3), Why::Pieces);
                client.send(rest);
            }
            let (answer, _) = client.rest();
            assert_eq!(statuses(&answer, &["POST"]), [400], "{chunks:?}");
        }
        front_end.client().get("/last");
        assert_eq!(origin.take_lines(), ["GET /last"]);
        drop(front_end);
        for bytes in origin.unfinished() {
            assert!(!bytes.windows(8).any(|w| w == b"smuggled"), "{:?}", String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn sizes_beyond_the_limits() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "[limits]\nhead = \"2KiB\"\nfields = 20\n");
    let long = "x".repeat(3000);
    let huge = "x".repeat(60_000);
    let middle = "x".repeat(1500);
    for (expected, text) in [
        (414, format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n")),
        (414, format!("GET /{huge} HTTP/1.1\r\nHost: a\r\n\r\n")),
        (414, huge.clone()),
        (431, format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n")),
        (431, format!("GET / HTTP/1.1\r\nHost: a\r\n{huge}")),
        (431, format!("GET / HTTP/1.1\r\nHost: a\r\nX: {middle}\r\nY: {middle}\r\n\r\n")),
        (431, format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(20))),
        (
            400,
            format!(
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a={long}\r\nx\r\n0\r\n\r\n"
            ),
        ),
        (
            400,
            format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: {long}\r\n\r\n"),
        ),
        (
            400,
            format!(
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{}\r\n",
                "X: y\r\n".repeat(21)
            ),
        ),
    ] {
        let mut client = front_end.client();
        client.send(&text);
        let (answer, end) = client.rest();
        assert_eq!(statuses(&answer, &["POST"]), [expected], "{:?} {}", &text[..40], text.len());
        assert_ne!(end, End::Open);
    }
    assert_eq!(front_end.client().get(&format!("/{middle}")).status(), 200);
    assert_eq!(origin.take_lines(), [format!("GET /{middle}")]);
}

#[test]
fn what_is_a_request_gets_through() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    for (text, line) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /"),
        ("\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x"),
        ("GET /%2e%2E/?a=b&c=%23 HTTP/1.1\r\nHost: a:80\r\n\r\n", "GET /%2e%2E/?a=b&c=%23"),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS *"),
        ("OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS *"),
        ("OPTIONS http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS /"),
        ("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /"),
        ("GET HTTP://A:80/x?y HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x?y"),
        ("GET / HTTP/1.1\r\nhOST:a\t \r\n\r\n", "GET /"),
        ("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "GET /"),
        ("PURGE-1 / HTTP/1.1\r\nHost: a\r\n\r\n", "PURGE-1 /"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX:\r\nY: caf\u{e9}\r\nZ: a\tb\r\n\r\n", "GET /"),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n", "POST /"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:chunked \r\n\r\n3;a=b\r\nabc\r\n000\r\n\r\n",
            "POST /",
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 003 \r\n\r\nabc", "POST /"),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "POST /"),
        ("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: upgrade, http2-settings\r\n\r\n", "GET /"),
        ("GET / HTTP/1.0\r\n\r\n", "GET /"),
        ("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", "GET /"),
    ] {
        let (answer, end) = front_end.talk(text.as_bytes());
        assert_eq!((statuses(&answer, &["GET"]), end), (vec![200], End::Closed), "{text:?}");
        assert_eq!(origin.take_lines(), [line], "{text:?}");
    }
    let (answer, _) = front_end.talk(b"OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");
    assert_eq!(statuses(&answer, &["OPTIONS"]), [204]);
}
