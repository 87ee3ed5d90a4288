//! Responses, from the back-end to the client: whole, or visibly broken, and never somebody else's.

use std::time::Duration;

use super::common::origin::{Origin, echo};
use super::common::strict::{response, responses};
use super::common::{End, FrontEnd, get, noise};

/// The bytes that an origin answers `/N` with, by number, and whether it closes or resets the connection afterwards.
struct Script {
    pieces: Vec<Vec<u8>>,
    then: Then,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Keep,
    Close,
    Reset,
}

fn script(pieces: &[&str], then: Then) -> Script {
    Script { pieces: pieces.iter().map(|p| p.as_bytes().to_vec()).collect(), then }
}

/// An origin that follows the script whose number is the target, and echoes other requests.
fn scripted(scripts: Vec<Script>) -> Origin {
    Origin::scripted(move |conn| {
        while let Some(request) = conn.request() {
            let Some(script) = request.target()[1..].parse().ok().and_then(|n: usize| scripts.get(n)) else {
                conn.write(&echo(&request));
                continue;
            };
            for (i, piece) in script.pieces.iter().enumerate() {
                if i > 0 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                conn.write(piece);
            }
            match script.then {
                Then::Keep => {}
                Then::Close => return,
                Then::Reset => {
                    std::thread::sleep(Duration::from_millis(5));
                    return conn.reset();
                }
            }
        }
    })
}

#[test]
fn good_responses_in_every_framing() {
    const OK: &str = "HTTP/1.1 200 OK\r\n";
    let cases: Vec<(Script, &str, u16, &str)> = vec![
        (script(&[OK, "Content-Length: 5\r\n\r\nhe", "llo"], Then::Keep), "GET", 200, "hello"),
        (script(&[OK, "Content-Length: 5 \r\n", "\r\n", "hello"], Then::Close), "GET", 200, "hello"),
        (
            script(
                &[OK, "Transfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nhel\r\n2\r", "\nlo\r\n0\r\n\r\n"],
                Then::Keep,
            ),
            "GET",
            200,
            "hello",
        ),
        (
            script(
                &[OK, "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0", "\r\nX-T: 1\r\n\r\n"],
                Then::Keep,
            ),
            "GET",
            200,
            "hello",
        ),
        (script(&[OK, "\r\nhel", "lo"], Then::Close), "GET", 200, "hello"),
        (script(&["HTTP/1.0 200 OK\r\n\r\nhello"], Then::Close), "GET", 200, "hello"),
        (script(&["HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"], Then::Close), "GET", 200, "hello"),
        (
            script(
                &["HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello"],
                Then::Keep,
            ),
            "GET",
            200,
            "hello",
        ),
        (script(&[OK, "Content-Length: 5\r\n\r\n"], Then::Keep), "HEAD", 200, ""),
        (script(&[OK, "Transfer-Encoding: chunked\r\n\r\n"], Then::Keep), "HEAD", 200, ""),
        (script(&[OK, "\r\n"], Then::Keep), "HEAD", 200, ""),
        (script(&["HTTP/1.1 204 No Content\r\n\r\n"], Then::Keep), "GET", 204, ""),
        (script(&["HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"], Then::Keep), "GET", 204, ""),
        (
            script(&["HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\nETag: x\r\n\r\n"], Then::Keep),
            "GET",
            304,
            "",
        ),
        (script(&[OK, "Content-Length: 0\r\n\r\n"], Then::Keep), "GET", 200, ""),
        (
            script(
                &[
                    "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
                    OK,
                    "Content-Length: 2\r\n\r\nok",
                ],
                Then::Keep,
            ),
            "GET",
            200,
            "ok",
        ),
        (script(&["HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok"], Then::Keep), "GET", 200, "ok"),
        (
            script(
                &["HTTP/1.1 299 Anything at all\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"],
                Then::Close,
            ),
            "GET",
            299,
            "ok",
        ),
    ];
    let expected: Vec<_> = cases.iter().map(|(_, method, status, body)| (*method, *status, *body)).collect();
    let origin = scripted(cases.into_iter().map(|(script, ..)| script).collect());
    let front_end = FrontEnd::new(&[origin.address], "");
    for round in 0..2 {
        let mut kept = front_end.client();
        for (n, (method, status, body)) in expected.iter().enumerate() {
            kept.send(format!("{method} /{n} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let answer = kept.response(method);
            assert_eq!(
                (answer.status(), answer.body.as_slice()),
                (*status, body.as_bytes()),
                "{n} in {round}"
            );
            assert!(answer.one("date").is_some() && answer.all("connection").is_empty(), "{answer:?}");
            // To HTTP/1.0: never chunked, the connection closed unless its end is known otherwise.
            let (old, end) = front_end.talk(format!("{method} /{n} HTTP/1.0\r\n\r\n").as_bytes());
            let (answer, len) = response(&old, *method == "HEAD", true).unwrap().unwrap();
            assert_eq!(
                (answer.status(), answer.body.as_slice(), len),
                (*status, body.as_bytes(), old.len()),
                "{n}"
            );
            assert!(
                !answer.chunked && end == End::Closed && answer.one("connection") == Some("close"),
                "{answer:?}"
            );
            let mut old = front_end.client();
            old.send(format!("{method} /{n} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
            let (answer, keeps) = (
                old.response_or_end(method),
                expected[n].0 != "GET" || answer.one("content-length").is_some(),
            );
            assert_eq!(answer.body, body.as_bytes(), "{n}");
            let wanted = if keeps || *status == 204 || *status == 304 { "keep-alive" } else { "close" };
            if wanted == "keep-alive" || answer.one("content-length").is_none() {
                assert_eq!(answer.one("connection"), Some(wanted), "{n}: {answer:?}");
            }
        }
    }
    front_end.assert_idle();
}

#[test]
fn interim_responses_and_trailers_pass() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    let end = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n";
    let origin = scripted(vec![
        script(&[interim, "HTTP/1.1 102 Processing\r\n\r\n", end], Then::Keep),
        script(&[&interim.repeat(33), end], Then::Keep),
        script(&[&interim.repeat(3), end], Then::Keep),
    ]);
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    client.send(get("/0"));
    assert_eq!([client.any_response("GET").status(), client.any_response("GET").status()], [103, 102]);
    assert_eq!(client.response("GET").trailers, [("X-Sum".to_owned(), "1".to_owned())]);
    client.send(get("/1"));
    assert_eq!(client.response("GET").status(), 502);
    let (old, _) = front_end.talk(b"GET /2 HTTP/1.0\r\n\r\n");
    assert_eq!(responses(&old, &["GET"]).unwrap().len(), 1);
}

/// Responses that cannot be passed on as they are. With `true` the head is bad, so that nothing but 502 may be seen.
fn broken() -> Vec<(bool, Script)> {
    use Then::{Close, Keep, Reset};
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(300));
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "X: yyyyyyyyyyyyyyyyyyyy\r\n".repeat(20_000));
    let mut all = Vec::new();
    let heads: &[&str] = &[
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/1.1 200 OK\r\nX: a\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nX: a\rContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 999 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 abc OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 a\0b\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "ICY 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "garbage",
        "\0\x01\x02\u{ff}\r\n\r\n",
        "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "",
        "HTTP/1.1 200 OK\r\nContent-Le",
        &long,
        &many,
        &endless,
        // Framing that is seen to be wrong before anything has gone out.
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloo\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
    ];
    for head in heads {
        all.push((true, script(&[head], Close)));
    }
    all.push((true, script(&["HTTP/1.1 200 OK\r\nContent-"], Reset)));
    all.push((true, script(&[""], Reset)));
    let begun = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello";
    for then in [Close, Reset] {
        all.push((false, script(&[begun], then)));
        all.push((false, script(&[begun, "hello"], then)));
        all.push((false, script(&[chunked], then)));
        all.push((false, script(&[chunked, "\r\n"], then)));
        all.push((false, script(&[chunked, "\r\n0\r\n"], then)));
        all.push((false, script(&[chunked, "\r\n0\r\nX: y\r\n"], then)));
    }
    all.push((false, script(&["HTTP/1.1 200 OK\r\n\r\nhello"], Reset)));
    all.push((
        false,
        script(&[begun, "hello", "hello HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"], Keep),
    ));
    for bad in [
        "X\r\n0\r\n\r\n",
        "\r\nzz\r\n",
        "\r\n5\nhello",
        "\r\n0\r\nBad Name: x\r\n\r\n",
        "\r\n0\r\nContent-Length: 4\r\n\r\n",
    ] {
        all.push((false, script(&[chunked, bad], Keep)));
    }
    all.push((
        false,
        script(&[chunked, "\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"], Keep),
    ));
    all
}

#[test]
fn broken_responses_are_seen_to_be_broken() {
    let cases = broken();
    let bad_head: Vec<bool> = cases.iter().map(|(bad_head, _)| *bad_head).collect();
    let shown: Vec<String> = cases
        .iter()
        .map(|(_, s)| {
            s.pieces
                .iter()
                .map(|p| String::from_utf8_lossy(&p[..p.len().min(80)]).into_owned())
                .collect::<Vec<_>>()
                .join("|")
        })
        .collect();
    let origin = scripted(cases.into_iter().map(|(_, script)| script).collect());
    let front_end = FrontEnd::new(&[origin.address], "[limits]\nretries = 1\n");
    for (n, bad_head) in bad_head.iter().enumerate() {
        for version in ["1.1", "1.0"] {
            // POST, so that nothing is repeated.
            let text = format!(
                "POST /{n} HTTP/{version}\r\nHost: a\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"
            );
            let mut client = front_end.client();
            client.send(&text);
            client.send(get("/after"));
            let (answer, end) = client.rest_unless_quiet(Duration::from_millis(100));
            if *bad_head {
                let (first, _) = response(&answer, false, true).unwrap().unwrap();
                assert_eq!(first.status(), 502, "{n} {version}: {}", shown[n]);
            } else {
                let whole = response(&answer, false, false).ok().flatten();
                assert!(end == End::Reset, "{n} {version} {}: {end:?} {whole:?}", shown[n]);
                assert!(whole.is_none(), "{n} {version} {}: {whole:?}", shown[n]);
            }
            assert!(!answer.windows(6).any(|w| w == b"poison"), "{n}: {}", shown[n]);
            // Whoever comes next gets its own answer.
            let next = front_end.client().get(&format!("/next-{n}"));
            assert_eq!(next.body, format!("GET /next-{n}\n").as_bytes(), "{n}: {}", shown[n]);
        }
    }
}

#[test]
fn what_comes_unasked_poisons_no_connection() {
    let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
    let good = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let origin = scripted(vec![
        script(&[good, poison], Then::Keep),
        script(
            &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", poison],
            Then::Keep,
        ),
        script(&["HTTP/1.1 204 No Content\r\n\r\nbody?"], Then::Keep),
        script(&["HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello"], Then::Keep),
        script(&["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", poison], Then::Keep),
        script(&[good, "\r\n"], Then::Keep),
        script(
            &[
                "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
                "HTTP/1.1 408 Request Timeout\r\n\r\n",
            ],
            Then::Close,
        ),
    ]);
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    for n in 0..7 {
        for method in ["GET", "HEAD"] {
            client.send(format!("{method} /{n} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let status = client.response(method).status();
            assert!([200, 204, 304, 408].contains(&status), "{n}: {status}");
            std::thread::sleep(Duration::from_millis(30));
            for k in 0..3 {
                let next = client.get(&format!("/next-{n}-{k}"));
                assert_eq!(next.body, format!("GET /next-{n}-{k}\n").as_bytes());
            }
        }
    }
}

#[test]
fn large_bodies_arrive_byte_for_byte() {
    let body = noise(5_000_000, 3);
    let sent = body.clone();
    let origin = Origin::scripted(move |conn| {
        while let Some(request) = conn.request() {
            let mut parts = request.target()[1..].split('-');
            let (how, len) =
                (parts.next().unwrap().to_owned(), parts.next().unwrap().parse::<usize>().unwrap());
            let body = &sent[..len];
            match how.as_str() {
                "length" => {
                    conn.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n").as_bytes());
                    conn.write(body);
                }
                "chunked" => {
                    conn.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                    for (i, piece) in body.chunks(len / 20 + 1).enumerate() {
                        let extension = if i % 2 == 0 { ";x" } else { "" };
                        conn.write(
                            &[format!("{:x}{extension}\r\n", piece.len()).as_bytes(), piece, b"\r\n"]
                                .concat(),
                        );
                    }
                    conn.write(b"0\r\n\r\n");
                }
                _ => {
                    conn.write(b"HTTP/1.1 200 OK\r\n\r\n");
                    conn.write(body);
                    return;
                }
            }
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    for len in [100, 2048, 2049, 65_000, 65_536, 100_000, 1_000_000, 5_000_000] {
        for how in ["length", "chunked", "close"] {
            let target = format!("/{how}-{len}");
            assert!(client.get(&target).body == body[..len], "{target}");
            let (old, _) = front_end.talk(format!("GET {target} HTTP/1.0\r\n\r\n").as_bytes());
            assert!(response(&old, false, true).unwrap().unwrap().0.body == body[..len], "{target}");
        }
    }
}
