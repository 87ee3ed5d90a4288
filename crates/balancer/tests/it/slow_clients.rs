//! Clients that send or read slowly are no load: they keep nobody out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_testkit::eventually;

use super::common::origin::{Origin, echo};
use super::common::{Client, FrontEnd, get};

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
fn slow_senders_of_large_bodies_keep_nobody_out() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], NARROW);
    for framing in ["Content-Length: 1000000", "Transfer-Encoding: chunked"] {
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
    slow.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    eventually("the choice of the back-end", || origin.connections() == 1);
    let mut client = front_end.client();
    eventually("room", || client.get("/").status() == 200);
    slow.send("x".repeat(100_000));
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
