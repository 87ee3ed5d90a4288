//! Each refusal counts under its reason.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use plimsoll_testkit::{Why, eventually, pace};

use super::rig::{Rig, text};
use crate::common::origin::{Conn, Origin, echo, short_queue};
use crate::common::{Client, End, get};

/// Answers as the path says.
fn by_path(conn: &mut Conn) {
    while let Some(request) = conn.request() {
        match request.target() {
            "/close" => return,
            "/bad" => drop(conn.write(b"NONSENSE\r\n\r\n")),
            "/large" => {
                let field = "x".repeat(5000);
                conn.write(format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: {field}\r\n\r\n").as_bytes());
            }
            "/cut" => {
                conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123");
                return;
            }
            // Until the other side gives up.
            "/hang" => drop(conn.head()),
            _ => drop(conn.write(&echo(&request))),
        }
    }
}

/// Waits until a further one has been counted for this reason, and none for another one.
fn counts(rig: &Rig, reason: &str, seen: &mut f64) {
    let before = *seen;
    let m = rig.metrics_once(|m| m.sum("plimsoll_refusals_total", "") > before);
    *seen += 1.0;
    assert_eq!(m.sum("plimsoll_refusals_total", ""), *seen, "{reason}");
    assert_eq!(m.get(&format!("plimsoll_refusals_total{{reason=\"{reason}\"}}")), 1.0, "{reason}");
}

#[test]
fn each_refusal_counts_under_its_reason() {
    let origin = Origin::scripted(by_path);
    let tables = "[limits]\nretries = 0\nhead = \"2KiB\"\nbody = 10\n[timeouts]\nfirst_byte = \"300ms\"\nhead = \"300ms\"\n";
    let rig = Rig::new(&[&origin], tables);
    let mut seen = 0.0;
    for (path, reason, status) in [
        ("/close", "backend_closed", 502),
        ("/bad", "bad_response", 502),
        ("/large", "response_limit", 502),
        ("/hang", "backend_timeout", 504),
    ] {
        assert_eq!(rig.client().get(path).status(), status, "{reason}");
        counts(&rig, reason, &mut seen);
    }
    let mut cut = rig.client();
    cut.send(get("/cut"));
    let (part, end) = cut.rest();
    assert!(part.ends_with(b"123") && end != End::Open);
    counts(&rig, "response_cut", &mut seen);
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(3000));
    for (bytes, reason, status) in [
        ("nonsense\r\n\r\n", "malformed", 400),
        ("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", "unsupported", 501),
        (&*long, "head_limit", 431),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n", "body_limit", 413),
        ("GET / HTTP/1.1\r\n", "head_timeout", 408),
    ] {
        let mut client = rig.client();
        client.send(bytes);
        assert_eq!(client.any_response("GET").status(), status, "{reason}");
        counts(&rig, reason, &mut seen);
    }
    // An answer is no refusal, and neither is that to an OPTIONS that must not go further.
    assert_eq!(rig.client().get("/").status(), 200);
    let mut options = rig.client();
    options.send("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");
    assert_eq!(options.any_response("OPTIONS").status(), 204);
    rig.call("POST", "/backends/b0/drain", &[], "");
    assert_eq!(rig.client().get("/").status(), 503);
    counts(&rig, "no_backend", &mut seen);
    let all = rig.get("/refusals").json();
    assert_eq!(all.as_array().unwrap().len() as f64, seen);
    assert!(all.as_array().unwrap().iter().all(|r| r["count"] == 1 && r["remedy"].is_string()), "{all}");
}

#[test]
fn a_back_end_whose_connections_are_taken() {
    let origin = Origin::scripted(by_path);
    let connect = Duration::from_millis(100);
    let tables = format!("[limits]\nretries = 0\n[timeouts]\nconnect = \"{}ms\"\n", connect.as_millis());
    let rig = Rig::from_text(&text(&[(&origin, "max_connections = 1")], &tables));
    let mut first = rig.client();
    first.send(get("/hang"));
    rig.metrics_once(|m| m.get("plimsoll_backend_connections_open{backend=\"b0\"}") == 1.0);
    assert_eq!(rig.client().get("/").status(), 503);
    counts(&rig, "backend_connections", &mut 0.0);
}

#[test]
fn a_connection_that_waits_for_a_place_and_one_that_makes_it() {
    let origin = Origin::echo();
    let rig = Rig::new(&[&origin], "[limits]\nconnections = 1\n[timeouts]\nidle = \"1h\"\nhead = \"1h\"\n");
    let mut first = rig.client();
    assert_eq!(first.get("/").status(), 200);
    assert_eq!(rig.client().asked("/").status(), 200);
    let m = rig.metrics_once(|m| m.sum("plimsoll_refusals_total", "") >= 2.0);
    for reason in ["connections_full", "made_room"] {
        assert_eq!(m.get(&format!("plimsoll_refusals_total{{reason=\"{reason}\"}}")), 1.0, "{reason}");
    }
    assert!(first.ends());
}

#[test]
fn a_request_that_makes_room_counts_once() {
    let origin = Origin::echo();
    let rig = Rig::new(&[&origin], "[limits]\nconnections = 1\n[timeouts]\nidle = \"1h\"\nbody = \"1h\"\n");
    let mut slow = rig.client();
    slow.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    rig.metrics_once(|m| m.get("plimsoll_connections_open") == 1.0);
    assert_eq!(rig.client().asked("/").status(), 200);
    assert_eq!(slow.response("POST").status(), 408);
    let m = rig.metrics_once(|m| m.sum("plimsoll_refusals_total", "") >= 2.0);
    for (reason, count) in [("connections_full", 1.0), ("made_room", 1.0), ("body_timeout", 0.0)] {
        assert_eq!(m.get(&format!("plimsoll_refusals_total{{reason=\"{reason}\"}}")), count, "{reason}");
    }
}

#[test]
fn a_client_that_is_waited_for_in_vain_is_no_client_that_has_gone() {
    let origin = Origin::scripted(|conn| {
        if conn.head() {
            conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n");
            while conn.write(&[b'x'; 64 << 10]) {}
        }
    });
    let rig = Rig::new(&[&origin], "[timeouts]\nbody = \"300ms\"\n");
    let mut client = rig.client();
    client.send(get("/"));
    counts(&rig, "client_timeout", &mut 0.0);
}

/// A front-end that lets one request in at a time, to a back-end that never answers it.
fn occupied(origin: &Origin, queue: u32, queue_timeout: &str) -> (Rig, Client) {
    let tables = format!("[admission]\nlimit = 1\nqueue = {queue}\nqueue_timeout = \"{queue_timeout}\"\n");
    let rig = Rig::new(&[origin], &tables);
    let mut first = rig.client();
    first.send(get("/hang"));
    rig.metrics_once(|m| m.get("plimsoll_backend_load{backend=\"b0\"}") == 1.0);
    (rig, first)
}

#[test]
fn a_queue_that_is_full_and_one_that_is_too_slow() {
    let origin = Origin::scripted(by_path);
    for (queue, timeout, reason) in [(0, "1h", "queue_full"), (5, "20ms", "queue_timeout")] {
        let (rig, _first) = occupied(&origin, queue, timeout);
        assert_eq!(rig.client().get("/").status(), 503, "{reason}");
        counts(&rig, reason, &mut 0.0);
    }
}

#[test]
fn a_queue_that_only_grows() {
    let origin = Origin::scripted(by_path);
    let (rig, _first) = occupied(&origin, 10_000, "1h");
    let mut waiting: Vec<Client> = Vec::new();
    let mut come = |many: usize| {
        waiting.extend((0..many).map(|_| rig.client()));
        waiting.iter_mut().rev().take(many).for_each(|client| assert!(client.send(get("/"))));
    };
    come(5);
    // A burst may wait, however long the queue then stands.
    pace(Duration::from_millis(500), Why::TimeIsUp);
    let m = rig.metrics_once(|m| m.get("plimsoll_requests_waiting") == 5.0);
    assert_eq!(m.sum("plimsoll_refusals_total", ""), 0.0);
    // More and more may not.
    eventually("a refusal", || {
        come(20);
        rig.metrics().get("plimsoll_refusals_total{reason=\"queue_standing\"}") > 0.0
    });
    let m = rig.metrics();
    assert_eq!(
        m.sum("plimsoll_refusals_total", ""),
        m.get("plimsoll_refusals_total{reason=\"queue_standing\"}")
    );
}

#[test]
fn a_client_that_goes_leaves_the_queue() {
    let origin = Origin::scripted(by_path);
    let (rig, _first) = occupied(&origin, 5, "1h");
    let waiting = |many: f64| rig.metrics_once(|m| m.get("plimsoll_requests_waiting") == many);
    let mut reset = rig.client();
    assert!(reset.send(get("/")));
    waiting(1.0);
    reset.reset();
    waiting(0.0);
    // By HTTP/2, when its stream is cancelled, and when its connection ends.
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let request = |stream: u8| frame(1, 5, stream, &[0x82, 0x86, 0x84, 0x41, 1, b'a']);
    let mut client = rig.client();
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(4, 0, 0, b"")[..]].concat();
    assert!(client.send([begin, request(1), request(3)].concat()));
    waiting(2.0);
    assert!(client.send(frame(3, 0, 1, &[0, 0, 0, 8])));
    waiting(1.0);
    drop(client);
    waiting(0.0);
}

#[test]
fn a_client_that_goes_is_no_load_of_a_back_end_that_lets_nobody_in() {
    let origin = Origin::echo();
    let (full, _waiting) = full_listener();
    let text = text(&[(&origin, "")], "[timeouts]\nconnect = \"1h\"\n")
        .replace(&origin.address.to_string(), &full.local_addr().unwrap().to_string());
    let rig = Rig::from_text(&text);
    let load = |load: f64| rig.metrics_once(|m| m.get("plimsoll_backend_load{backend=\"b0\"}") == load);
    let mut client = rig.client();
    assert!(client.send(get("/")));
    load(1.0);
    client.reset();
    load(0.0);
}

/// One that accepts nothing, and what takes all places in its queue.
fn full_listener() -> (std::net::TcpListener, Vec<std::net::TcpStream>) {
    let listener = short_queue();
    let address = listener.local_addr().unwrap();
    let connect = || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok();
    let waiting: Vec<_> = std::iter::from_fn(connect).take(10).collect();
    assert!(waiting.len() < 10, "it is never full");
    (listener, waiting)
}

#[test]
fn a_back_end_that_nobody_reaches() {
    let origin = Origin::echo();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = text(&[(&origin, "")], "[limits]\nretries = 0\n")
        .replace(&origin.address.to_string(), &nobody.to_string());
    let rig = Rig::from_text(&text);
    assert_eq!(rig.client().get("/").status(), 503);
    counts(&rig, "backend_unreachable", &mut 0.0);
}

#[test]
fn a_body_that_does_not_come() {
    let origin = Origin::echo();
    let rig = Rig::new(&[&origin], "[timeouts]\nbody = \"200ms\"\n");
    let mut client = rig.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    assert_eq!(client.response("POST").status(), 408);
    counts(&rig, "body_timeout", &mut 0.0);
}

#[test]
fn what_was_placed_already_is_refused_once() {
    let (one, other) = (Origin::echo(), Origin::echo());
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    std::fs::write(&key, "ab".repeat(32)).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let tables = format!(
        "[policy]\nname = \"adaptload\"\n[peers]\nname = \"a\"\nlocal = \"b0\"\naddress = \"127.0.0.1:0\"\n\
         key_file = {key:?}\nothers = [\"b=127.0.0.1:1\"]\n"
    );
    let rig = Rig::new(&[&one, &other], &tables);
    let mut client = rig.client();
    client.send("GET /x HTTP/1.1\r\nHost: a\r\nPlimsoll-Placed-By: other\r\n\r\n");
    assert_eq!(client.response("GET").status(), 508);
    assert_eq!(client.get("/y").status(), 200, "the next request is another one");
}
