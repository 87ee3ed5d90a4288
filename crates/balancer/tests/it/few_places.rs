//! Back-ends that serve few connections at once, and let few wait.

use std::io::{Read as _, Write as _};
use std::sync::Mutex;
use std::time::Duration;

use plimsoll_testkit::{Why, pace};

use super::common::origin::{Origin, echo, short_queue};
use super::common::{Client, FrontEnd, get};

/// Nothing but what is tested ends a wait.
const TABLES: &str = "[timeouts]\nbackend_idle = \"1h\"\nfirst_byte = \"1h\"\n";

/// One that serves a connection until its end before it looks at the next one.
fn one_after_the_other() -> Origin {
    let place = Mutex::new(());
    Origin::scripted(move |conn| {
        let _place = place.lock().unwrap();
        while let Some(request) = conn.request() {
            if !conn.write(&echo(&request)) {
                return;
            }
        }
    })
}

#[test]
fn a_kept_connection_blocks_no_request_of_another_worker() {
    let origin = one_after_the_other();
    let front_end = FrontEnd::new(&[origin.address], TABLES);
    // Among so many some have another worker than the one before.
    for n in 0..40 {
        assert_eq!(front_end.client().get(&format!("/{n}")).status(), 200);
    }
}

#[test]
fn requests_that_come_at_once_all_get_a_place() {
    let origin = one_after_the_other();
    let front_end = FrontEnd::new(&[origin.address], TABLES);
    let mut clients: Vec<Client> = (0..20).map(|_| front_end.client()).collect();
    for _ in 0..3 {
        for client in &mut clients {
            assert!(client.send(get("/")));
        }
        for client in &mut clients {
            assert_eq!(client.response("GET").status(), 200);
        }
    }
}

#[test]
fn requests_wait_for_a_place_in_a_full_queue_of_connections() {
    let listener = short_queue();
    let address = listener.local_addr().unwrap();
    let tables = "[limits]\nretries = 0\n[timeouts]\nconnect = \"1s\"\n";
    let front_end = FrontEnd::new(&[address], tables);
    let mut clients: Vec<Client> = (0..12).map(|_| front_end.client()).collect();
    for client in &mut clients {
        assert!(client.send(get("/")));
    }
    // It answers one every now and then. Whoever has found no place for a second has gone.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 1000];
            if stream.read(&mut head).is_ok_and(|n| n > 0) {
                pace(Duration::from_millis(300), Why::Midst);
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                drop(stream.write_all(answer));
            }
        }
    });
    for client in &mut clients {
        assert_eq!(client.response("GET").status(), 200);
    }
}
