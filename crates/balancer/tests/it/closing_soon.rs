//! Back-ends that close connections without a word, and requests that must not be sent twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_testkit::{Why, pace};

use super::common::origin::{Origin, echo};
use super::common::{Client, FrontEnd};

fn post(path: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
}

/// One that answers so many requests on a connection, and says nothing of an end; and how many connections it has had.
fn answers(requests: usize) -> (Origin, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let origin = Origin::scripted(move |conn| {
        count.fetch_add(1, Ordering::Relaxed);
        for _ in 0..requests {
            let Some(request) = conn.request() else { return };
            if !conn.write(&echo(&request)) {
                return;
            }
        }
        // What comes now is lost.
        pace(Duration::from_millis(5), Why::SlowPeer);
    });
    (origin, connections)
}

#[test]
fn none_is_lost_where_each_connection_is_closed_after_one_answer() {
    let (origin, _) = answers(1);
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut clients: Vec<Client> = (0..8).map(|_| front_end.client()).collect();
    for round in 0..50 {
        for client in &mut clients {
            assert!(client.send(post(&format!("/{round}"))));
        }
        for client in &mut clients {
            assert_eq!(client.response("POST").status(), 200, "round {round}");
        }
    }
}

#[test]
fn where_they_are_left_open_they_are_used_again() {
    let (origin, connections) = answers(usize::MAX);
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut clients: Vec<Client> = (0..4).map(|_| front_end.client()).collect();
    let mut rounds = |rounds: usize| {
        for _ in 0..rounds {
            for client in &mut clients {
                assert!(client.send(post("/")));
            }
            for client in &mut clients {
                assert_eq!(client.response("POST").status(), 200);
            }
        }
    };
    rounds(1);
    pace(Duration::from_millis(200), Why::TimeIsUp);
    rounds(1);
    let before = connections.load(Ordering::Relaxed);
    rounds(100);
    let more = connections.load(Ordering::Relaxed) - before;
    assert!(more <= 8, "{more} connections for 400 requests");
}
