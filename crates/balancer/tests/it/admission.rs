//! The default admission limit in front of back-ends that hold requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use plimsoll_testkit::eventually;

use super::common::origin::{Origin, echo};
use super::common::{Client, FrontEnd, get};

/// LARD's S for one back-end.
const S: usize = 24;

#[test]
fn a_back_end_may_hold_more_requests_than_s() {
    let held: Arc<AtomicUsize> = Arc::default();
    let go: Arc<AtomicBool> = Arc::default();
    let (holds, may_end) = (Arc::clone(&held), Arc::clone(&go));
    let origin = Origin::answering(move |request| {
        if request.target() == "/poll" {
            holds.fetch_add(1, Ordering::SeqCst);
            eventually("the word to answer", || may_end.load(Ordering::SeqCst));
        }
        echo(request)
    });
    // So long that a busy machine refuses nobody.
    let front_end = FrontEnd::new(&[origin.address], "[admission]\nqueue_timeout = \"1h\"\n");
    let poll = |_| {
        let mut client = front_end.client();
        assert!(client.send(get("/poll")));
        client
    };
    let polls: Vec<Client> = (0..5 * S).map(poll).collect();
    eventually("all polls at the back-end", || held.load(Ordering::SeqCst) == 5 * S);
    for _ in 0..20 {
        assert_eq!(front_end.client().get("/").status(), 200, "beside them there is room");
    }
    go.store(true, Ordering::SeqCst);
    for mut client in polls {
        assert_eq!(client.response("GET").status(), 200);
    }
}

#[test]
fn a_limit_of_ones_own_does_not_grow() {
    let go: Arc<AtomicBool> = Arc::default();
    let may_end = Arc::clone(&go);
    let origin = Origin::answering(move |request| {
        eventually("the word to answer", || may_end.load(Ordering::SeqCst));
        echo(request)
    });
    let front_end =
        FrontEnd::new(&[origin.address], "[admission]\nlimit = \"lard\"\nqueue_timeout = \"500ms\"\n");
    let mut clients: Vec<Client> = (0..S + 3).map(|_| front_end.client()).collect();
    for client in &mut clients {
        assert!(client.send(get("/")));
    }
    // Three are refused, whichever came last; nobody is answered before.
    let refused = |client: &mut Client| client.response("GET").status() == 503;
    eventually("all requests there is room for", || origin.connections() == S);
    let mut answers = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = clients.iter_mut().map(|c| scope.spawn(move || refused(c))).collect();
        eventually("the refusals", || threads.iter().filter(|t| t.is_finished()).count() == 3);
        go.store(true, Ordering::SeqCst);
        answers = threads.into_iter().map(|t| t.join().unwrap()).collect();
    });
    assert_eq!(answers.into_iter().filter(|&refused| refused).count(), 3);
}
