//! Back-ends that do not answer their health checks in time, or badly, and serve all the same.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_testkit::{Why, eventually, pace};

use super::common::origin::{Origin, echo};
use super::common::strict::Message;
use super::common::{FrontEnd, get, post};

/// Checks that time out soon.
const IMPATIENT: &str = "interval = \"50ms\"\ntimeout = \"100ms\"";
/// Long enough for some checks to time out.
const LONG: Duration = Duration::from_millis(1500);

fn is_check(request: &Message) -> bool {
    request.one("user-agent") == Some("plimsoll-health")
}

/// An origin that answers one request after the other; how often it has answered `/long`, which takes long.
fn one_after_the_other() -> (Origin, Arc<AtomicUsize>) {
    let busy: Mutex<()> = Mutex::default();
    let long: Arc<AtomicUsize> = Arc::default();
    let count = Arc::clone(&long);
    let origin = Origin::answering(move |request| {
        let _one = busy.lock().unwrap();
        if request.target() == "/long" {
            count.fetch_add(1, Ordering::SeqCst);
            pace(LONG, Why::SlowPeer);
        }
        echo(request)
    });
    (origin, long)
}

fn backends(origins: &[&Origin]) -> String {
    origins.iter().map(|origin| format!("[[backend]]\naddress = \"{}\"\n", origin.address)).collect()
}

#[test]
fn one_that_does_one_thing_after_the_other_loses_nothing() {
    let (origin, long) = one_after_the_other();
    let front_end = FrontEnd::watching(IMPATIENT, &backends(&[&origin]));
    let mut slow = front_end.client();
    slow.send(post("/long"));
    eventually("the long request", || long.load(Ordering::SeqCst) == 1);
    // When it has long been found not to answer, and while it still works on that.
    pace(LONG / 2, Why::Midst);
    assert_eq!(front_end.client().get("/short").status(), 200, "it waits behind the other one");
    assert_eq!(slow.response("POST").status(), 200);
    assert_eq!(long.load(Ordering::SeqCst), 1);
}

#[test]
fn one_that_serves_one_connection_after_the_other_is_not_blocked_by_a_kept_one() {
    let busy: Mutex<()> = Mutex::default();
    let origin = Origin::scripted(move |conn| {
        let _one = busy.lock().unwrap();
        while let Some(request) = conn.request() {
            conn.write(&echo(&request));
        }
    });
    let front_end = FrontEnd::watching(IMPATIENT, &backends(&[&origin]));
    let mut clients: Vec<_> = (0..4).map(|_| front_end.client()).collect();
    clients.iter_mut().for_each(|client| assert!(client.send(post("/"))));
    for mut client in clients {
        assert_eq!(client.response("POST").status(), 200);
    }
}

#[test]
fn a_long_request_moves_once_at_most() {
    let ((one, first), (other, second)) = (one_after_the_other(), one_after_the_other());
    let front_end = FrontEnd::watching(IMPATIENT, &backends(&[&one, &other]));
    assert_eq!(front_end.client().get("/long").status(), 200);
    assert!(first.load(Ordering::SeqCst) + second.load(Ordering::SeqCst) <= 2);
}

#[test]
fn a_post_waits_for_a_back_end_in_doubt() {
    let (checks, go) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let (checked, may_go) = (Arc::clone(&checks), Arc::clone(&go));
    let hangs = Origin::answering(move |request| {
        checked.fetch_add(usize::from(is_check(request)), Ordering::SeqCst);
        eventually("the word to answer", || may_go.load(Ordering::SeqCst));
        echo(request)
    });
    let works = Origin::echo();
    let front_end = FrontEnd::watching(IMPATIENT, &backends(&[&hangs, &works]));
    let mut clients: Vec<_> = (0..2).map(|_| front_end.client()).collect();
    clients.iter_mut().for_each(|client| assert!(client.send(post("/"))));
    // Whichever got the other back-end is answered; after that, requests go nowhere else.
    eventually("a check of the one that hangs", || checks.load(Ordering::SeqCst) > 0);
    eventually("that one left out", || {
        let before = works.count();
        (0..4).all(|_| front_end.client().get("/").status() == 200) && works.count() >= before + 4
    });
    go.store(true, Ordering::SeqCst);
    for mut client in clients {
        assert_eq!(client.response("POST").status(), 200);
    }
}

#[test]
fn a_page_that_fails_takes_no_site_down() {
    let checks: Arc<AtomicUsize> = Arc::default();
    let checked = Arc::clone(&checks);
    let origin = Origin::answering(move |request| {
        if request.target() != "/" {
            return echo(request);
        }
        if checked.fetch_add(1, Ordering::SeqCst) % 8 == 7 {
            // Not each time, so that this test does not take long.
            pace(Duration::from_millis(200), Why::SlowPeer);
        }
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n".to_vec()
    });
    let front_end = FrontEnd::watching(IMPATIENT, &backends(&[&origin]));
    for round in 1..20 {
        eventually("a further check", || checks.load(Ordering::SeqCst) >= round);
        assert_eq!(front_end.client().get("/page").status(), 200);
    }
}

#[test]
fn posts_do_not_go_on_connections_that_may_be_closing() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    // One worker, so that there is one kept connection.
    let mut client = front_end.client();
    let mut ask = |text: &str, method: &str| {
        client.send(text);
        assert_eq!(client.response(method).status(), 200);
        origin.connections()
    };
    assert_eq!(ask(&post("/"), "POST"), 1);
    pace(Duration::from_millis(1500), Why::TimeIsUp);
    assert_eq!(ask(&get("/"), "GET"), 1, "what can be repeated takes a kept one");
    pace(Duration::from_millis(1500), Why::TimeIsUp);
    assert_eq!(ask(&post("/"), "POST"), 2);
}
