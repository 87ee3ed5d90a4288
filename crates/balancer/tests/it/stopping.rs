//! What is still under way when the time to drain has passed: each request ends with a record, and with an answer where none had
//! begun.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use plimsoll_testkit::{eventually, wait_for};
use serde_json::Value;

use super::admin::rig::Rig;
use super::common::origin::Origin;
use super::common::{End, get};

/// The lines of this log, by target.
fn lines(file: &Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["target"].as_str().unwrap().to_owned(), line)
    };
    let mut lines: Vec<_> = text.lines().map(line).collect();
    lines.sort_by(|one, other| one.0.cmp(&other.0));
    lines
}

#[test]
fn what_has_not_ended_by_then_is_answered_or_cut_and_recorded() {
    let origin = Origin::scripted(|conn| {
        if let Some(request) = conn.request() {
            if request.target() == "/begun" {
                conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789");
            }
            // Until the front-end goes.
            drop(conn.request());
        }
    });
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("access.log");
    let tables = format!(
        "[admission]\nlimit = 2\nqueue_timeout = \"1h\"\n[access_log]\nfile = {file:?}\nformat = \"json\"\n"
    );
    let rig = Rig::new(&[&origin], &tables);
    let mut begun = rig.client();
    begun.send(get("/begun"));
    begun.read_until("0123456789");
    let mut silent = rig.client();
    silent.send(get("/silent"));
    eventually("both at the back-end", || origin.connections() == 2);
    let mut waits = rig.client();
    waits.send(get("/waits"));
    rig.metrics_once(|m| m.get("plimsoll_requests_waiting") == 1.0);
    let mut sends = rig.client();
    sends.send("POST /sends HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf of it");
    // It is only read before others are served: there is nothing to see of it but that.
    let mut later = rig.client();
    later.send(get("/later"));
    rig.metrics_once(|m| m.get("plimsoll_requests_waiting") == 2.0);
    rig.stop_within(Duration::from_millis(500));

    assert_eq!(begun.rest().1, End::Reset, "half an answer is no whole one");
    for (client, method) in [(silent, "GET"), (waits, "GET"), (sends, "POST"), (later, "GET")] {
        let answer = client.response_or_end(method);
        assert_eq!((answer.status(), &*answer.body), (503, &b"the front-end stops\n"[..]));
    }
    let lines = wait_for("a line for each", || Some(lines(&file)).filter(|lines| lines.len() == 5));
    let seen: Vec<_> = lines
        .iter()
        .map(|(target, line)| (&**target, line["status"].as_u64(), line["bytes"].as_u64()))
        .collect();
    let own = Some(20);
    assert_eq!(
        seen,
        [
            ("/begun", Some(200), Some(10)),
            ("/later", Some(503), own),
            ("/sends", Some(503), own),
            ("/silent", Some(503), own),
            ("/waits", Some(503), own)
        ]
    );
    assert!(lines.iter().all(|(_, line)| line["refused"] == "stopping"), "{lines:?}");
}

#[test]
fn a_connection_that_cannot_be_opened_is_not_waited_for() {
    // Nobody accepts here, and the queue is full: further connections are not opened.
    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = full.local_addr().unwrap();
    socket2::SockRef::from(&full).listen(0).unwrap();
    let taken: Vec<_> = (0..3)
        .map_while(|_| std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok())
        .collect();
    assert!((1..3).contains(&taken.len()), "{} connections are in a queue of none", taken.len());
    let front_end = super::common::FrontEnd::new(&[address], "[timeouts]\nconnect = \"1h\"\n");
    let mut client = front_end.client();
    client.send(get("/"));
    front_end.load_once(1);
    front_end.stop_within(Duration::from_millis(50));
    assert_eq!(client.response_or_end("GET").status(), 503);
}
