//! Clients that send or read slowly are no load: they keep nobody out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_testkit::eventually;

use super::common::origin::{Origin, echo};
use super::common::{Client, FrontEnd, get, noise};

/// Two requests may be under way, and none waits. No time-out makes room.
const NARROW: &str = "[admission]\nlimit = 2\nqueue = 0\n\
    [timeouts]\nhead = \"1h\"\nbody = \"1h\"\nfirst_byte = \"1h\"\n";

/// How many of `clients` wait for the rest of a request of theirs.
fn open(front_end: &FrontEnd, clients: usize, bytes: &str) -> Vec<Client> {
    let open = |_| {
        let mut client = front_end.client();
        assert!(client.send(bytes));
        client
    };
    (0..clients).map(open).collect()
}

#[test]
fn small_bodies_are_read_before_a_back_end_is_chosen() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], NARROW);
    let half = "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\nhello";
    let slow = open(&front_end, 50, half);
    for _ in 0..20 {
        assert_eq!(front_end.client().get("/").status(), 200);
    }
    assert_eq!(origin.take_lines(), vec!["GET /"; 20]);
    for mut client in slow {
        client.send("x".repeat(9995));
        assert_eq!(client.response("POST").status(), 200);
    }
    assert!(origin.take().iter().all(|request| request.body.len() == 10_000));
}

#[test]
fn larger_bodies_are_held_until_they_are_whole() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], NARROW);
    let body = noise(1 << 20, 7);
    let (first, last) = body.split_at(100_000);
    let slow = open(&front_end, 8, "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n");
    let begin = |mut client: Client| {
        client.send(first);
        client
    };
    let slow: Vec<Client> = slow.into_iter().map(begin).collect();
    for _ in 0..20 {
        assert_eq!(front_end.client().get("/").status(), 200);
    }
    assert_eq!(origin.take_lines(), vec!["GET /"; 20]);
    for mut client in slow {
        // The next request is behind it already.
        client.send([last, get("/next").as_bytes()].concat());
        assert_eq!(client.response("POST").status(), 200);
        assert_eq!(client.response("GET").status(), 200);
    }
    assert!(origin.take().iter().all(|request| request.target() == "/next" || request.body == body));
}

#[test]
fn no_more_is_held_than_may_be() {
    let origin = Origin::echo();
    // For one request 20 KiB.
    let front_end = FrontEnd::new(&[origin.address], "[limits]\nheld = \"640KiB\"\n");
    let head = |bytes| format!("POST /{bytes} HTTP/1.1\r\nHost: a\r\nContent-Length: {bytes}\r\n\r\n");
    let mut large = open(&front_end, 1, &head(20_481)).remove(0);
    eventually("a body too large to be held", || origin.connections() == 1);
    let mut held = Vec::new();
    for _ in 0..32 {
        let mut client = open(&front_end, 1, &head(20_000)).remove(0);
        // The front-end has begun with it.
        client.send("x".repeat(17_000));
        held.push(client);
    }
    assert_eq!(front_end.client().get("/").status(), 200);
    let mut late = open(&front_end, 1, &head(20_480)).remove(0);
    late.send("x".repeat(17_000));
    eventually("the one for which no memory is left", || origin.connections() == 3);
    late.send("x".repeat(3_480));
    assert_eq!(late.response("POST").status(), 200);
    large.send("x".repeat(20_481));
    assert_eq!(large.response("POST").status(), 200);
    for mut client in held {
        client.send("x".repeat(3_000));
        assert_eq!(client.response("POST").status(), 200);
    }
}

#[test]
fn a_back_end_is_through_before_a_slow_client_is() {
    const LENGTH: usize = 24_000_000;
    let written: Arc<AtomicBool> = Arc::default();
    let through = Arc::clone(&written);
    let origin = Origin::scripted(move |conn| {
        while let Some(request) = conn.request() {
            let body = noise(if request.target() == "/large" { LENGTH } else { 2 }, 7);
            let framing = match request.one("x-framing") {
                Some(_) => format!("Transfer-Encoding: chunked\r\n\r\n{:x}", body.len()),
                None => format!("Content-Length: {}\r\n", body.len()),
            };
            let end = request.one("x-framing").map_or(&b""[..], |_| b"\r\n0\r\n\r\n");
            conn.write(format!("HTTP/1.1 200 OK\r\n{framing}\r\n").as_bytes());
            let excess = if request.one("x-framing") == Some("excess") { 300_000 } else { 0 };
            conn.write(&[&body, end, &vec![b'?'; excess]].concat());
            through.store(true, Ordering::SeqCst);
        }
    });
    // More than all sockets on the way take.
    let front_end = FrontEnd::new(&[origin.address], "[limits]\nheld = \"2GiB\"\n");
    let mut client = front_end.client();
    for more in ["", "X-Framing: chunked\r\n", "X-Framing: excess\r\n"] {
        written.store(false, Ordering::SeqCst);
        client.send(format!("GET /large HTTP/1.1\r\nHost: a\r\n{more}\r\n"));
        eventually("the back-end", || written.load(Ordering::SeqCst));
        assert!(client.response("GET").body == noise(LENGTH, 7));
        assert_eq!(client.get("/small").body, noise(2, 7));
    }
}

#[test]
fn slow_senders_of_large_bodies_keep_nobody_out() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], NARROW);
    for framing in ["Content-Length: 2000000", "Transfer-Encoding: chunked"] {
        let half = format!("POST /slow HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n");
        for _ in 0..3 {
            // Two at a time have room until they are known to be slow.
            let slow = open(&front_end, 2, &half);
            let mut client = front_end.client();
            eventually("room", || client.get("/").status() == 200);
            drop(slow);
        }
        front_end.assert_idle();
    }
}

#[test]
fn a_back_end_that_does_not_ask_for_the_body_is_what_is_waited_for() {
    let origin = Origin::scripted(|conn| while conn.read() > 0 {});
    let front_end = FrontEnd::new(&[origin.address], "[timeouts]\nfirst_byte = \"300ms\"\nbody = \"1h\"\n");
    let mut client = front_end.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.response("POST").status(), 504);
    front_end.assert_idle();
}

#[test]
fn slow_readers_keep_nobody_out() {
    let origin = Origin::answering(|request| {
        let length = if request.target() == "/large" { 8_000_000 } else { 2 };
        [format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes(), vec![b'x'; length]]
            .concat()
    });
    let front_end = FrontEnd::new(&[origin.address], NARROW);
    let mut readers = Vec::new();
    for _ in 0..4 {
        readers.extend(open(&front_end, 2, &get("/large")));
        let mut client = front_end.client();
        eventually("room", || client.get("/small").status() == 200);
    }
    // They get all of it nevertheless, unless they had no room.
    for mut reader in readers {
        let answer = reader.response("GET");
        assert!(answer.status() == 503 || answer.body.len() == 8_000_000, "{}", answer.body.len());
    }
}

#[test]
fn a_body_that_has_come_at_last_is_load_again() {
    let go: Arc<AtomicBool> = Arc::default();
    let may_end = Arc::clone(&go);
    let origin = Origin::answering(move |request| {
        if request.method() == "POST" {
            eventually("the word to go on", || may_end.load(Ordering::SeqCst));
        }
        echo(request)
    });
    let front_end = FrontEnd::new(&[origin.address], &NARROW.replace("limit = 2", "limit = 1"));
    let mut slow = front_end.client();
    slow.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n");
    eventually("the choice of the back-end", || origin.connections() == 1);
    let mut client = front_end.client();
    eventually("room", || client.get("/").status() == 200);
    slow.send("x".repeat(2_000_000));
    eventually("no more room", || client.get("/").status() == 503);
    go.store(true, Ordering::SeqCst);
    assert_eq!(slow.response("POST").status(), 200);
    // The client has its answer a moment before the request counts as ended.
    eventually("room again", || client.get("/").status() == 200);
}

#[test]
fn what_is_no_http_is_answered_at_once() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "[timeouts]\nhead = \"1h\"\n");
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"SSH-2.0-OpenSSH_9.2p1\r\n",
        b"\0",
        b"HELO me\r\n",
    ] {
        let mut client = front_end.client();
        client.send(bytes);
        assert_eq!(client.response_or_end("GET").status(), 400, "{}", bytes.escape_ascii());
    }
    assert_eq!(origin.take(), []);
}
