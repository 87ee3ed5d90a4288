//! Responses that are not as they should be, but can be read in one way only: the client gets them as they should have been.

use super::common::strict::response;
use super::common::{End, FrontEnd};
use super::responses::{Script, Then, script, scripted};

const POISON: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";

/// Scripts; the status and the content that the client is to get.
fn odd() -> Vec<(Script, u16, &'static str)> {
    let ok = |head: &str, rest: &str| script(&[&format!("HTTP/1.1 200 OK\r\n{head}\r\n"), rest], Then::Keep);
    let chunked = "Transfer-Encoding: chunked\r\n";
    let mut all: Vec<_> = [
        // Heads.
        script(&["HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"], Then::Keep),
        script(&["HTTP/1.1 200 OK\n", "Content-Length: 5\n", "\nhello"], Then::Keep),
        script(&["HTTP/1.1 200 OK\n\nhello"], Then::Close),
        script(&["HTTP/1.1 200 OK\r\nX: a\nContent-Length: 5\r\n\r\nhello"], Then::Keep),
        script(&["HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\nhello"], Then::Keep),
        ok("X: a\0b\x01c\x7f\r\nContent-Length: 5\r\n", "hello"),
        ok("X: a\r\n folded\r\n\t twice\r\nContent-Length: 5\r\n", "hello"),
        // Lengths and codings.
        ok("Content-Length: 5, 5\r\n", "hello"),
        ok("Content-Length: 5\r\nTransfer-Encoding: identity\r\n", "hello"),
        ok(&format!("Content-Length: 3\r\n{chunked}"), "5\r\nhello\r\n0\r\n\r\n"),
        ok(&format!("{chunked}Content-Length: 300\r\n"), "5\r\nhello\r\n0\r\n\r\n"),
        script(&["HTTP/1.0 200 OK\r\n", chunked, "\r\n5\r\nhello\r\n0\r\n\r\n"], Then::Close),
        // Chunks.
        ok(chunked, "5\nhello\n0\n\n"),
        ok(chunked, "5  \r\nhello\r\n0 \r\n\r\n"),
        ok(chunked, "5;a=b \r\nhello\r\n0\r\nX: y\r\n\r\n"),
        // More than belongs to it.
        ok("Content-Length: 5\r\n", "hello and more"),
        script(&[&format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello{POISON}")], Then::Keep),
        script(&["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "he", &format!("llo{POISON}")], Then::Keep),
        ok(chunked, &format!("5\r\nhello\r\n0\r\n\r\n{POISON}")),
    ]
    .into_iter()
    .map(|script| (script, 200, "hello"))
    .collect();
    for status in [600, 999] {
        let head = format!("HTTP/1.1 {status} Odd\r\nContent-Length: 5\r\n\r\nhello");
        all.push((script(&[&head], Then::Keep), status, "hello"));
    }
    let empty = format!("HTTP/1.1 204 No Content\r\n{chunked}\r\n0\r\n\r\n");
    all.push((script(&[&empty], Then::Keep), 204, ""));
    all
}

#[test]
fn what_can_be_read_in_one_way_only_is_passed_on() {
    let cases = odd();
    let shown: Vec<String> =
        cases.iter().map(|(s, ..)| s.pieces.concat().escape_ascii().to_string()).collect();
    let expected: Vec<(u16, &str)> = cases.iter().map(|(_, status, content)| (*status, *content)).collect();
    let origin = scripted(cases.into_iter().map(|(script, ..)| script).collect());
    let front_end = FrontEnd::new(&[origin.address], "[limits]\nretries = 1\n");
    for (n, (status, content)) in expected.iter().enumerate() {
        for version in ["1.1", "1.0"] {
            let mut client = front_end.client();
            client.send(format!(
                "POST /{n} HTTP/{version}\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            ));
            let (answer, end) = client.rest();
            let (message, used) = response(&answer, false, true).unwrap().unwrap();
            assert_eq!(message.status(), *status, "{n} {version}: {}", shown[n]);
            assert_eq!(message.body, content.as_bytes(), "{n} {version}: {}", shown[n]);
            assert_eq!((used, end), (answer.len(), End::Closed), "{n} {version}: {}", shown[n]);
            // Nothing of it is left for whoever comes next.
            let next = front_end.client().get(&format!("/next-{n}"));
            assert_eq!(next.body, format!("GET /next-{n}\n").as_bytes(), "{n}: {}", shown[n]);
        }
    }
}

#[test]
fn raw_characters_of_a_path_are_encoded_and_later_minor_versions_are_spoken_to() {
    let origin = super::common::origin::Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    for (line, seen) in [
        ("GET /sch\u{f6}n?q={\"a\":<1>} HTTP/1.1", "GET /sch%C3%B6n?q={%22a%22:%3C1%3E}"),
        ("GET /sch%C3%B6n?a|b^`\\ HTTP/1.1", "GET /sch%C3%B6n?a|b^`\\"),
        ("GET /later HTTP/1.2", "GET /later"),
    ] {
        let mut client = front_end.client();
        client.send(format!("{line}\r\nHost: a\r\nConnection: close\r\n\r\n"));
        let (answer, _) = client.rest();
        let (message, _) = response(&answer, false, true).unwrap().unwrap();
        assert_eq!((message.status(), message.body), (200, format!("{seen}\n").into_bytes()), "{line}");
    }
}
