//! Limits of single back-ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use plimsoll_testkit::eventually;

use super::rig::{Rig, text};
use crate::common::origin::{Origin, echo};
use crate::common::{Client, get};

/// An origin that answers once it is told to, and how many requests it has got.
fn holding(go: &Arc<AtomicBool>) -> (Origin, Arc<AtomicUsize>) {
    let (go, got): (_, Arc<AtomicUsize>) = (Arc::clone(go), Arc::default());
    let count = Arc::clone(&got);
    let origin = Origin::answering(move |request| {
        count.fetch_add(1, Ordering::SeqCst);
        eventually("the word to answer", || go.load(Ordering::SeqCst));
        echo(request)
    });
    (origin, got)
}

fn asking(rig: &Rig) -> Client {
    let mut client = rig.client();
    assert!(client.send(get("/")));
    client
}

#[test]
fn a_full_back_end_gets_nothing_and_what_comes_then_waits() {
    for policy in ["round_robin", "lard", "maglev", "random"] {
        let go: Arc<AtomicBool> = Arc::default();
        let ((one, got_one), (two, got_two)) = (holding(&go), holding(&go));
        let limits = [(&one, "max_requests = 2\n"), (&two, "max_requests = 1\n")];
        let admission = "[admission]\nlimit = 100\nqueue = 1\nqueue_timeout = \"1h\"\n";
        let rig = Rig::from_text(&text(&limits, &format!("[policy]\nname = \"{policy}\"\n{admission}")));
        let mut clients: Vec<Client> = (0..3).map(|_| asking(&rig)).collect();
        let got = || (got_one.load(Ordering::SeqCst), got_two.load(Ordering::SeqCst));
        eventually("as many requests as may be", || got() == (2, 1));
        assert!(["b0", "b1"].iter().all(|b| rig.backend(b)["full"] == true), "{policy}");
        assert_eq!(rig.metrics().sum("plimsoll_backend_full", ""), 2.0);
        clients.push(asking(&rig));
        rig.metrics_once(|m| m.get("plimsoll_requests_waiting") == 1.0);
        assert_eq!(asking(&rig).response("GET").status(), 503, "{policy}: the queue is full");
        rig.metrics_once(|m| m.get("plimsoll_refusals_total{reason=\"backend_requests\"}") == 1.0);
        go.store(true, Ordering::SeqCst);
        for client in &mut clients {
            assert_eq!(client.response("GET").status(), 200, "{policy}");
        }
        let sum = got_one.load(Ordering::SeqCst) + got_two.load(Ordering::SeqCst);
        assert_eq!(sum, 4, "{policy}");
    }
}

#[test]
fn no_more_wait_for_a_connection_than_may() {
    let go: Arc<AtomicBool> = Arc::default();
    let (origin, got) = holding(&go);
    let limits = "max_connections = 1\nmax_waiting = 1\n";
    // So long that whoever waits gets its turn.
    let rig = Rig::from_text(&text(&[(&origin, limits)], "[timeouts]\nconnect = \"1h\"\n"));
    let mut clients = vec![asking(&rig)];
    eventually("the first request", || got.load(Ordering::SeqCst) == 1);
    clients.push(asking(&rig));
    eventually("one that waits", || rig.backend("b0")["waiting_for_connection"] == 1);
    assert_eq!(asking(&rig).response("GET").status(), 503);
    rig.metrics_once(|m| m.get("plimsoll_refusals_total{reason=\"backend_connections\"}") == 1.0);
    go.store(true, Ordering::SeqCst);
    for client in &mut clients {
        assert_eq!(client.response("GET").status(), 200);
    }
}

#[test]
fn a_reload_changes_limits() {
    let go: Arc<AtomicBool> = Arc::default();
    let (origin, got) = holding(&go);
    let with = |limit: &str| text(&[(&origin, limit)], "[admission]\nqueue_timeout = \"1h\"\n");
    let rig = Rig::from_text(&with("max_requests = 1\n"));
    let mut clients: Vec<Client> = (0..3).map(|_| asking(&rig)).collect();
    rig.metrics_once(|m| m.get("plimsoll_requests_waiting") == 2.0);
    rig.reload(&with(""));
    eventually("all requests", || got.load(Ordering::SeqCst) == 3);
    assert_eq!(rig.backend("b0")["max_requests"], serde_json::Value::Null);
    go.store(true, Ordering::SeqCst);
    for client in &mut clients {
        assert_eq!(client.response("GET").status(), 200);
    }
}
