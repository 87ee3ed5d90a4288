//! The shim lets a server read one request at a time, however the server waits for them.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use plimsoll_datapath::shim::{self, Header};
use plimsoll_testkit::{PATIENCE, Why, eventually, pace, uninterrupted};
use tempfile::TempDir;

use crate::shim_server::{Server, answer, answered, connection, get, given_back, large, let_go};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/requests.c");

/// The server that says what it has read.
struct Small {
    directory: TempDir,
    child: Child,
}

impl Small {
    fn new(mode: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        shim::write_to(&path("shim.so")).unwrap();
        let mut compile = Command::new("cc");
        compile.args(["-D_GNU_SOURCE", "-Wall", "-pthread", "-o"]).arg(path("server")).arg(PROGRAM);
        assert!(compile.status().unwrap().success());
        let mut command = Command::new(path("server"));
        let child = command.arg(path("socket")).arg(mode).env("LD_PRELOAD", path("shim.so")).spawn().unwrap();
        let server = Self { directory, child };
        eventually(mode, || UnixStream::connect(server.socket()).is_ok());
        server
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hand(socket: &Path, connection: TcpStream, request: &str) -> UnixStream {
    let unix = shim::connect(socket).unwrap();
    let header = Header {
        give_back_at_next_request: true,
        head_request: request.starts_with("HEAD"),
        head_size_bytes: request.len().try_into().unwrap(),
        no_end: false,
    };
    shim::send_connection(&unix, connection, header).unwrap();
    unix.set_nonblocking(false).unwrap();
    unix.set_read_timeout(Some(PATIENCE)).unwrap();
    unix
}

fn requests() -> Vec<String> {
    let of = |(method, path): (&str, &str)| format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let all = [("GET", "/one"), ("HEAD", "/two/two"), ("GET", "/three"), ("GET", "/four"), ("HEAD", "/five")];
    all.into_iter().map(of).collect()
}

/// How many bytes a head of the small server says that it has read too many, and how often it looked in vain.
fn told(head: &str) -> (u64, u64) {
    let field =
        |name: &str| head.split(name).nth(1).unwrap().split("\r\n").next().unwrap().trim().parse().unwrap();
    (field("x-behind:"), field("x-looks:"))
}

/// Requests that are all there at once, with the client's end behind them or not, each of which gets to the server only
/// when it is handed. How often it looked for another.
fn pipelined(socket: &Path, with_end: bool) -> u64 {
    let (mut client, mut agents) = connection();
    client.write_all(requests().concat().as_bytes()).unwrap();
    if with_end {
        client.shutdown(Shutdown::Write).unwrap();
    }
    let mut looks = 0;
    for request in requests() {
        let unix = hand(socket, agents, &request);
        let is_head = request.starts_with("HEAD");
        let (head, content) = answer(&mut client, is_head);
        let path = request.split(' ').nth(1).unwrap();
        assert!(head.contains(&format!("content-length: {}", path.len())), "{head}");
        assert_eq!(content, if is_head { &[] } else { path.as_bytes() });
        assert_eq!(told(&head).0, 0, "{head}");
        looks = looks.max(told(&head).1);
        let ended = answered(&unix);
        assert_eq!((ended.status, ended.content_bytes, ended.complete), (200, content.len() as u64, true));
        if path == "/five" {
            if !with_end {
                client.shutdown(Shutdown::Write).unwrap();
            }
            assert_eq!(uninterrupted(|| client.read(&mut [0])).unwrap(), 0);
            let_go(&unix);
            break;
        }
        agents = given_back(&unix);
        let_go(&unix);
    }
    looks
}

#[test]
fn one_request_at_a_time() {
    for mode in ["blocking", "two", "level", "edge"] {
        let server = Small::new(mode);
        for with_end in [false, true, false] {
            let looks = pipelined(&server.socket(), with_end);
            assert!(looks < 100, "{mode} looked {looks} times in vain");
        }
    }
}

/// A further request that comes while the first one is answered, and one that comes afterwards.
#[test]
fn requests_that_come_later() {
    for mode in ["blocking", "two", "level", "edge"] {
        let server = Small::new(mode);
        let (mut client, mut agents) = connection();
        let all = requests();
        client.write_all(all[0].as_bytes()).unwrap();
        for number in 0..4 {
            let unix = hand(&server.socket(), agents, &all[number]);
            // Its first bytes are there, so that it has been read.
            client.read_exact(&mut [0; 10]).unwrap();
            if number < 2 {
                client.write_all(all[number + 1].as_bytes()).unwrap();
            }
            let mut rest = Vec::new();
            while !String::from_utf8_lossy(&rest).contains("\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                rest.extend(byte);
            }
            assert!(String::from_utf8_lossy(&rest).contains("X-Behind: 0\r\n"), "{mode}");
            if all[number].starts_with("GET") {
                let path = all[number].split(' ').nth(1).unwrap();
                client.read_exact(&mut vec![0; path.len()]).unwrap();
            }
            assert!(answered(&unix).complete);
            if number >= 2 {
                client.write_all(all[number + 1].as_bytes()).unwrap();
            }
            agents = given_back(&unix);
        }
    }
}

/// The client sends as much as fits behind its request: the server does not spend its time on looking at it.
#[test]
fn very_many_requests_at_once() {
    for mode in ["blocking", "two", "level", "edge"] {
        let server = Small::new(mode);
        let (mut client, agents) = connection();
        let request = &requests()[0];
        client.set_nonblocking(true).unwrap();
        let many = request.repeat(1000);
        let mut sent = 0;
        loop {
            match client.write(&many.as_bytes()[sent % request.len()..]) {
                Ok(count) => sent += count,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        client.set_nonblocking(false).unwrap();
        let unix = hand(&server.socket(), agents, request);
        let (head, _) = answer(&mut client, false);
        assert_eq!(told(&head).0, 0, "{head}");
        assert!(answered(&unix).complete);
        let unix = hand(&server.socket(), given_back(&unix), request);
        let (_, looks) = told(&answer(&mut client, false).0);
        assert!(looks < 100, "{mode} looked {looks} times in vain");
        assert!(answered(&unix).complete);
        given_back(&unix);
    }
}

/// What the client says after the connection has another protocol is the server's.
#[test]
fn another_protocol() {
    let server = Small::new("blocking");
    let (mut client, agents) = connection();
    let request = "GET /upgrade HTTP/1.1\r\nUpgrade: echo\r\n\r\n";
    client.write_all(format!("{request}hello").as_bytes()).unwrap();
    let unix = hand(&server.socket(), agents, request);
    let mut head = [0; 36];
    client.read_exact(&mut head).unwrap();
    assert!(head.starts_with(b"HTTP/1.1 101") && head.ends_with(b"\r\n\r\n"));
    let mut said = [0; 5];
    client.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"hello");
    client.write_all(b"there").unwrap();
    client.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"there");
    drop(client);
    answered(&unix);
}

/// A server whose writes the shim does not see answers everything; so does one that forks.
#[test]
fn servers_that_are_not_followed() {
    for mode in ["unseen", "fork"] {
        let server = Small::new(mode);
        let (mut client, agents) = connection();
        client.write_all(requests().concat().as_bytes()).unwrap();
        let unix = hand(&server.socket(), agents, &requests()[0]);
        for request in requests() {
            let (head, _) = answer(&mut client, request.starts_with("HEAD"));
            assert!(head.starts_with("http/1.1 200"), "{mode}: {head}");
        }
        drop(client);
        let_go(&unix);
    }
}

/// What nginx and Apache are told of one request, while others wait behind it, and perhaps the client's end.
#[test]
fn real_servers() {
    for server in [Server::nginx(), Server::apache()] {
        real_server(&server, false);
        real_server(&server, true);
        assert_eq!(server.log().lines().count(), 10, "{}", server.log());
        last_answer_arrives_whole(&server);
    }
}

/// Node gives its answers up when its client ends its side.
#[test]
fn real_server_node() {
    let server = Server::node();
    real_server(&server, false);
    assert_eq!(server.log().lines().count(), 5, "{}", server.log());
}

fn real_server(server: &Server, with_end: bool) {
    let (mut client, mut agents) = connection();
    // nginx gives a long answer up when its client has ended its side.
    let third = if with_end { "GET /small.txt" } else { "GET /large.bin" };
    let starts = ["GET /small.txt", "HEAD /large.bin", third, "GET /kept", "GET /none"];
    let all = starts.map(|start| format!("{start} HTTP/1.1\r\nHost: a\r\n\r\n"));
    client.write_all(all.concat().as_bytes()).unwrap();
    if with_end {
        client.shutdown(Shutdown::Write).unwrap();
    }
    for (number, request) in all.iter().enumerate() {
        let unix = hand(&server.socket(), agents, request);
        let (head, content) = answer(&mut client, request.starts_with("HEAD"));
        let ended = answered(&unix);
        assert_eq!(ended.content_bytes, content.len() as u64, "{head}");
        assert_eq!((ended.status, ended.complete), (if number == 4 { 404 } else { 200 }, true));
        if number == 4 && with_end {
            assert_eq!(uninterrupted(|| client.read(&mut [0])).unwrap(), 0);
            return let_go(&unix);
        }
        if number == 4 {
            get(&mut client, "/kept");
        }
        agents = given_back(&unix);
    }
}

/// The answer to the last request of a connection, although others are behind it.
fn last_answer_arrives_whole(server: &Server) {
    let (mut client, agents) = connection();
    let last = "GET /large.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    client.write_all(last.as_bytes()).unwrap();
    get(&mut client, "/small.txt");
    get(&mut client, "/kept");
    let unix = hand(&server.socket(), agents, last);
    // Slow on purpose: the server has ended while the client still reads.
    pace(std::time::Duration::from_millis(50), Why::SlowPeer);
    assert_eq!(answer(&mut client, false).1, large());
    assert!(answered(&unix).complete);
    assert_eq!(uninterrupted(|| client.read(&mut [0])).unwrap(), 0);
    drop(client);
    let_go(&unix);
}
