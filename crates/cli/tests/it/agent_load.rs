//! `plimsoll agent` that only tells a load, as a process that is stopped and killed.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_testkit::{PATIENCE, eventually, is_stopped, uninterrupted};
use plimsoll_wire::Key;
use plimsoll_wire::load::{InquiryLimits, LoadInquirer, LoadKeys, LoadTaken};
use serde_json::Value;

use crate::common::{plimsoll, text};

const KEY: [u8; 32] = [9; 32];

fn key_file(directory: &Path) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let path = directory.join("load.key");
    std::fs::write(&path, Key::new(KEY).to_hex()).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

struct LoadAgent {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: SocketAddr,
}

impl LoadAgent {
    fn start(key: &str, listen: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["agent", "--key", key, "--load-listen", listen, "--json-stats"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let address = Self::after(&mut stderr, "telling the load at ");
        Self { child, stderr, address }
    }

    fn after(stderr: &mut BufReader<ChildStderr>, what: &str) -> SocketAddr {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "{all}");
            if let Some((_, address)) = line.trim_end().split_once(what) {
                return address.parse().unwrap();
            }
            all.push_str(&line);
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// What it prints at its end.
    fn end(mut self) -> Value {
        self.signal("-TERM");
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(&out).unwrap()
    }
}

impl Drop for LoadAgent {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Asker {
    socket: UdpSocket,
    inquirer: LoadInquirer,
    origin: Instant,
}

impl Asker {
    fn of(agent: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(agent).unwrap();
        let random = plimsoll_wire::random().unwrap();
        let inquirer = LoadInquirer::new(LoadKeys::new(&Key::new(KEY)), random, InquiryLimits::default());
        Self { socket, inquirer, origin: Instant::now() }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap()
    }

    /// The load, if there is an answer within this time.
    fn load_within(&mut self, time: Duration) -> Option<u32> {
        self.socket.set_read_timeout(Some(time)).unwrap();
        let (mut sequence, mut inquiry) = self.inquirer.ask(0, self.now_ns()).unwrap();
        self.socket.send(&inquiry).ok()?;
        loop {
            let mut reply = [0; 100];
            let Ok(bytes) = uninterrupted(|| self.socket.recv(&mut reply)) else {
                self.inquirer.give_up(sequence);
                return None;
            };
            match self.inquirer.take(&reply[..bytes], self.now_ns()) {
                Ok(LoadTaken::Load { load, .. }) => return Some(load),
                Ok(LoadTaken::Renewed { .. }) => {
                    (sequence, inquiry) = self.inquirer.ask(0, self.now_ns()).unwrap();
                    self.socket.send(&inquiry).unwrap();
                }
                // The answer to one that was given up.
                Ok(LoadTaken::Implausible { .. }) | Err(_) => {}
            }
        }
    }
}

#[test]
fn one_that_is_stopped_or_killed_is_waited_for_no_longer_than_wanted() {
    const BRIEFLY: Duration = Duration::from_millis(10);
    let directory = tempfile::tempdir().unwrap();
    let key = key_file(directory.path());
    let agent = LoadAgent::start(&key, "127.0.0.1:0", &[]);
    let address = agent.address;
    let mut asker = Asker::of(address);
    assert_eq!(asker.load_within(PATIENCE), Some(0));
    agent.signal("-STOP");
    eventually("it is stopped", || is_stopped(agent.child.id()));
    for _ in 0..5 {
        assert_eq!(asker.load_within(BRIEFLY), None);
    }
    agent.signal("-CONT");
    assert_eq!(asker.load_within(PATIENCE), Some(0), "it works again");
    let stats = agent.end();
    assert!(stats["load"]["answered"].as_u64().unwrap() >= 2, "{stats}");
    // While nobody is there, nothing is answered; the next one at this address is learned anew.
    assert_eq!(asker.load_within(BRIEFLY), None);
    let agent = LoadAgent::start(&key, &address.to_string(), &[]);
    eventually("the new one answers", || asker.load_within(PATIENCE) == Some(0));
    agent.signal("-KILL");
    eventually("it is gone", || asker.load_within(BRIEFLY).is_none());
}

#[test]
fn an_origin_beside_it_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let key = key_file(directory.path());
    let serve = ["--serve", "origin:synthetic:fixed:100B", "--origin-listen", "127.0.0.1:0"];
    let mut agent = LoadAgent::start(&key, "127.0.0.1:0", &serve);
    let origin = LoadAgent::after(&mut agent.stderr, "origin on http://");
    let mut asker = Asker::of(agent.address);
    let mut client = std::net::TcpStream::connect(origin).unwrap();
    std::io::Write::write_all(&mut client, b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(asker.load_within(PATIENCE), Some(0));
    let stats = agent.end();
    assert_eq!(stats["origin"]["requests"], 1);
    assert!(stats["load"]["latency_us"].as_u64().unwrap() > 0, "the request was counted: {stats}");
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let key = key_file(directory.path());
    let refused = |args: &[&str]| {
        let out = plimsoll(&[&["agent", "--key", &key], args].concat());
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", text(&out.stderr));
        text(&out.stderr)
    };
    assert!(refused(&[]).contains("--listen"));
    assert!(refused(&["--listen", "127.0.0.1:0"]).contains("--vip"));
    let listen = ["--load-listen", "127.0.0.1:0"];
    let and = |more: &[&str]| refused(&[&listen, more].concat());
    assert!(and(&["--load-index", "a,b,a"]).contains("named twice"));
    assert!(and(&["--load-index", "a", "--load-announce", "127.0.0.1:9"]).contains("cannot be used with"));
    assert!(and(&["--load-api", "0.0.0.0:80"]).contains("loopback"));
    assert!(and(&["--serve", "copy:127.0.0.1:80"]).contains("--load-api"));
    assert!(and(&["--vip", "10.0.0.1:80"]).contains("--listen"));
}
