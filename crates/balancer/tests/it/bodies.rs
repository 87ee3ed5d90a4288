//! Bodies of requests, from the client to the back-end.

use std::time::Duration;

use plimsoll_testkit::{Why, eventually, pace};

use super::common::origin::{Conn, Origin, echo};
use super::common::strict::Message;
use super::common::{Client, End, FrontEnd, noise, statuses};

/// Sends `body` behind `head` in pieces of changing size; with `chunked`, each of several chunks.
fn upload(client: &mut Client, head: &str, body: &[u8], chunked: bool, trailers: &str) {
    let framing =
        if chunked { "Transfer-Encoding: chunked".into() } else { format!("Content-Length: {}", body.len()) };
    let mut wire = format!("{head}Host: a\r\n{framing}\r\n\r\n").into_bytes();
    if chunked {
        let mut at = 0;
        for size in [1, 7, 4096, 70_000, 3].into_iter().cycle() {
            let piece = &body[at..body.len().min(at + size)];
            if piece.is_empty() {
                break;
            }
            wire.extend_from_slice(format!("{:X};ext=\"x\"\r\n", piece.len()).as_bytes());
            wire.extend_from_slice(piece);
            wire.extend_from_slice(b"\r\n");
            at += piece.len();
        }
        wire.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
    } else {
        wire.extend_from_slice(body);
    }
    let sizes = noise(64, wire.len() as u64);
    let (mut at, mut n) = (0, 0);
    while at < wire.len() {
        // Small pieces for small bodies, so that cuts fall everywhere.
        let size = usize::from(sizes[n % sizes.len()]) * (1 + wire.len() / 4000) + 1;
        let end = wire.len().min(at + size);
        client.send(&wire[at..end]);
        if n % 16 == 0 {
            pace(Duration::from_micros(300), Why::Pieces);
        }
        (at, n) = (end, n + 1);
    }
}

#[test]
fn bodies_arrive_byte_for_byte() {
    let origin = Origin::answering(|request| {
        let kept = "Connection: keep-alive\r\n";
        let out = format!("HTTP/1.1 200 OK\r\n{kept}Content-Length: {}\r\n\r\n", request.body.len());
        [out.as_bytes(), &request.body].concat()
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    for size in [0, 1, 2, 100, 4095, 4096, 4097, 16_384, 65_535, 65_536, 200_001, 1_000_000, 5_000_000] {
        for chunked in [false, true] {
            let body = noise(size, size as u64 + 1);
            let trailers = if chunked && size % 2 == 0 { "X-Sum: 1\r\nX-More:  2 \r\n" } else { "" };
            upload(&mut client, "POST /up HTTP/1.1\r\n", &body, chunked, trailers);
            let response = client.response("POST");
            assert!(response.body == body, "{size} {chunked}: answered {}", response.body.len());
            let got = origin.take();
            assert!(got.len() == 1 && got[0].body == body && got[0].target() == "/up");
            // One that is held until it is whole says its length.
            let may_say_length = !chunked || trailers.is_empty() && size < 1 << 20;
            assert!(if got[0].chunked { chunked } else { may_say_length }, "{size} {chunked}");
            let expected: &[(&str, &str)] =
                if trailers.is_empty() { &[] } else { &[("X-Sum", "1"), ("X-More", "2")] };
            let trailers: Vec<_> = got[0].trailers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            assert_eq!(trailers, expected);
        }
    }
    assert_eq!(origin.connections(), 1);
}

#[test]
fn expectations() {
    let origin = Origin::scripted(|conn| {
        while conn.head() {
            let head = conn.text();
            if head.contains("/hundred") {
                assert!(head.contains("\r\nExpect: 100-continue\r\n"), "{head}");
                conn.write(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
            if head.contains("/final") {
                conn.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
            } else {
                assert!(head.contains("/hundred") || !head.contains("Expect:"), "{head}");
            }
            match conn.request() {
                Some(request) => conn.write(&echo(&request)),
                None => return,
            };
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    for _ in 0..3 {
        client.send(
            "POST /hundred HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n",
        );
        assert_eq!(client.any_response("POST").start, "HTTP/1.1 100 Continue");
        client.send(vec![b'x'; 5000]);
        assert_eq!(client.response("POST").body.len(), 5000 + "POST /hundred\n".len());
    }
    // HTTP/1.0 clients do not wait.
    let mut old = front_end.client();
    old.send("POST /old HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello");
    let (answer, end) = old.rest();
    assert_eq!((statuses(&answer, &["POST"]), end), (vec![200], End::Closed));
    // A refusal instead of 100: the body that was announced must not be taken for a request.
    client.send("POST /final HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 50\r\n\r\n");
    let response = client.response("POST");
    assert_eq!((response.status(), response.one("connection")), (403, Some("close")));
    client.send("GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.ends());
    assert!(origin.take().iter().all(|m| m.target() != "/smuggled" && m.target() != "/final"));
}

#[test]
fn an_early_answer_reaches_the_client_and_ends_the_connection() {
    let origin = Origin::scripted(|conn| {
        if conn.head() {
            conn.write(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nbig\n");
            while conn.read() > 0 {}
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    for chunked in [false, true] {
        let mut client = front_end.client();
        let framing = if chunked { "Transfer-Encoding: chunked" } else { "Content-Length: 9000000" };
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n{}",
            if chunked { "100000\r\n" } else { "" }
        ));
        for _ in 0..20 {
            client.send("GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
            pace(Duration::from_millis(1), Why::Pieces);
        }
        let (answer, end) = client.rest();
        assert_eq!(statuses(&answer, &["POST"]), [413], "{chunked}");
        assert_eq!(end, End::Closed);
    }
    // Pushed without a look at the answer, and not in one go: it is there all the same.
    let mut client = front_end.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 25000000\r\n\r\n");
    for _ in 0..5 {
        assert!(client.send(vec![b'x'; 5_000_000]), "it is not reset");
        pace(Duration::from_millis(50), Why::SlowPeer);
    }
    let (answer, end) = client.rest();
    assert_eq!((statuses(&answer, &["POST"]), end), (vec![413], End::Closed));
    front_end.assert_idle();
    assert_eq!(origin.take(), []);
}

#[test]
fn an_answer_that_begins_early_does_not_end_the_upload() {
    let origin = Origin::scripted(|conn| {
        while conn.head() {
            conn.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nearly\r\n");
            let Some(request) = conn.request() else { return };
            conn.write(format!("5\r\n{:05}\r\n0\r\n\r\n", request.body.len()).as_bytes());
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "[timeouts]\nbody = \"2s\"\n[limits]\nheld = 0\n");
    let mut client = front_end.client();
    // More than is read before a back-end is chosen.
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n");
    // Longer than the time-out as a whole, but never quiet for that long.
    for _ in 0..10 {
        pace(Duration::from_millis(250), Why::SlowPeer);
        client.send([b'x'; 3000]);
    }
    assert_eq!(client.response("POST").body, b"early30000");
    assert!(client.ends());
}

#[test]
fn what_was_cut_off_never_arrives_as_complete() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "[timeouts]\nbody = \"300ms\"\n");
    let chunks = "Transfer-Encoding: chunked\r\n\r\n8\r\nhalfhalf\r\n";
    let cases = [
        "Content-Length: 20\r\n\r\nhalf",
        "Content-Length: 20\r\n\r\n",
        "Content-Length: 100000\r\n\r\nhalf",
        "Content-Length: 2000000\r\n\r\nhalf",
        "Transfer-Encoding: chunked\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n10\r\nhalf",
        chunks,
        &format!("{chunks}0\r\n"),
        &format!("{chunks}0\r\nX: y\r\n"),
        &format!("{chunks}0\r"),
    ];
    for case in cases {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{case}");
        // Ends its side, resets, or says nothing more.
        let (answer, end) = front_end.talk(head.as_bytes());
        assert!(answer.is_empty() && end != End::Open, "{case:?}: {answer:?}");
        let mut client = front_end.client();
        client.send(&head);
        pace(Duration::from_millis(10), Why::Midst);
        client.reset();
        let mut client = front_end.client();
        client.send(&head);
        let (answer, end) = client.rest();
        assert_eq!((statuses(&answer, &["POST"]), end), (vec![408], End::Closed), "{case:?}");
    }
    front_end.assert_idle();
    assert_eq!(origin.take(), []);
    // Three went nowhere: their bodies are waited for. Another one cut the connection to the back-end each time, and the chunked ones
    // where they had been silent before.
    let chunked = cases.len() - 4;
    assert!((3 + chunked..=3 + 3 * chunked).contains(&origin.unfinished().len()));
}

#[test]
fn bodies_beyond_the_limit() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "[limits]\nbody = \"10kB\"\n");
    let chunk = format!("fa0\r\n{}\r\n", "x".repeat(4000));
    for (expected, text) in [
        (200, format!("Content-Length: 10000\r\n\r\n{}", "x".repeat(10_000))),
        (413, "Content-Length: 10001\r\n\r\n".to_owned()),
        (413, format!("Content-Length: 1000000\r\n\r\n{}", "x".repeat(1_000_000))),
        (
            200,
            format!(
                "Transfer-Encoding: chunked\r\n\r\n{}7d0\r\n{}\r\n0\r\n\r\n",
                chunk.repeat(2),
                "x".repeat(2000)
            ),
        ),
        (413, format!("Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n", chunk.repeat(3))),
        (413, format!("Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n", chunk.repeat(100))),
    ] {
        let mut client = front_end.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{text}"));
        let (answer, _) = client.rest();
        assert_eq!(statuses(&answer, &["POST"]), [expected], "{}", &text[..30]);
    }
    assert_eq!(origin.take().iter().map(|m| m.body.len()).collect::<Vec<_>>(), [10_000, 10_000]);
}

/// Who sends on after an answer is listened to for long, but keeps nobody waiting.
#[test]
fn a_client_that_sends_on_after_its_answer_does_not_hold_up_a_stop() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "[limits]\nbody = \"10kB\"\n");
    let mut client = front_end.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n");
    let mut is_taken = move || {
        pace(Duration::from_millis(100), Why::SlowPeer);
        client.send(vec![b'x'; 100_000])
    };
    assert!((0..30).all(|_| is_taken()), "three seconds after its answer it is still read");
    let sender = std::thread::spawn(move || (0..100).any(|_| !is_taken()));
    front_end.stop_within(Duration::from_secs(60));
    assert!(sender.join().unwrap(), "it is not read for long");
}

/// Its answer comes when idle connections are closed already.
#[test]
fn an_early_answer_reaches_the_client_while_the_front_end_stops() {
    let origin = Origin::scripted(|conn| {
        if conn.head() {
            pace(Duration::from_secs(3), Why::SlowPeer);
            conn.write(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nbig\n");
            while conn.read() > 0 {}
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "[limits]\nheld = 0\n");
    let mut client = front_end.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000100\r\n\r\n");
    client.send(vec![b'x'; 100]);
    front_end.load_once(1);
    let stop = std::thread::spawn(move || front_end.stop_within(Duration::from_secs(60)));
    pace(Duration::from_millis(3200), Why::SlowPeer);
    for _ in 0..5 {
        assert!(client.send(vec![b'x'; 200_000]), "it is not reset");
        pace(Duration::from_millis(50), Why::SlowPeer);
    }
    let (answer, end) = client.rest();
    assert_eq!((statuses(&answer, &["POST"]), end), (vec![413], End::Closed));
    stop.join().unwrap();
}

#[test]
fn a_bad_chunk_in_the_middle() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    // The larger ones have been passed on in part.
    for size in [0x8000, 0x20_0000] {
        for bad in ["zz\r\n", "5\r\nhelloX", "5\n", "5;\r\n", "0\r\nContent-Length: 1\r\n\r\n"] {
            let mut client = front_end.client();
            client.send(format!(
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{size:x}\r\n"
            ));
            client.send(noise(size, 1));
            pace(Duration::from_millis(5), Why::Pieces);
            client.send(format!("\r\n{bad}"));
            client.send("0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
            let (answer, _) = client.rest();
            assert_eq!(statuses(&answer, &["POST"]), [400], "{bad:?}");
        }
    }
    front_end.assert_idle();
    assert_eq!(origin.take(), []);
    // The back-end may not have accepted the last one yet.
    eventually("what began", || origin.unfinished().len() >= 5);
    assert!(origin.unfinished().len() <= 10);
}

#[test]
fn a_back_end_that_reads_slowly_holds_the_client_back() {
    let origin = Origin::scripted(|conn| {
        conn.head();
        pace(Duration::from_millis(300), Why::SlowPeer);
        while let Some(request) = conn.request() {
            answer_length(conn, &request);
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    let body = noise(20_000_000, 5);
    client.send(format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len()));
    assert!(client.send(&body));
    assert_eq!(client.response("PUT").body, b"20000000");
    assert!(origin.take()[0].body == body);
}

fn answer_length(conn: &mut Conn, request: &Message) {
    let text = request.body.len().to_string();
    conn.write(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
}
