//! Clients of HTTP/2 that rest before they read their answers.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_testkit::{TestAuthority, Why, pace};

use super::super::common::FrontEnd;
use super::super::common::origin::Origin;
use super::{BOTH, SECURE, Secured, Trusting, before, tables};

const CLIENTS: usize = 20;
/// How much each answer has more than the one before: with some of them the kernel's buffers are just full, and only what is encrypted waits.
const STEP_BYTES: usize = 30_000;
/// SETTINGS with an initial window of 8 MiB, and such a window for the connection; then GET of `https://site.example/`.
const REQUEST: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\
    \x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x80\x00\x00\
    \x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x80\x00\x00\
    \x00\x00\x11\x01\x05\x00\x00\x00\x01\x82\x87\x84\x41\x0csite.example";

/// How much the kernel holds of what is sent to a client of this machine that does not read.
fn kernel_bytes() -> usize {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.set_nonblocking(true).unwrap();
    let (mut bytes, mut looks) = (0, 0);
    while looks < 20 {
        match server.write(&[b'x'; 16_384]) {
            Ok(count) => (bytes, looks) = (bytes + count, 0),
            Err(_) => {
                looks += 1;
                pace(Duration::from_millis(10), Why::SlowPeer);
            }
        }
    }
    bytes
}

/// Bytes of content, once the stream has ended.
fn content_bytes(mut frames: &[u8]) -> Option<usize> {
    let mut content = 0;
    while let Some(head) = frames.get(..9) {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let (is_content, ends) = (head[3] == 0, head[4] & 1 != 0);
        frames = frames.get(9 + length..)?;
        if is_content {
            content += length;
            if ends {
                return Some(content);
            }
        }
    }
    None
}

/// Reads until the answer has ended, or the connection has.
fn answer_bytes(client: &mut Secured) -> Option<usize> {
    let (mut frames, mut buffer) = (Vec::new(), vec![0; 1 << 20]);
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        frames.extend_from_slice(&buffer[..count]);
        if let Some(bytes) = content_bytes(&frames) {
            return Some(bytes);
        }
    }
    None
}

/// They are told to go with their first request, and the connection is to end soon after the answer: not before that has gone out.
#[test]
fn the_end_of_an_answer_waits_for_clients_that_were_told_to_go() {
    let (authority, begun) = (TestAuthority::new(), AtomicUsize::new(0));
    let least_bytes = kernel_bytes().saturating_sub(STEP_BYTES * CLIENTS * 3 / 4);
    let size_of = move |number| least_bytes + STEP_BYTES * number;
    let origin = Origin::answering(move |_| {
        let size = size_of(begun.fetch_add(1, Ordering::Relaxed));
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
        [head.as_bytes(), &vec![b'x'; size]].concat()
    });
    let site = authority.issue("site", &["site.example"]);
    let more = "[limits]\nrequests_per_connection = 1\n";
    let front_end = FrontEnd::from_text(&before(&origin, &tables(&[&site], more)));
    let mut trusting = Trusting::new(&authority, BOTH, None);
    Arc::get_mut(&mut trusting.config).unwrap().alpn_protocols = vec![b"h2".to_vec()];
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut client = trusting.connect(front_end.address(SECURE), "site.example");
            client.write_all(REQUEST).unwrap();
            client.flush().unwrap();
            client
        })
        .collect();
    pace(Duration::from_millis(2500), Why::SlowPeer);
    let mut got: Vec<_> = clients.iter_mut().filter_map(answer_bytes).collect();
    got.sort_unstable();
    let wanted: Vec<_> = (0..CLIENTS).map(size_of).collect();
    assert_eq!(got, wanted);
}
