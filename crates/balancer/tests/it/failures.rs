//! Back-ends that fail: what is tried again, and what must not be.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use plimsoll_testkit::{OwnLoopback, Why, eventually, pace};

use super::common::origin::{Origin, echo};
use super::common::{Client, FrontEnd, get, post};

#[test]
fn a_refused_connection_is_tried_elsewhere_for_every_method() {
    let origin = Origin::echo();
    // Nobody listens there.
    let own = OwnLoopback::new();
    let front_end = FrontEnd::new(&[own.at(8000), origin.address, own.at(8001)], "");
    let mut client = front_end.client();
    for n in 0..20 {
        assert_eq!(client.get(&format!("/{n}")).status(), 200);
        client.send(post(&format!("/{n}")));
        assert_eq!(client.response("POST").status(), 200);
        client.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
        assert_eq!(client.response("PUT").body, b"PUT /\nabc");
    }
    assert_eq!(origin.take().len(), 60);
}

#[test]
fn nobody_there_is_503() {
    let own = OwnLoopback::new();
    let front_end = FrontEnd::new(&[own.at(8000)], "");
    let mut client = front_end.client();
    let answer = client.get("/");
    assert_eq!((answer.status(), answer.one("retry-after").is_some()), (503, true));
    client.send(post("/"));
    assert_eq!(client.response("POST").status(), 503);
}

#[test]
fn a_post_is_answered_when_its_back_end_is_found_down() {
    // Answers checks until a POST has come, and that one never. Then it closes their connections: it is down for certain.
    let hung: Arc<AtomicBool> = Arc::default();
    let hangs = Arc::clone(&hung);
    let origin = Origin::scripted(move |conn| {
        while let Some(request) = conn.request() {
            if request.method() == "POST" {
                hangs.store(true, Ordering::SeqCst);
            } else if !hangs.load(Ordering::SeqCst) {
                conn.write(&echo(&request));
            } else {
                return;
            }
        }
    });
    let front_end = FrontEnd::watching(
        // So long that a busy machine answers in time.
        "interval = \"100ms\"\ntimeout = \"3s\"",
        &format!("[[backend]]\naddress = \"{}\"\n[timeouts]\nfirst_byte = \"1h\"\n", origin.address),
    );
    let mut client = front_end.client();
    client.send(post("/"));
    assert_eq!(client.response("POST").status(), 502);
    assert!(hung.load(Ordering::SeqCst));
}

/// An origin that resets or closes each connection once it has a whole request.
fn dropping(reset: bool) -> (Origin, Arc<AtomicUsize>) {
    let executed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&executed);
    let origin = Origin::scripted(move |conn| {
        if conn.request().is_some() {
            count.fetch_add(1, Ordering::SeqCst);
            if reset {
                conn.reset();
            }
        }
    });
    (origin, executed)
}

#[test]
fn only_safe_requests_are_repeated() {
    for reset in [false, true] {
        let (bad, executed) = dropping(reset);
        let good = Origin::echo();
        let front_end = FrontEnd::new(&[bad.address, good.address], "");
        let mut client = front_end.client();
        for n in 0..10 {
            for (method, body) in [("GET", ""), ("HEAD", ""), ("OPTIONS", "")] {
                client.send(format!("{method} /{n} HTTP/1.1\r\nHost: a\r\n\r\n{body}"));
                assert_eq!(client.response(method).status(), 200, "{method} {n}");
            }
        }
        assert!(executed.swap(0, Ordering::SeqCst) > 0, "the bad one was asked");
        assert_eq!(good.take().len(), 30);
        drop(front_end);
        // Each POST runs once at most, here or there.
        let front_end = FrontEnd::new(&[bad.address, good.address], "");
        let mut failed = 0;
        for n in 0..20 {
            let mut client = front_end.client();
            client.send(if n % 2 == 0 {
                post("/")
            } else {
                "DELETE / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()
            });
            match client.response("POST").status() {
                200 => {}
                502 => failed += 1,
                status => panic!("{status}"),
            }
        }
        assert!(failed > 0);
        assert_eq!(executed.load(Ordering::SeqCst), failed);
        assert_eq!(good.take().len() + failed, 20);
    }
}

#[test]
fn a_kept_connection_that_the_back_end_closed() {
    // Each connection answers one request and says nothing about closing.
    let origin = Origin::scripted(|conn| {
        if let Some(request) = conn.request() {
            conn.write(&echo(&request));
            if request.target().starts_with("/wait") {
                pace(Duration::from_millis(2), Why::SlowPeer);
            }
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    let (mut asked, mut posted) = (0, 0);
    for n in 0..300 {
        let target = if n % 2 == 0 { format!("/{n}") } else { format!("/wait-{n}") };
        assert_eq!(client.get(&target).status(), 200, "{target}");
        asked += 1;
        if n % 3 == 0 {
            // The end of the connection is there then.
            origin.wait_until_closed();
            client.send(post("/post"));
            // Should it have come later than that, the request has not been carried out and is not repeated.
            match client.response("POST").status() {
                200 => posted += 1,
                status => assert_eq!(status, 502),
            }
        }
    }
    let got = origin.take();
    let posts = got.iter().filter(|m| m.method() == "POST").count();
    assert_eq!((got.len(), posts), (asked + posted, posted));
    assert!(posted > 50, "only {posted} of 100 were answered");
}

#[test]
fn a_back_end_that_says_nothing() {
    let origin = Origin::scripted(|conn| {
        while let Some(request) = conn.request() {
            match request.target() {
                "/never" => while conn.read() > 0 {},
                "/stops" => {
                    conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
                    while conn.read() > 0 {}
                }
                "/half" => {
                    conn.write(b"HTTP/1.1 200 OK\r\nConte");
                    while conn.read() > 0 {}
                }
                "/interim" => {
                    conn.write(b"HTTP/1.1 103 Early Hints\r\n\r\n");
                    while conn.read() > 0 {}
                }
                _ => drop(conn.write(&echo(&request))),
            }
        }
    });
    let front_end =
        FrontEnd::new(&[origin.address], "[timeouts]\nfirst_byte = \"200ms\"\nbody = \"200ms\"\n");
    for target in ["/never", "/half", "/interim"] {
        let mut client = front_end.client();
        client.send(get(target));
        assert_eq!(client.response("GET").status(), 504, "{target}");
        assert_eq!(client.get("/after").body, b"GET /after\n", "the connection goes on");
        client.send(post(target));
        assert_eq!(client.response("POST").status(), 504, "{target}");
    }
    let mut client = front_end.client();
    client.send(get("/stops"));
    let (answer, end) = client.rest();
    assert!(!answer.ends_with(b"hello") && end == super::common::End::Reset, "{end:?}");
    // Nothing was asked twice.
    assert_eq!(origin.take().iter().filter(|m| m.target() != "/after").count(), 7);
}

#[test]
fn no_more_connections_than_allowed_and_everyone_is_served() {
    let at_once = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let count = Arc::clone(&at_once);
    let origin = Origin::answering(move |request| {
        let (now, most) = &*count;
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        pace(Duration::from_millis(2), Why::SlowPeer);
        now.fetch_sub(1, Ordering::SeqCst);
        echo(request)
    });
    let text = format!(
        "[[backend]]\naddress = \"{}\"\nmax_connections = 3\n[timeouts]\nconnect = \"60s\"\n",
        origin.address
    );
    let front_end = FrontEnd::from_text(&text);
    let barrier = Barrier::new(24);
    std::thread::scope(|scope| {
        for n in 0..24 {
            let (front_end, barrier) = (&front_end, &barrier);
            scope.spawn(move || {
                let mut client = front_end.client();
                barrier.wait();
                for k in 0..20 {
                    if n % 2 == 0 {
                        assert_eq!(
                            client.get(&format!("/{n}-{k}")).body,
                            format!("GET /{n}-{k}\n").as_bytes()
                        );
                    } else {
                        client.send(post("/"));
                        assert_eq!(client.response("POST").body, b"POST /\nhello");
                    }
                }
            });
        }
    });
    assert_eq!(origin.take().len(), 480);
    assert_eq!(at_once.1.load(Ordering::SeqCst), 3);
}

#[test]
fn whatever_breaks_off_gives_its_places_back() {
    let origin = Origin::answering(|_| {
        pace(Duration::from_millis(3), Why::SlowPeer);
        [b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n".to_vec(), vec![b'x'; 300_000]].concat()
    });
    let text = format!(
        "[[backend]]\naddress = \"{}\"\nmax_connections = 2\n[limits]\nconnections = 8\n",
        origin.address
    );
    let front_end = FrontEnd::from_text(&text);
    let wire =
        [get("/"), post("/"), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\nx".to_owned()];
    for n in 0..300usize {
        let mut client = front_end.client();
        let wire = &wire[n % 3];
        client.send(&wire[..wire.len().saturating_sub(if n % 5 == 0 { n % 40 } else { 0 })]);
        pace(Duration::from_micros(n as u64 * 37 % 6000), Why::Midst);
        if n % 2 == 0 {
            client.reset();
        }
    }
    front_end.assert_idle();
    // All places at once are to be had, on both sides.
    let mut clients: Vec<Client> = (0..8).map(|_| front_end.client()).collect();
    clients.iter_mut().for_each(|c| {
        let _ = c.send(get("/"));
    });
    for client in &mut clients {
        assert_eq!(client.response("GET").body.len(), 300_000);
    }
}

#[test]
fn a_full_back_end_is_503_after_a_while() {
    let (go_on, told) = std::sync::mpsc::channel();
    let told = Mutex::new(told);
    let origin = Origin::answering(move |request| {
        if request.target() == "/first" {
            told.lock().unwrap().recv().unwrap();
        }
        echo(request)
    });
    let text = format!(
        "[[backend]]\naddress = \"{}\"\nmax_connections = 1\n[timeouts]\nconnect = \"50ms\"\n[limits]\nretries = 1\n",
        origin.address
    );
    let front_end = FrontEnd::from_text(&text);
    let mut first = front_end.client();
    first.send(get("/first"));
    eventually("the first request", || origin.count() == 1);
    let mut second: Client = front_end.client();
    assert_eq!(second.get("/second").status(), 503);
    go_on.send(()).unwrap();
    assert_eq!(first.response("GET").status(), 200);
    assert_eq!(second.get("/third").status(), 200);
    assert_eq!(origin.take_lines(), ["GET /first", "GET /third"]);
}
