//! Chunked bodies of requests: those that are held until they are whole, and those that go on as they come.

use std::time::Duration;

use plimsoll_testkit::{OwnLoopback, Why, eventually, pace};

use super::common::origin::Origin;
use super::common::strict::Message;
use super::common::{FrontEnd, get, noise};

fn head(method: &str, target: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
}

fn chunk(content: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", content.len()).as_bytes(), content, b"\r\n"].concat()
}

/// How the back-end was told of the body.
fn framing(request: &Message) -> (bool, Option<&str>) {
    (request.chunked, request.one("content-length"))
}

#[test]
fn a_whole_body_says_its_length() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    for (method, content, length) in [
        ("POST", &b""[..], Some("0")),
        ("POST", b"hello", Some("5")),
        ("PUT", &noise(5000, 1), Some("5000")),
        // However fast it comes.
        ("POST", &noise(600_000, 2), Some("600000")),
        ("GET", b"", None),
        ("GET", b"asked", Some("5")),
        ("DELETE", b"", None),
    ] {
        let body = if content.is_empty() { Vec::new() } else { chunk(content) };
        // The next request is behind it already.
        let next = get("/next");
        client.send([head(method, "/").as_bytes(), &body, b"0\r\n\r\n", next.as_bytes()].concat());
        let answer = client.response(method);
        assert!(answer.body == [format!("{method} /\n").as_bytes(), content].concat(), "{method}");
        assert_eq!(client.response("GET").body, b"GET /next\n");
        let seen = origin.take();
        assert_eq!(framing(&seen[0]), (false, length), "{method} {}", content.len());
    }
    assert_eq!(origin.connections(), 1);
}

#[test]
fn what_goes_on_in_chunks() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    let trailers = [head("POST", "/"), "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n".into(), get("/next")].concat();
    client.send(trailers);
    assert_eq!(client.response("POST").body, b"POST /\nhello");
    assert_eq!(client.response("GET").status(), 200);
    // More than may be held of one request.
    let large = noise((1 << 20) + 1, 3);
    client
        .send([head("POST", "/").as_bytes(), &chunk(&large), b"0\r\n\r\n", get("/next").as_bytes()].concat());
    assert!(client.response("POST").body == [b"POST /\n", &large[..]].concat());
    assert_eq!(client.response("GET").status(), 200);
    let seen = origin.take();
    assert_eq!(seen[0].trailers, [("X-Sum".to_owned(), "1".to_owned())]);
    assert!(seen.iter().filter(|request| request.method() == "POST").all(|request| request.chunked));
    assert_eq!(seen.len(), 4);
}

/// A body that a client sends piece by piece, never silent for a second: what the back-end has got of it, and whether it heard of it
/// before it was whole.
fn slowly() -> (Message, bool) {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    let body = noise(300_000, 5);
    client.send(head("POST", "/slow"));
    for piece in body.chunks(30_000) {
        pace(Duration::from_millis(150), Why::SlowPeer);
        client.send(chunk(piece));
    }
    let heard = origin.connections() > 0;
    client.send("0\r\n\r\n");
    assert!(client.response("POST").body == [b"POST /slow\n", &body[..]].concat());
    (origin.take().remove(0), heard)
}

#[test]
fn a_slow_client_keeps_no_back_end_waiting() {
    // On a busy machine the client may be silent for longer than it wants to.
    eventually("a body that is held until it is whole", || {
        let (request, heard) = slowly();
        assert!(heard || framing(&request) == (false, Some("300000")), "{:?}", request.fields);
        !heard
    });
}

#[test]
fn who_waits_for_a_word_of_the_back_end_gets_it() {
    let origin = Origin::scripted(|conn| {
        while conn.head() {
            conn.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nearly\r\n");
            let Some(request) = conn.request() else { return };
            let [body, end] = [chunk(&request.body), b"0\r\n\r\n".to_vec()];
            conn.write(&[body, end].concat());
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    let wire = [head("POST", "/"), "6\r\nhello,\r\n6\r\n world\r\n0\r\n\r\n".to_owned()].concat();
    let start = wire.find("\r\n\r\n").unwrap() + 4;
    for cut in [start, start + 1, start + 6, start + 11, wire.len() - 2] {
        let mut client = front_end.client();
        client.send(&wire[..cut]);
        client.read_until("early\r\n");
        client.send(&wire[cut..]);
        client.read_until("hello, world\r\n0\r\n\r\n");
        assert_eq!(framing(&origin.take()[0]), (true, None), "cut at {cut}");
    }
}

#[test]
fn a_body_that_was_held_goes_to_another_back_end_where_one_refuses_connections() {
    let origin = Origin::echo();
    // Nobody listens there.
    let own = OwnLoopback::new();
    let front_end = FrontEnd::new(&[own.at(8000), origin.address], "");
    let mut client = front_end.client();
    let body = noise(50_000, 9);
    for _ in 0..6 {
        client.send([head("POST", "/").as_bytes(), &chunk(&body), b"0\r\n\r\n"].concat());
        assert!(client.response("POST").body == [b"POST /\n", &body[..]].concat());
    }
    assert!(origin.take().iter().all(|request| request.body == body));
}
