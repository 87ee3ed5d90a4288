//! The shim in a server that closes connections in every way there is, and then uses the descriptor's number for
//! something else: the agent hears of the end, and the other file or socket is left alone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use plimsoll_datapath::shim::{self, Header};
use plimsoll_testkit::{PATIENCE, wait_for};
use tempfile::TempDir;

use crate::shim_server::{answered, connection, given_back, let_go};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/closes.c");
const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// The shim sees the descriptor being closed.
const SEEN: [&str; 8] =
    ["close", "dup2", "dup3", "close_range", "all", "syscall close", "syscall dup3", "syscall close_range"];

/// It does not: it finds the number in other hands.
const UNSEEN: [&str; 3] = ["fclose", "closefrom", "io_uring"];

const STATES: [&str; 4] = ["taken", "half", "answered", "given_back"];

/// Every function that the shim puts itself in front of, and which can meet a number again.
const USES: [&str; 16] = [
    "read", "readv", "recv", "recvfrom", "recvmsg", "rsplice", "write", "writev", "send", "sendto",
    "sendmsg", "sendfile", "splice", "shutdown", "epoll", "ioctl",
];

/// The compiled server.
struct Program {
    directory: TempDir,
}

/// One run of it, with one connection.
struct Run {
    child: Child,
    socket: PathBuf,
    client: TcpStream,
    unix: UnixStream,
    /// The connection, once it was given back.
    returned: Option<TcpStream>,
    what: String,
}

impl Program {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        shim::write_to(&directory.path().join("shim.so")).unwrap();
        let mut compile = Command::new("cc");
        compile.args(["-D_GNU_SOURCE", "-Wall", "-o"]).arg(directory.path().join("server")).arg(PROGRAM);
        assert!(compile.status().unwrap().success());
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts the server, and brings one connection into a state.
    fn run(&self, arguments: [&str; 4]) -> Run {
        let [state, ..] = arguments;
        let what = arguments.join(", ");
        let socket = self.path(&what);
        let mut command = Command::new(self.path("server"));
        command.arg(&socket).args(arguments).env("LD_PRELOAD", self.path("shim.so")).stdin(Stdio::piped());
        let child = command.spawn().unwrap();
        let unix = wait_for(&what, || shim::connect(&socket).ok());
        let (mut client, agents) = connection();
        // With another request behind the first, which the shim hides from the server.
        let sent = if state == "half" { REQUEST.repeat(2) } else { REQUEST.to_owned() };
        client.write_all(sent.as_bytes()).unwrap();
        let header = Header {
            give_back_at_next_request: true,
            head_request: false,
            head_size_bytes: REQUEST.len().try_into().unwrap(),
            no_end: false,
        };
        shim::send_connection(&unix, agents, header).unwrap();
        unix.set_nonblocking(false).unwrap();
        unix.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut run = Run { child, socket, client, unix, returned: None, what };
        run.converse(state);
        run
    }
}

impl Run {
    fn converse(&mut self, state: &str) {
        if matches!(state, "answered" | "given_back") {
            let ended = answered(&self.unix);
            assert_eq!((ended.content_bytes, ended.complete), (8, true), "{}", self.what);
        }
        if state == "given_back" {
            self.client.write_all(REQUEST.as_bytes()).unwrap();
            self.returned = Some(given_back(&self.unix));
        }
    }

    /// The agent hears of the end, and so does the client.
    fn ends(&mut self, state: &str, way: &str) {
        // The last way closes the Unix connection too.
        if state == "half" && way != "all" {
            let ended = answered(&self.unix);
            assert_eq!((ended.content_bytes, ended.complete), (4, false), "{}", self.what);
        }
        let_go(&self.unix);
        if let Some(returned) = &mut self.returned {
            let mut request = vec![0; REQUEST.len()];
            returned.read_exact(&mut request).unwrap();
            assert_eq!(request, REQUEST.as_bytes(), "{}", self.what);
            return;
        }
        let mut got = Vec::new();
        // Bytes that nobody has read make it a reset.
        let end = self.client.read_to_end(&mut got);
        assert!(end.is_ok() || state != "given_back", "{}", self.what);
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    }

    /// Has the server use the number again, after the end was heard of where the shim has seen it.
    fn finish(mut self, state: &str, way: &str, next: &str) {
        let is_seen = SEEN.contains(&way);
        if is_seen {
            self.ends(state, way);
        }
        self.go_on();
        if next == "accept" {
            serve_others(&self.socket, &self.what);
        }
        if !is_seen {
            self.ends(state, way);
        }
        self.go_on();
        assert!(self.child.wait().unwrap().success(), "{}", self.what);
    }
}

fn serve_others(socket: &Path, what: &str) {
    for _ in 0..3 {
        let mut client = UnixStream::connect(socket).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut served = [0; 6];
        client.read_exact(&mut served).unwrap();
        assert_eq!(&served, b"served", "{what}");
    }
}

#[test]
fn every_way_to_close_is_noticed() {
    let program = Program::new();
    for state in STATES {
        for way in SEEN.into_iter().chain(UNSEEN) {
            for next in ["file", "socket", "accept"] {
                program.run([state, way, next, "read"]).finish(state, way, next);
            }
        }
    }
}

#[test]
fn every_use_of_a_number_leaves_its_new_owner_alone() {
    let program = Program::new();
    for state in STATES {
        for first_use in USES {
            program.run([state, "fclose", "socket", first_use]).finish(state, "fclose", "socket");
        }
        for first_use in ["read", "write", "sendfile"] {
            program.run([state, "fclose", "file", first_use]).finish(state, "fclose", "file");
        }
    }
}

/// What a child closes are its own copies, also while it shares the memory of the server.
#[test]
fn a_child_may_close_its_copies() {
    let program = Program::new();
    for child in ["fork", "vfork"] {
        for way in SEEN.into_iter().chain(UNSEEN) {
            let mut run = program.run(["half", &format!("{child} {way}"), "accept", "read"]);
            let ended = answered(&run.unix);
            assert_eq!((ended.content_bytes, ended.complete), (8, true), "{}", run.what);
            run.go_on();
            let_go(&run.unix);
            assert!(run.child.wait().unwrap().success(), "{}", run.what);
        }
    }
}
