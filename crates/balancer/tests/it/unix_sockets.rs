//! Back-ends behind Unix sockets.

pub(crate) mod local_origin;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_testkit::{Why, eventually, pace};

use self::local_origin::{LocalOrigin, full_queue};
use super::admin::rig::{Rig, call};
use super::common::origin::Origin;
use super::common::{FrontEnd, get, noise, post};
use super::proxy_protocol::peers::Peer;

/// A directory, and the path of a socket in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.sock");
    (directory, path)
}

fn before(addresses: &[String], tables: &str) -> String {
    let one = |address: &String| format!("[[backend]]\naddress = \"{address}\"\n");
    format!("{}{tables}", addresses.iter().map(one).collect::<String>())
}

#[test]
fn requests_of_all_sizes_pass_and_connections_are_kept() {
    let (_directory, path) = place();
    let origin = LocalOrigin::at(&path);
    let front_end = FrontEnd::from_text(&before(&[origin.address()], ""));
    let mut client = front_end.client();
    for n in 0..20 {
        assert_eq!(client.get(&format!("/{n}")).body, format!("GET /{n}\n").as_bytes());
    }
    for size in [0, 1, 100_000, 3_000_000] {
        let body = noise(size, 5);
        client.send(format!("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n"));
        client.send(&body);
        let answer = client.response("POST");
        assert!(answer.status() == 200 && answer.body == [&b"POST /up\n"[..], &body].concat(), "{size}");
    }
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    assert_eq!(client.response("PUT").body, b"PUT /\nabc");
    assert_eq!(origin.connections(), 1);
    for request in origin.take() {
        assert_eq!((request.one("host"), request.one("x-forwarded-for")), (Some("a"), Some("127.0.0.1")));
    }
}

#[test]
fn where_nobody_listens_the_next_one_is_tried() {
    let (directory, missing) = place();
    let stale = directory.path().join("stale.sock");
    drop(UnixListener::bind(&stale).unwrap());
    assert!(stale.exists());
    let good = Origin::echo();
    let addresses = [
        format!("unix:{}", missing.display()),
        format!("unix:{}", stale.display()),
        good.address.to_string(),
        format!("unix:{}", directory.path().display()),
    ];
    let front_end = FrontEnd::from_text(&before(&addresses, ""));
    let mut client = front_end.client();
    for n in 0..20 {
        assert_eq!(client.get(&format!("/{n}")).status(), 200);
        client.send(post(&format!("/{n}")));
        assert_eq!(client.response("POST").status(), 200);
    }
    assert_eq!(good.take().len(), 40);
    let alone = FrontEnd::from_text(&before(&addresses[..1], ""));
    assert_eq!(alone.client().get("/").status(), 503);
}

#[test]
fn a_back_end_that_goes_and_comes_back_fails_no_get() {
    let (directory, path) = place();
    let other = LocalOrigin::at(&directory.path().join("other.sock"));
    let mut origin = Some(LocalOrigin::at(&path));
    let addresses = [origin.as_ref().unwrap().address(), other.address()];
    let health = "interval = \"50ms\"\nfast_interval = \"20ms\"\nrise = 1";
    let front_end = FrontEnd::watching(health, &before(&addresses, "[policy]\nname = \"round_robin\"\n"));
    let of_client = |origin: &LocalOrigin| {
        let requests = origin.take();
        requests.iter().filter(|r| r.one("user-agent") != Some("plimsoll-health")).count()
    };
    let mut client = front_end.client();
    for _ in 0..3 {
        let there = origin.as_ref().unwrap();
        eventually("requests to both", || {
            assert_eq!(client.get("/").status(), 200);
            of_client(there) > 0
        });
        // Its socket, and the connections that were kept to it.
        drop(origin.take());
        for n in 0..20 {
            assert_eq!(client.get(&format!("/{n}")).status(), 200);
        }
        origin = Some(LocalOrigin::at(&path));
    }
    assert!(of_client(&other) > 0);
}

#[test]
fn checks_ask_for_localhost_and_tell_when_it_is_back() {
    let (_directory, path) = place();
    let address = format!("unix:{}", path.display());
    let health = "path = \"/ready\"\ninterval = \"50ms\"\nfast_interval = \"20ms\"\nrise = 1\nfall = 1";
    let front_end = FrontEnd::watching(health, &before(&[address], ""));
    let mut client = front_end.client();
    for _ in 0..2 {
        eventually("it is down", || client.get("/").status() == 503);
        let origin = LocalOrigin::at(&path);
        eventually("it is up", || client.get("/").status() == 200);
        let requests = origin.take();
        let check = requests.iter().find(|request| request.target() == "/ready").expect("a check");
        assert_eq!(check.one("host"), Some("localhost"));
    }
}

#[test]
fn a_server_can_write_its_answer_to_a_check_to_the_end() {
    let (_directory, path) = place();
    let listener = UnixListener::bind(&path).unwrap();
    let written = Arc::<Mutex<Vec<_>>>::default();
    let results = Arc::clone(&written);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n").unwrap();
            pace(Duration::from_millis(20), Why::Pieces);
            results.lock().unwrap().push(stream.write_all(b"ok").map_err(|error| error.kind()));
        }
    });
    let text = before(&[format!("unix:{}", path.display())], "");
    let _front_end = FrontEnd::watching("path = \"/\"\ninterval = \"50ms\"\ntimeout = \"3s\"", &text);
    eventually("checks", || written.lock().unwrap().len() >= 5);
    assert!(written.lock().unwrap().iter().all(|result| *result == Ok(())), "{written:?}");
}

#[test]
fn a_place_in_a_full_queue_is_waited_for() {
    let (_directory, path) = place();
    let (listener, waiting) = full_queue(&path);
    let front_end = FrontEnd::from_text(&before(&[format!("unix:{}", path.display())], ""));
    let mut client = front_end.client();
    client.send(post("/"));
    pace(Duration::from_millis(50), Why::Midst);
    assert!(client.is_silent());
    drop(waiting);
    let origin = LocalOrigin::on(listener, &path);
    assert_eq!(client.response("POST").status(), 200);
    assert_eq!(origin.take().len(), 1);
}

#[test]
fn a_queue_that_stays_full_is_waited_for_no_longer_than_configured() {
    let (_directory, path) = place();
    let (_listener, _waiting) = full_queue(&path);
    let good = Origin::echo();
    let full = format!("unix:{}", path.display());
    let tables = "[timeouts]\nconnect = \"50ms\"\n";
    let front_end = FrontEnd::from_text(&before(&[full.clone(), good.address.to_string()], tables));
    let mut client = front_end.client();
    for n in 0..4 {
        client.send(post(&format!("/{n}")));
        assert_eq!(client.response("POST").status(), 200);
    }
    assert_eq!(good.take().len(), 4);
    let alone = FrontEnd::from_text(&before(&[full], tables));
    let status = alone.client().get("/").status();
    assert!(matches!(status, 503 | 504), "{status}");
}

#[test]
fn it_is_told_whose_connection_it_is() {
    let (_directory, path) = place();
    let origin = LocalOrigin::at(&path);
    let text = before(&[origin.address()], "proxy_protocol = \"v1\"\n");
    let front_end = FrontEnd::from_text(&text);
    let (mut one, mut other) = (front_end.client(), front_end.client());
    for client in [&mut one, &mut other] {
        assert_eq!((client.get("/").status(), client.get("/").status()), (200, 200));
    }
    let told = origin.introductions();
    assert_eq!((told.len(), origin.connections()), (2, 2));
    for (client, line) in [one, other].iter().zip(told) {
        let (from, to) = (client.stream.local_addr().unwrap(), front_end.address(0));
        assert_eq!(line, format!("PROXY TCP4 127.0.0.1 127.0.0.1 {} {}", from.port(), to.port()));
    }
}

#[test]
fn a_reload_moves_a_back_end_to_a_socket_and_back() {
    let (directory, path) = place();
    let (first, second) = (LocalOrigin::at(&path), LocalOrigin::at(&directory.path().join("second.sock")));
    let tcp = Origin::echo();
    let named = |address: &str| format!("[[backend]]\nname = \"app\"\naddress = \"{address}\"\n");
    let addresses = [tcp.address.to_string(), first.address(), second.address()];
    let front_end = FrontEnd::from_text(&named(&addresses[0]));
    let mut client = front_end.client();
    for at in [0, 1, 2, 1, 0, 2] {
        front_end.reload(&named(&addresses[at]));
        assert_eq!(client.get("/").status(), 200);
        let counts = [tcp.take().len(), first.take().len(), second.take().len()];
        assert_eq!((counts[at], counts.iter().sum::<usize>()), (1, 1));
    }
    // One more, and away with it again.
    front_end.reload(&before(&addresses[1..], "[policy]\nname = \"round_robin\"\n"));
    for _ in 0..4 {
        assert_eq!(client.get("/").status(), 200);
    }
    assert!(first.take().len() == 2 && second.take().len() == 2);
    front_end.reload(&before(&addresses[1..2], ""));
    client.send([get("/a"), get("/b")].concat());
    assert_eq!((client.response("GET").status(), client.response("GET").status()), (200, 200));
    assert_eq!((first.take().len(), second.take().len()), (2, 0));
}

#[test]
fn the_admin_api_finds_it_by_the_path_of_its_socket() {
    let (_directory, path) = place();
    let origin = LocalOrigin::at(&path);
    let name = origin.address();
    let rig = Rig::from_text(&format!(
        "workers = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[health]\nprobe = \"none\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\n{}",
        before(std::slice::from_ref(&name), "")
    ));
    rig.get_times(3, "/");
    let listed = rig.get("/backends").json();
    assert_eq!((&listed[0]["name"], &listed[0]["address"]), (&name.clone().into(), &name.clone().into()));
    assert_eq!(listed[0]["host"], "localhost");
    for named in [name.clone(), name.replace('/', "%2F")] {
        assert_eq!(rig.get(&format!("/backends/{named}")).json()["answers"]["2xx"], 3);
        for (action, drained) in [("drain", true), ("undrain", false)] {
            let answer = call(rig.admin, "POST", &format!("/backends/{named}/{action}"), &[], "");
            assert_eq!((answer.status, answer.json()["drained"].as_bool()), (200, Some(drained)));
        }
        let answer = rig.call("PUT", &format!("/backends/{named}/weight"), &[], "0.5");
        assert_eq!(answer.json()["weight"], 0.5);
    }
    rig.get(&format!("/backends/{name}.old")).assert_error(404);
    assert_eq!(rig.metrics().sum("plimsoll_backend_responses_total", &format!("backend=\"{name}\"")), 3.0);
}

/// It closes connections after a few requests, as servers with a bound do.
#[test]
fn nginx_behind_a_unix_socket() {
    let (directory, path) = place();
    let told = directory.path().join("told.sock");
    let _nginx = Peer::nginx(&format!(
        "listen ADDRESS; listen unix:{}; listen unix:{} proxy_protocol; keepalive_requests 7; \
         location / {{ return 200 \"$http_host $request_uri\"; }} \
         location /told {{ return 200 \"$proxy_protocol_addr\"; }} \
         location /big {{ root {}; }}",
        path.display(),
        told.display(),
        directory.path().display()
    ));
    let big = noise(2_000_000, 11);
    std::fs::write(directory.path().join("big"), &big).unwrap();
    let front_end = FrontEnd::watching("path = \"/\"", &before(&[format!("unix:{}", path.display())], ""));
    let mut client = front_end.client();
    for n in 0..100 {
        let answer = client.get(&format!("/{n}"));
        assert_eq!((answer.status(), answer.body), (200, format!("a /{n}").into_bytes()));
    }
    assert!(client.get("/big").body == big);
    client
        .send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{}", "x".repeat(100_000)));
    assert_eq!(client.response("POST").status(), 200);
    let text = before(&[format!("unix:{}", told.display())], "proxy_protocol = \"v2\"\n");
    let front_end = FrontEnd::from_text(&text);
    let mut client = front_end.client();
    for _ in 0..20 {
        assert_eq!(client.get("/told").body, b"127.0.0.1");
    }
}
