//! What counts against a back-end, and how an ejected one comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use plimsoll_testkit::eventually;

use super::rig::{Rig, text};
use crate::common::origin::{Conn, Origin};
use crate::common::{Client, get};
use crate::ejection::failing;

const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// A front-end before `b0`, which can be made to fail, and `b1`.
struct Pair {
    failing: (Origin, Arc<AtomicBool>, Arc<AtomicUsize>),
    good: Origin,
    tables: String,
    rig: Rig,
}

impl Pair {
    fn new(ejection: &str, tables: &str) -> Self {
        let (failing, good) = (failing(1), Origin::echo());
        let policy = "[policy]\nname = \"round_robin\"\n";
        let tables = format!("{policy}{tables}[ejection]\nfailures = 2\n{ejection}");
        let rig = Rig::new(&[&failing.0, &good], &tables);
        Self { failing, good, tables, rig }
    }

    fn is_ejected(&self) -> bool {
        self.rig.backend("b0")["ejected"].as_bool().unwrap()
    }

    /// Sends requests until `b0` is ejected once more; its faults are over then.
    fn eject(&self, request: &str) {
        self.failing.1.store(true, Ordering::SeqCst);
        let ejections = || self.rig.backend("b0")["ejections"].as_u64().unwrap();
        let before = ejections();
        eventually("the ejection", || {
            self.send(request);
            ejections() > before
        });
        self.failing.1.store(false, Ordering::SeqCst);
    }

    fn send(&self, request: &str) -> u16 {
        let mut client = self.rig.client();
        client.send(request);
        client.response_or_end("GET").status()
    }

    fn call(&self, path: &str) {
        assert_eq!(self.rig.call("POST", path, &[], "").status, 200);
    }
}

#[test]
fn without_requests_that_could_be_tried_it_comes_back_all_the_same() {
    let cases = [(POST.to_owned(), ""), (get("/"), "[limits]\nretries = 0\n")];
    for (request, tables) in cases {
        let pair = Pair::new("time = \"50ms\"\n", tables);
        pair.eject(&request);
        let got = || pair.failing.2.load(Ordering::SeqCst);
        let before = got();
        eventually("its return", || {
            assert_eq!(pair.send(&request), 200);
            got() > before + 2
        });
        assert!(!pair.is_ejected());
    }
}

#[test]
fn an_operator_gets_it_back() {
    let pair = Pair::new("time = \"1h\"\n", "");
    pair.eject(&get("/"));
    assert!(pair.is_ejected());
    pair.call("/backends/b0/undrain");
    assert!(!pair.is_ejected());
    assert_eq!(pair.rig.backend("b0")["takes_requests"], true);
    pair.eject(&get("/"));
    assert!(pair.is_ejected());
    let off = pair.tables.replace("failures = 2", "failures = 0");
    pair.rig.reload(&text(&[(&pair.failing.0, ""), (&pair.good, "")], &off));
    assert!(!pair.is_ejected());
    assert_eq!(pair.rig.backend("b0")["takes_requests"], true);
}

#[test]
fn when_the_other_one_takes_no_requests_it_does() {
    let drain = |pair: &Pair| pair.call("/backends/b1/drain");
    let weight = |pair: &Pair| {
        assert_eq!(pair.rig.call("PUT", "/backends/b1/weight", &[], "0").status, 200);
    };
    let leave = |pair: &Pair| pair.rig.reload(&text(&[(&pair.failing.0, "")], &pair.tables));
    let ways: [&dyn Fn(&Pair); 3] = [&drain, &weight, &leave];
    for way in ways {
        let pair = Pair::new("time = \"1h\"\n", "");
        pair.eject(&get("/"));
        assert!(pair.is_ejected());
        way(&pair);
        assert!(!pair.is_ejected());
        assert_eq!(pair.send(&get("/")), 200);
    }
}

/// How many attempts count as failed once the only request is over, to a back-end that serves each connection like this;
/// and the status in the metrics.
fn failures_of(
    tables: &str,
    serve: impl Fn(&mut Conn) + Send + Sync + 'static,
    ask: impl FnOnce(Client),
) -> (u64, &'static str) {
    let origin = Origin::scripted(serve);
    let rig = Rig::new(&[&origin], tables);
    ask(rig.client());
    let metrics = rig.metrics_once(|m| m.sum("plimsoll_requests_total", "") == 1.0);
    let codes = ["2xx", "4xx", "5xx"];
    let code = codes.into_iter().find(|code| metrics.sum("plimsoll_requests_total", code) == 1.0);
    (rig.backend("b0")["attempts_failed"].as_u64().unwrap(), code.unwrap())
}

/// The head and the first content of a request whose client then stops.
const BEGUN: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";

/// Begins an answer once there is a head, and waits.
fn begin_answer(conn: &mut Conn) {
    if conn.head() {
        conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nbegun");
        while conn.read() > 0 {}
    }
}

#[test]
fn a_client_that_goes_away_in_its_upload_is_no_failure_of_the_back_end() {
    let failed = failures_of("", begin_answer, |mut client| {
        client.send(BEGUN);
        client.read_until("begun");
        client.reset();
    });
    assert_eq!(failed, (0, "4xx"));
}

#[test]
fn nor_is_one_that_stops_sending() {
    let body = "[timeouts]\nbody = \"200ms\"\n";
    let failed = failures_of(body, begin_answer, |mut client| {
        client.send(BEGUN);
        client.rest();
    });
    assert_eq!(failed, (0, "4xx"));
    // Where the whole request is there, it is.
    let failed = failures_of(body, begin_answer, |mut client| {
        client.send(get("/"));
        client.rest();
    });
    assert_eq!(failed, (1, "2xx"));
}

#[test]
fn nor_is_a_back_end_that_has_waited_for_the_client_for_too_long() {
    let close = |conn: &mut Conn| {
        conn.head();
    };
    let failed = failures_of("", close, |mut client| {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(client.response_or_end("POST").status(), 502);
    });
    assert_eq!(failed, (0, "5xx"));
    // Nor in the middle of its answer.
    let begin = |conn: &mut Conn| {
        conn.head();
        conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nbegun");
    };
    let failed = failures_of("", begin, |mut client| {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.rest();
    });
    assert_eq!(failed, (0, "2xx"));
    // With the whole request, it is at fault.
    let failed = failures_of("", close, |mut client| {
        client.send(POST);
        assert_eq!(client.response_or_end("POST").status(), 502);
    });
    assert_eq!(failed, (1, "5xx"));
}

#[test]
fn nor_is_an_answer_larger_than_this_front_end_allows() {
    let failures = |answer: String| {
        let serve = move |conn: &mut Conn| {
            if conn.request().is_some() {
                conn.write(answer.as_bytes());
            }
        };
        failures_of("", serve, |mut client| {
            client.send(get("/"));
            assert_eq!(client.response_or_end("GET").status(), 502);
        })
    };
    let many = "X: y\r\n".repeat(300);
    assert_eq!(failures(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(100_000))), (0, "5xx"));
    assert_eq!(failures(format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{many}\r\n")), (0, "5xx"));
    assert_eq!(failures("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100)), (0, "5xx"));
    assert_eq!(failures("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n".to_owned()), (1, "5xx"));
}
