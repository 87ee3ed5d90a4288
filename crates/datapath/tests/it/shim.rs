//! The shim in real servers.

use std::fs::{self, Permissions};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use plimsoll_datapath::shim::{self, Header};
use plimsoll_testkit::{PATIENCE, Why, eventually, pace, uninterrupted};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, Uid, kill_process};
use rustix::thread::set_thread_res_uid;

use crate::shim_server::{Server, answer, answered, connection, get, given_back, large, let_go, silent};

const KEEP: Header =
    Header { give_back_at_next_request: false, head_request: false, head_size_bytes: 0, no_end: false };
const GIVE_BACK: Header = Header { give_back_at_next_request: true, ..KEEP };

#[test]
fn answers_look_as_if_accepted() {
    answers_look_as_if_accepted_from(&Server::nginx());
}

#[test]
fn answers_look_as_if_accepted_apache() {
    answers_look_as_if_accepted_from(&Server::apache());
}

#[test]
fn answers_look_as_if_accepted_node() {
    answers_look_as_if_accepted_from(&Server::node());
}

fn answers_look_as_if_accepted_from(server: &Server) {
    let (mut client, socket) = connection();
    get(&mut client, "/small.txt");
    let unix = server.hand(socket, KEEP);
    let (head, content) = answer(&mut client, false);
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert_eq!(content, b"small");
    let ended = answered(&unix);
    assert_eq!((ended.status, ended.content_bytes, ended.complete), (200, 5, true));
    assert!(ended.first_byte_ns > 0 && !ended.ended);
    get(&mut client, "/large.bin");
    let (_, content) = answer(&mut client, false);
    let expected = large();
    assert!(content == expected, "{} bytes of {}", content.len(), expected.len());
    let ended = answered(&unix);
    assert_eq!((ended.status, ended.content_bytes, ended.complete), (200, expected.len() as u64, true));
    let ends = format!("{} 200 5 \"GET /small.txt HTTP/1.1\"", client.local_addr().unwrap());
    eventually("the access log", || server.log().contains("large"));
    assert!(server.log().starts_with(&ends), "{} does not start with {ends}", server.log());
    silent(&unix);
    drop(client);
    let_go(&unix);
}

#[test]
fn given_back_at_each_further_request() {
    given_back_at_each_further_request_from(&Server::nginx());
}

#[test]
fn given_back_at_each_further_request_apache() {
    given_back_at_each_further_request_from(&Server::apache());
}

#[test]
fn given_back_at_each_further_request_node() {
    given_back_at_each_further_request_from(&Server::node());
}

fn given_back_at_each_further_request_from(server: &Server) {
    let (mut client, mut socket) = connection();
    for round in 0..200 {
        get(&mut client, if round % 10 == 9 { "/large.bin" } else { "/small.txt" });
        let unix = server.hand(socket, GIVE_BACK);
        let (_, content) = answer(&mut client, false);
        let ended = answered(&unix);
        assert_eq!((ended.status, ended.content_bytes, ended.complete), (200, content.len() as u64, true));
        silent(&unix);
        client.write_all(b"GET /next").unwrap();
        socket = given_back(&unix);
        drop(unix);
        let mut waiting = [0; 9];
        assert_eq!(uninterrupted(|| socket.peek(&mut waiting)).unwrap(), 9);
        // The agent's socket again: what the client has sent is still in it.
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.read_exact(&mut waiting).unwrap();
        assert_eq!(&waiting, b"GET /next");
    }
    drop((client, socket));
    // Listeners, channels between the processes, what is just being closed; a leak would be 200 at least.
    eventually("the server to close its sockets", || server.open_sockets() < 50);
}

#[test]
fn many_connections_at_once() {
    many_connections_at_once_from(&Server::nginx());
}

#[test]
fn many_connections_at_once_apache() {
    many_connections_at_once_from(&Server::apache());
}

#[test]
fn many_connections_at_once_node() {
    many_connections_at_once_from(&Server::node());
}

fn many_connections_at_once_from(server: &Server) {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let (mut client, socket) = connection();
                    let unix = server.hand(socket, GIVE_BACK);
                    get(&mut client, "/small.txt");
                    assert_eq!(answer(&mut client, false).1, b"small");
                    assert!(answered(&unix).complete);
                    get(&mut client, "/kept");
                    let unix = server.hand(given_back(&unix), GIVE_BACK);
                    assert_eq!(answer(&mut client, false).1, b"kept");
                    assert_eq!(answered(&unix).content_bytes, 4);
                }
            });
        }
    });
}

/// One request on one connection: (status, content bytes, complete) as the shim reports them, and what the client got.
fn one(server: &Server, request: &str, header: Header) -> ((u16, u64, bool), String, Vec<u8>) {
    let (mut client, socket) = connection();
    let unix = server.hand(socket, header);
    client.write_all(request.as_bytes()).unwrap();
    let (head, content) = answer(&mut client, request.starts_with("HEAD"));
    let ended = answered(&unix);
    drop(client);
    let_go(&unix);
    ((ended.status, ended.content_bytes, ended.complete), head, content)
}

#[test]
fn answers_of_every_form() {
    answers_of_every_form_from(&Server::nginx());
}

#[test]
fn answers_of_every_form_apache() {
    answers_of_every_form_from(&Server::apache());
}

fn answers_of_every_form_from(server: &Server) {
    let head = Header { head_request: true, ..KEEP };
    let (ended, _, _) = one(server, "HEAD /large.bin HTTP/1.1\r\nHost: a\r\n\r\n", head);
    assert_eq!(ended, (200, 0, true));
    let (ended, _, content) = one(server, "GET /none HTTP/1.1\r\nHost: a\r\n\r\n", KEEP);
    assert_eq!(ended, (404, content.len() as u64, true));
    let (ended, head, content) = one(server, "GET /list/ HTTP/1.1\r\nHost: a\r\n\r\n", KEEP);
    assert!(head.contains("chunked"), "{head}");
    assert_eq!((ended.0, ended.2), (200, true));
    assert!(
        ended.1 > 0 && ended.1 < content.len() as u64,
        "{} bytes of content in {}",
        ended.1,
        content.len()
    );
    let (ended, head, content) = one(server, "GET /list/ HTTP/1.0\r\n\r\n", KEEP);
    assert!(!head.contains("content-length"), "{head}");
    assert_eq!(ended, (200, content.len() as u64, true));
    let close = "GET /small.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_eq!(one(server, close, GIVE_BACK).0, (200, 5, true));
    let (_, head, _) = one(server, "HEAD /small.txt HTTP/1.1\r\nHost: a\r\n\r\n", head_of_first());
    let modified = head.split("last-modified: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let since =
        format!("GET /small.txt HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: {}\r\n\r\n", dated(modified));
    assert_eq!(one(server, &since, KEEP).0, (304, 0, true));
}

fn head_of_first() -> Header {
    Header { head_request: true, ..KEEP }
}

/// A date as nginx compares it: the head was made lower case.
fn dated(lower: &str) -> String {
    let capital = |word: &str| match word {
        "gmt" => "GMT".to_owned(),
        word => word[..1].to_uppercase() + &word[1..],
    };
    lower.split(' ').map(capital).collect::<Vec<_>>().join(" ")
}

#[test]
fn head_and_several_requests_on_one_connection() {
    let server = Server::nginx();
    let (mut client, socket) = connection();
    let unix = server.hand(socket, KEEP);
    get(&mut client, "/small.txt");
    answer(&mut client, false);
    assert_eq!(answered(&unix).content_bytes, 5);
    client.write_all(b"HEAD /large.bin HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    answer(&mut client, true);
    let ended = answered(&unix);
    assert_eq!((ended.status, ended.content_bytes, ended.complete), (200, 0, true));
    // Two at once: the server reads both.
    let twice = "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2);
    client.write_all(twice.as_bytes()).unwrap();
    for _ in 0..2 {
        answer(&mut client, false);
        assert_eq!(answered(&unix).content_bytes, 5);
    }
}

#[test]
fn an_answer_that_says_that_it_is_the_last_one() {
    let server = Server::nginx();
    let (mut client, socket) = connection();
    // Without a host: nginx refuses it, and keeps no such connection.
    client.write_all(b"GET /small.txt HTTP/1.1\r\n\r\n").unwrap();
    let unix = server.hand(socket, GIVE_BACK);
    let (head, _) = answer(&mut client, false);
    assert!(head.contains("connection: close"), "{head}");
    let ended = answered(&unix);
    assert_eq!((ended.status, ended.complete, ended.ended), (400, true, true));
}

#[test]
fn client_that_leaves_in_the_middle() {
    client_that_leaves_in_the_middle_from(&Server::nginx());
}

#[test]
fn client_that_leaves_in_the_middle_apache() {
    client_that_leaves_in_the_middle_from(&Server::apache());
}

#[test]
fn client_that_leaves_in_the_middle_node() {
    client_that_leaves_in_the_middle_from(&Server::node());
}

fn client_that_leaves_in_the_middle_from(server: &Server) {
    let (mut client, socket) = connection();
    get(&mut client, "/large.bin");
    let unix = server.hand(socket, KEEP);
    client.read_exact(&mut [0; 5000]).unwrap();
    drop(client);
    let ended = answered(&unix);
    assert_eq!((ended.status, ended.complete), (200, false));
    assert!(ended.content_bytes > 4000 && ended.content_bytes < 16_000_000);
    let_go(&unix);
}

#[test]
fn killed_worker_is_noticed() {
    let server = Server::nginx();
    let (mut client, socket) = connection();
    let unix = server.hand(socket, KEEP);
    get(&mut client, "/small.txt");
    answer(&mut client, false);
    answered(&unix);
    for worker in server.workers() {
        kill_process(worker, Signal::KILL).unwrap();
    }
    let_go(&unix);
    eventually("new workers", || server.workers().len() == 2);
    assert_eq!(one(&server, "GET /kept HTTP/1.1\r\nHost: a\r\n\r\n", KEEP).0, (200, 4, true));
}

#[test]
fn ordinary_clients_of_the_unix_socket() {
    let server = Server::nginx();
    let mut client = UnixStream::connect(server.socket()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    // Slow on purpose: until then it could be an agent.
    pace(Duration::from_millis(50), Why::SlowPeer);
    for _ in 0..2 {
        client.write_all(b"GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert_eq!(answer(&mut client, false).1, b"small");
    }
    // An agent that dies between connecting and passing the socket, and one of another version.
    drop(shim::connect(&server.socket()).unwrap());
    let mut other = shim::connect(&server.socket()).unwrap();
    other.write_all(&[7; 32]).unwrap();
    other.set_nonblocking(false).unwrap();
    let_go(&other);
    let (mut slow, socket) = connection();
    let unix = shim::connect(&server.socket()).unwrap();
    // Slow on purpose: an agent that takes its time does not lose its connection.
    pace(Duration::from_millis(100), Why::SlowPeer);
    shim::send_connection(&unix, socket, KEEP).unwrap();
    get(&mut slow, "/small.txt");
    assert_eq!(answer(&mut slow, false).1, b"small");
}

/// A message with two sockets: refused, both are closed; taken, the second is.
#[test]
fn sockets_too_many_are_closed() {
    let server = Server::nginx();
    let ((mut client, socket), (mut other_client, other)) = (connection(), connection());
    let unix = shim::connect(&server.socket()).unwrap();
    send(&unix, &[7; 32], &[socket.as_fd(), other.as_fd()]);
    drop((socket, other));
    for client in [&mut client, &mut other_client] {
        assert_eq!(uninterrupted(|| client.read(&mut [0])).unwrap(), 0);
    }
    let ((mut client, socket), (mut other_client, other)) = (connection(), connection());
    let unix = shim::connect(&server.socket()).unwrap();
    let mut message = [0; 32];
    message[..4].copy_from_slice(&0x504c_4d31_u32.to_ne_bytes());
    message[4..6].copy_from_slice(&[1, 1]);
    send(&unix, &message, &[socket.as_fd(), other.as_fd()]);
    drop((socket, other));
    get(&mut client, "/small.txt");
    assert_eq!(answer(&mut client, false).1, b"small");
    assert_eq!(uninterrupted(|| other_client.read(&mut [0])).unwrap(), 0);
}

fn send(unix: &UnixStream, message: &[u8], sockets: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(sockets)));
    let sent = sendmsg(unix, &[IoSlice::new(message)], &mut ancillary, SendFlags::NOSIGNAL);
    assert_eq!(sent.unwrap(), message.len());
}

/// The workers are `www-data`, the server was started by root: only root may hand connections.
#[test]
fn other_users_are_ordinary_clients() {
    let server = Server::apache();
    fs::set_permissions(server.socket(), Permissions::from_mode(0o666)).unwrap();
    let (mut client, socket) = connection();
    let mut user = 0;
    eventually("workers", || {
        let mut workers = server.workers().into_iter();
        let of = |worker: Pid| fs::metadata(format!("/proc/{}", worker.as_raw_nonzero())).unwrap().uid();
        user = workers.next().map_or(0, of);
        user != 0
    });
    for user in [user, 65_534] {
        let connect = || {
            // Of this thread alone.
            let user = Uid::from_raw(user);
            set_thread_res_uid(user, user, user).unwrap();
            shim::connect(&server.socket()).unwrap()
        };
        let mut unix = thread::scope(|scope| scope.spawn(connect).join().unwrap());
        unix.set_nonblocking(false).unwrap();
        unix.set_read_timeout(Some(PATIENCE)).unwrap();
        unix.write_all(b"GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert_eq!(answer(&mut unix, false).1, b"small", "{user}");
        shim::send_connection(&unix, &socket, KEEP).unwrap();
        unix.write_all(b"\r\n\r\n").unwrap();
        assert!(answer(&mut unix, false).0.starts_with("http/1.1 400"), "{user}");
    }
    drop(socket);
    assert_eq!(uninterrupted(|| client.read(&mut [0])).unwrap(), 0);
}
