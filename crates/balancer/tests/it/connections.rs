//! Connections of clients: order, persistence, time-outs, those that are slow and those that go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_testkit::{Why, eventually, pace};

use super::common::origin::{Origin, echo};
use super::common::strict::responses;
use super::common::{Client, End, FrontEnd, assert_files_for, get, noise, statuses};

#[test]
fn pipelined_requests_are_answered_in_order() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    let (mut wire, mut methods, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..100usize {
        let body = noise(n * 97, n as u64 + 1);
        let (method, framed): (&str, Vec<u8>) = match n % 4 {
            0 => ("GET", b"\r\n".to_vec()),
            1 => ("POST", [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat()),
            2 => ("HEAD", b"\r\n".to_vec()),
            _ => {
                let size = format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len());
                ("PUT", [size.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat())
            }
        };
        wire.extend_from_slice(format!("{method} /{n} HTTP/1.1\r\nHost: a\r\n").as_bytes());
        wire.extend_from_slice(&framed);
        methods.push(method);
        expected.push(match method {
            "HEAD" => Vec::new(),
            "GET" => format!("GET /{n}\n").into_bytes(),
            _ => [format!("{method} /{n}\n").as_bytes(), &body].concat(),
        });
    }
    let (answer, end) = front_end.talk(&wire);
    let bodies: Vec<Vec<u8>> = responses(&answer, &methods).unwrap().into_iter().map(|m| m.body).collect();
    assert!(bodies == expected && end == End::Closed);
    let lines: Vec<String> = methods.iter().enumerate().map(|(n, m)| format!("{m} /{n}")).collect();
    assert_eq!(origin.take_lines(), lines);
    // A bad one in the middle: those before it are answered, those behind it never seen.
    for bad in [
        "GET /bad HTTP/1.1\r\n\r\n",
        "GET /bad\r\n\r\n",
        "\0\r\n\r\n",
        "POST /bad HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    ] {
        let before: String = (0..5).map(|n| get(&format!("/{n}"))).collect();
        let mut client = front_end.client();
        client.send(format!("{before}{bad}{}", get("/smuggled")));
        let (answer, end) = client.rest();
        assert_eq!((statuses(&answer, &["GET"; 6]), end), (vec![200, 200, 200, 200, 200, 400], End::Closed));
        assert_eq!(origin.take_lines(), ["GET /0", "GET /1", "GET /2", "GET /3", "GET /4"]);
    }
    // One that asks to close: what follows is not answered.
    let mut client = front_end.client();
    client.send(format!(
        "{}GET /1 HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n{}",
        get("/0"),
        get("/2")
    ));
    let (answer, end) = client.rest();
    assert_eq!((statuses(&answer, &["GET"; 3]), end), (vec![200, 200], End::Closed));
    assert_eq!(origin.take_lines(), ["GET /0", "GET /1"]);
}

#[test]
fn how_long_a_connection_is_kept() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "[limits]\nrequests_per_connection = 3\n");
    let mut client = front_end.client();
    assert_eq!(client.get("/").all("connection"), [""; 0]);
    assert_eq!(client.get("/").all("connection"), [""; 0]);
    assert_eq!(client.get("/").all("connection"), ["close"]);
    assert!(client.ends());
    // Idle: closed without a word, before a first request and after one.
    let front_end = FrontEnd::new(&[origin.address], "[timeouts]\nidle = \"1s\"\n");
    assert!(front_end.client().ends());
    let mut client = front_end.client();
    client.get("/");
    assert!(client.ends());
    // Half a head is told what is wrong.
    let front_end = FrontEnd::new(&[origin.address], "[timeouts]\nhead = \"200ms\"\n");
    for half in ["G", "GET / HTTP/1.1\r\nHost:", "GET / HTTP/1.1\r\nHost: a\r\n"] {
        let mut client = front_end.client();
        client.send(half);
        let (answer, end) = client.rest();
        assert_eq!((statuses(&answer, &["GET"]), end), (vec![408], End::Closed));
    }
    // And so is one that comes byte by byte, however steadily.
    let mut client = front_end.client();
    eventually("the end of a head that comes byte by byte", || !client.send("x"));
    assert_eq!(origin.take().len(), 4);
}

#[test]
fn many_slow_heads_keep_nobody_else_waiting() {
    const SLOW: usize = 1500;
    assert_files_for(SLOW);
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "[timeouts]\nhead = \"300s\"\n");
    let mut slow: Vec<Client> = (0..SLOW).map(|_| front_end.client()).collect();
    let mut client = front_end.client();
    for _ in 0..10 {
        assert!(slow.iter_mut().all(|c| c.send("G")));
        assert_eq!(client.get("/").status(), 200);
    }
    // It was answered while all of them were waited for.
    assert!(slow.iter().all(Client::is_silent));
    let front_end = FrontEnd::new(&[origin.address], "[timeouts]\nhead = \"500ms\"\n");
    let mut slow: Vec<Client> = (0..SLOW).map(|_| front_end.client()).collect();
    slow.iter_mut().for_each(|c| _ = c.send("G"));
    let ends = slow.into_iter().map(|c| c.rest().1);
    assert_eq!(ends.filter(|&end| end == End::Open).count(), 0);
    assert_eq!(front_end.client().get("/").status(), 200);
    assert!(origin.take().iter().all(|m| m.target() == "/"));
}

#[test]
fn a_slow_reader_holds_the_back_end_back() {
    let (taken, cut): (Arc<AtomicUsize>, Arc<AtomicBool>) = Default::default();
    let (count, is_cut) = (Arc::clone(&taken), Arc::clone(&cut));
    let origin = Origin::scripted(move |conn| {
        while let Some(request) = conn.request() {
            if request.target() != "/large" {
                conn.write(&echo(&request));
                continue;
            }
            conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
            let piece = [b'x'; 50_000];
            for _ in 0..2000 {
                if !conn.write(&piece) {
                    is_cut.store(true, Ordering::SeqCst);
                    return;
                }
                count.fetch_add(piece.len(), Ordering::SeqCst);
            }
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "[timeouts]\nbody = \"700ms\"\n");
    let mut slow = front_end.client();
    slow.send(get("/large"));
    let mut other = front_end.client();
    for _ in 0..10 {
        assert_eq!(other.get("/").status(), 200);
        pace(Duration::from_millis(20), Why::SlowPeer);
    }
    // Given up, as its client takes nothing.
    eventually("the end of the transfer", || cut.load(Ordering::SeqCst));
    // Buffers of the system hold some; the front-end must not.
    assert!(taken.load(Ordering::SeqCst) < 40_000_000, "{taken:?}");
    let (answer, end) = slow.rest();
    assert!(answer.len() < 100_000_000 && end == End::Reset, "{} {end:?}", answer.len());
}

#[test]
fn clients_that_go() {
    let origin = Origin::answering(|request| {
        let wait = if request.target().starts_with("/slow") { 150 } else { 0 };
        pace(Duration::from_millis(wait), Why::SlowPeer);
        let length = if request.target() == "/slow-large" { 3_000_000 } else { 2 };
        [format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes(), vec![b'x'; length]]
            .concat()
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    for target in ["/slow", "/slow-large", "/fast"] {
        for after_ms in [0, 20, 160] {
            // By a reset, and by closing.
            let mut client = front_end.client();
            client.send(get(target));
            pace(Duration::from_millis(after_ms), Why::Midst);
            client.reset();
            let mut client = front_end.client();
            client.send(get(target));
            pace(Duration::from_millis(after_ms), Why::Midst);
            drop(client);
        }
        // One that has only ended its side gets its answer.
        let (answer, end) = front_end.talk(get(target).as_bytes());
        assert_eq!((statuses(&answer, &["GET"]), end), (vec![200], End::Closed), "{target}");
        front_end.assert_idle();
        assert_eq!(front_end.client().get("/fast").status(), 200);
    }
    // A reset is noticed while the back-end is still at work.
    let mut client = front_end.client();
    client.send(get("/slow"));
    pace(Duration::from_millis(30), Why::Midst);
    client.reset();
    front_end.assert_idle();
}

#[test]
fn connections_beyond_the_limit_wait_their_turn() {
    // At work, at most at work so far, and whether they may end.
    let (at_work, most, go): (Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicBool>) = Default::default();
    let (now, peak, end) = (Arc::clone(&at_work), Arc::clone(&most), Arc::clone(&go));
    let origin = Origin::answering(move |request| {
        peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        eventually("the word to go on", || end.load(Ordering::SeqCst));
        now.fetch_sub(1, Ordering::SeqCst);
        echo(request)
    });
    let front_end = FrontEnd::new(
        &[origin.address],
        "[limits]\nconnections = 10\n[timeouts]\nidle = \"1h\"\nhead = \"1h\"\n",
    );
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                // One that has not sent its request in time makes room for others, and comes again.
                eventually("an answer", || {
                    let mut client = front_end.client();
                    client.send(get("/"));
                    client.answer_or_end().is_some_and(|answer| answer.status() == 200)
                });
            });
        }
        eventually("as many as there are places", || at_work.load(Ordering::SeqCst) == 10);
        go.store(true, Ordering::SeqCst);
    });
    // Those that were answered kept their connections, and made room for the others.
    assert_eq!(most.load(Ordering::SeqCst), 10);
}

#[test]
fn clients_without_a_request_make_room() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(
        &[origin.address],
        "[limits]\nconnections = 6\n[timeouts]\nidle = \"1h\"\nhead = \"1h\"\n",
    );
    let mut slow: Vec<Client> = (0..30).map(|_| front_end.client()).collect();
    slow.iter_mut().for_each(|client| assert!(client.send("GET / HTTP/1.1\r\nHost:")));
    // Thirty that never send the rest, one after the other, are in front of it.
    assert_eq!(front_end.client().asked("/").status(), 200);
    assert_eq!(origin.take_lines(), ["GET /"]);
}

#[test]
fn those_whose_bodies_do_not_come_make_room() {
    let origin = Origin::echo();
    let tables = "[limits]\nconnections = 6\n[timeouts]\nidle = \"1h\"\nhead = \"1h\"\nbody = \"1h\"\n";
    let front_end = FrontEnd::new(&[origin.address], tables);
    let mut slow: Vec<Client> = (0..6).map(|_| front_end.client()).collect();
    for client in &mut slow {
        assert!(client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf"));
    }
    assert_eq!(front_end.client().asked("/").status(), 200);
    assert_eq!(origin.take_lines(), ["GET /"]);
}

#[test]
fn those_whose_larger_bodies_come_keep_their_places() {
    let origin = Origin::echo();
    let tables = "[limits]\nconnections = 60\n[timeouts]\nidle = \"1h\"\nhead = \"1h\"\nbody = \"1h\"\n";
    let front_end = FrontEnd::new(&[origin.address], tables);
    let mut moves = front_end.client();
    moves.send("POST /moves HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n");
    // The first one in the front-end's eyes, too.
    moves.send([b'x'; 1000]);
    pace(Duration::from_millis(100), Why::SlowPeer);
    let mut silent: Vec<Client> = (0..59).map(|_| front_end.client()).collect();
    for client in &mut silent {
        assert!(client.send("POST /silent HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\nhalf"));
    }
    let sends = |moves: &mut Client| {
        for _ in 0..38 {
            pace(Duration::from_millis(50), Why::SlowPeer);
            moves.send([b'x'; 500]);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| sends(&mut moves));
        assert_eq!(front_end.client().asked("/").status(), 200);
    });
    assert_eq!(moves.response("POST").status(), 200);
    assert_eq!(origin.take_lines(), ["GET /", "POST /moves"]);
}

#[test]
fn ipv6_on_both_sides() {
    let origin = Origin::scripted_at("[::1]:0", |conn| {
        while let Some(request) = conn.request() {
            conn.write(&echo(&request));
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client_v6();
    client.send("GET /six HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
    assert_eq!(client.response("GET").body, b"GET /six\n");
    let got = origin.take().remove(0);
    assert_eq!((got.one("x-forwarded-for"), got.one("host")), (Some("::1"), Some("[::1]:80")));
    assert_eq!(front_end.client().get("/four").status(), 200);
    assert_eq!(origin.take()[0].one("x-forwarded-for"), Some("127.0.0.1"));
}
