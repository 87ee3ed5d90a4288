//! Responses, from the back-end to the client: whole, or visibly broken, and never somebody else's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_testkit::{Why, eventually, pace};

use super::common::origin::{Origin, echo};
use super::common::strict::{response, responses};
use super::common::{End, FrontEnd, get, noise};

/// The bytes that an origin answers `/N` with, by number, and whether it closes or resets the connection afterwards.
pub(crate) struct Script {
    pub(crate) pieces: Vec<Vec<u8>>,
    then: Then,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Keep,
    Close,
    Reset,
}

pub(crate) fn script(pieces: &[&str], then: Then) -> Script {
    Script { pieces: pieces.iter().map(|p| p.as_bytes().to_vec()).collect(), then }
}

/// An origin that follows the script whose number is the target, and echoes other requests.
pub(crate) fn scripted(scripts: Vec<Script>) -> Origin {
    scripted_counting(scripts, Arc::default())
}

/// The same; `written` counts scripts of which all pieces are written.
fn scripted_counting(scripts: Vec<Script>, written: Arc<AtomicUsize>) -> Origin {
    Origin::scripted(move |conn| {
        while let Some(request) = conn.request() {
            let Some(script) = request.target()[1..].parse().ok().and_then(|n: usize| scripts.get(n)) else {
                conn.write(&echo(&request));
                continue;
            };
            for (i, piece) in script.pieces.iter().enumerate() {
                if i > 0 {
                    pace(Duration::from_millis(5), Why::Pieces);
                }
                conn.write(piece);
            }
            written.fetch_add(1, Ordering::Relaxed);
            match script.then {
                Then::Keep => {}
                Then::Close => return,
                Then::Reset => {
                    pace(Duration::from_millis(5), Why::Pieces);
                    return conn.reset();
                }
            }
        }
    })
}

type Good = ((&'static [&'static str], Then), &'static str, u16, &'static str);

const OK: &str = "HTTP/1.1 200 OK\r\n";

/// Responses, the method that they answer, and status and content that the client gets.
const GOOD: &[Good] = &[
    ((&[OK, "Content-Length: 5\r\n\r\nhe", "llo"], Then::Keep), "GET", 200, "hello"),
    ((&[OK, "Content-Length: 5 \r\n", "\r\n", "hello"], Then::Close), "GET", 200, "hello"),
    (
        (&[OK, "Transfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nhel\r\n2\r", "\nlo\r\n0\r\n\r\n"], Then::Keep),
        "GET",
        200,
        "hello",
    ),
    (
        (&[OK, "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0", "\r\nX-T: 1\r\n\r\n"], Then::Keep),
        "GET",
        200,
        "hello",
    ),
    ((&[OK, "\r\nhel", "lo"], Then::Close), "GET", 200, "hello"),
    ((&["HTTP/1.0 200 OK\r\n\r\nhello"], Then::Close), "GET", 200, "hello"),
    ((&["HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"], Then::Close), "GET", 200, "hello"),
    (
        (&["HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello"], Then::Keep),
        "GET",
        200,
        "hello",
    ),
    ((&[OK, "Content-Length: 5\r\n\r\n"], Then::Keep), "HEAD", 200, ""),
    ((&[OK, "Transfer-Encoding: chunked\r\n\r\n"], Then::Keep), "HEAD", 200, ""),
    ((&[OK, "\r\n"], Then::Keep), "HEAD", 200, ""),
    ((&["HTTP/1.1 204 No Content\r\n\r\n"], Then::Keep), "GET", 204, ""),
    ((&["HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"], Then::Keep), "GET", 204, ""),
    ((&["HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\nETag: x\r\n\r\n"], Then::Keep), "GET", 304, ""),
    ((&[OK, "Content-Length: 0\r\n\r\n"], Then::Keep), "GET", 200, ""),
    (
        (
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
    ((&["HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok"], Then::Keep), "GET", 200, "ok"),
    (
        (&["HTTP/1.1 299 Anything at all\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"], Then::Close),
        "GET",
        299,
        "ok",
    ),
];

#[test]
fn good_responses_in_every_framing() {
    let origin = scripted(GOOD.iter().map(|((pieces, then), ..)| script(pieces, *then)).collect());
    let front_end = FrontEnd::new(&[origin.address], "");
    for round in 0..2 {
        let mut kept = front_end.client();
        for (n, &(_, method, status, body)) in GOOD.iter().enumerate() {
            let wanted = (status, body.as_bytes());
            kept.send(format!("{method} /{n} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let answer = kept.response(method);
            assert_eq!((answer.status(), answer.body.as_slice()), wanted, "{n} in {round}");
            assert!(answer.one("date").is_some() && answer.all("connection").is_empty(), "{answer:?}");
            // To HTTP/1.0: never chunked, the connection closed unless its end is known otherwise.
            let (old, end) = front_end.talk(format!("{method} /{n} HTTP/1.0\r\n\r\n").as_bytes());
            let (answer, len) = response(&old, method == "HEAD", true).unwrap().unwrap();
            assert_eq!(
                (answer.status(), answer.body.as_slice(), len),
                (status, body.as_bytes(), old.len()),
                "{n}"
            );
            assert!(
                !answer.chunked && end == End::Closed && answer.one("connection") == Some("close"),
                "{answer:?}"
            );
            let mut old = front_end.client();
            old.send(format!("{method} /{n} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
            let answer = old.response_or_end(method);
            assert_eq!((answer.status(), answer.body.as_slice()), wanted, "{n}");
            let bodiless = method == "HEAD" || status == 204 || status == 304;
            let keeps = bodiless || answer.one("content-length").is_some();
            assert_eq!(
                answer.one("connection"),
                Some(if keeps { "keep-alive" } else { "close" }),
                "{n}: {answer:?}"
            );
        }
    }
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

#[test]
fn what_comes_unasked_poisons_no_connection() {
    let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
    let good = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let scripts = vec![
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
    ];
    let written = Arc::new(AtomicUsize::new(0));
    let origin = scripted_counting(scripts, Arc::clone(&written));
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    for n in 0..7 {
        for (m, method) in ["GET", "HEAD"].into_iter().enumerate() {
            client.send(format!("{method} /{n} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let status = client.response(method).status();
            assert!([200, 204, 304, 408].contains(&status), "{n}: {status}");
            // What comes when the next request is under way already is an answer to it: nobody can tell.
            eventually("the bytes behind the answer", || written.load(Ordering::Relaxed) > 2 * n + m);
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
