//! `plimsoll agent` that only tells a load, as a process that is stopped and killed.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_testkit::{PATIENCE, eventually, is_stopped, uninterrupted};
use plimsoll_wire::Key;
use plimsoll_wire::load::{
    Datagram, IndexAnswer, IndexClient, InquiryLimits, LoadInquirer, LoadKeys, LoadTaken,
};
use serde_json::Value;

use crate::common::{plimsoll, text};
use crate::rights::{as_user, command_in, open_directory};

/// No user of the user database.
const STRANGER: u32 = 54_321;
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
    /// What it said before its address.
    before: String,
    address: SocketAddr,
}

impl LoadAgent {
    fn start(key: &str, listen: &str, more: &[&str]) -> Self {
        Self::run(Command::new(env!("CARGO_BIN_EXE_plimsoll")), key, listen, more)
    }

    fn run(mut command: Command, key: &str, listen: &str, more: &[&str]) -> Self {
        let mut child = command
            .args(["agent", "--key", key, "--load-listen", listen, "--json-stats"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut before = String::new();
        let address = Self::after(&mut stderr, "telling the load at ", &mut before);
        Self { child, stderr, before, address }
    }

    fn after(stderr: &mut BufReader<ChildStderr>, what: &str, all: &mut String) -> SocketAddr {
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
    let origin = LoadAgent::after(&mut agent.stderr, "origin on http://", &mut String::new());
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
fn a_load_index_is_asked_and_told() {
    let directory = tempfile::tempdir().unwrap();
    let key = key_file(directory.path());
    let agent = LoadAgent::start(&key, "127.0.0.1:0", &["--load-index", "a,b,c"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(agent.address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let names = ["a", "b", "c"].map(str::to_owned);
    let random = plimsoll_wire::random().unwrap();
    let mut client = IndexClient::new(LoadKeys::new(&Key::new(KEY)), random, &names, 100);
    let origin = Instant::now();
    let now_ns = || u64::try_from(origin.elapsed().as_nanos()).unwrap();
    let tell = |client: &mut IndexClient, mut datagram: Datagram| loop {
        socket.send(&datagram).unwrap();
        let mut answer = [0; 100];
        let bytes = uninterrupted(|| socket.recv(&mut answer)).unwrap();
        match client.take(&answer[..bytes], now_ns()).unwrap() {
            IndexAnswer::Renewed { sequence } => datagram = client.repeat(sequence, now_ns()).unwrap(),
            answer => return answer,
        }
    };
    let mut granted = [0; 3];
    let mut held = Vec::new();
    for _ in 0..6 {
        let (_, acquire) = client.acquire(now_ns()).unwrap();
        let IndexAnswer::Granted { sequence, backend } = tell(&mut client, acquire) else { panic!("none") };
        granted[backend] += 1;
        held.push((sequence, backend));
    }
    assert_eq!(granted, [2; 3], "the shortest queue each time");
    // The one where an access is over is the next.
    let (sequence, freed) = held[3];
    let release = client.release(sequence, now_ns()).unwrap();
    assert_eq!(tell(&mut client, release), IndexAnswer::Released { sequence });
    let (_, acquire) = client.acquire(now_ns()).unwrap();
    let answer = tell(&mut client, acquire);
    assert!(matches!(answer, IndexAnswer::Granted { backend, .. } if backend == freed), "{answer:?}");
    // Eight of what it has heard were genuine, and the first was answered by a renewal.
    let stats = agent.end();
    assert_eq!((&stats["load"]["answered"], &stats["load"]["renewed"]), (&8.into(), &1.into()), "{stats}");
}

/// The priority ("nice") of each thread, by name.
fn priorities(pid: u32) -> std::collections::BTreeMap<String, i64> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |thread: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        Some((name.to_owned(), rest.split_whitespace().nth(16)?.parse().ok()?))
    };
    threads.filter_map(|thread| of(thread.ok()?)).collect()
}

#[test]
fn a_plain_user_with_cap_sys_nice_has_the_priority_for_that_thread_alone() {
    let directory = open_directory(STRANGER);
    let key = key_file(directory.path());
    std::os::unix::fs::chown(&key, Some(STRANGER), Some(STRANGER)).unwrap();
    let run = as_user(STRANGER, &["sys_nice"], command_in(directory.path()));
    let mut command = Command::new(&run[0]);
    command.args(&run[1..]);
    let agent = LoadAgent::run(command, &key, "127.0.0.1:0", &["--load-announce", "127.0.0.1:9"]);
    // The others have what this process was started with.
    let own = priorities(std::process::id()).into_values().max().unwrap();
    let wanted = [("load-announce", -20), ("load-answer", -20), ("plimsoll", own)];
    // The thread that starts the others has the high priority until it has done so.
    eventually("each thread has its priority", || {
        priorities(agent.child.id()) == wanted.map(|(name, nice)| (name.to_owned(), nice)).into()
    });
    assert_eq!(agent.end()["load"]["raised_priority"], true);
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
    let nothing = refused(&[]);
    assert!(nothing.contains("--listen") && nothing.contains("--load-listen"), "{nothing}");
    assert!(refused(&["--listen", "127.0.0.1:0"]).contains("--vip"));
    let listen = ["--load-listen", "127.0.0.1:0"];
    let and = |more: &[&str]| refused(&[&listen, more].concat());
    assert!(and(&["--load-index", "a,b,a"]).contains("named twice"));
    assert!(and(&["--load-index", "a", "--load-announce", "127.0.0.1:9"]).contains("cannot be used with"));
    assert!(and(&["--load-index", ""]).contains("has no name"));
    assert!(and(&["--load-index", "a,,b"]).contains("has no name"));
    assert!(and(&["--load-announce", "127.0.0.1:0"]).contains("reach nobody"));
    let group = ["--load-announce", "[ff05::1]:9", "--load-interface", "10.0.0.1"];
    let by_address = refused(&[&["--load-listen", "[::1]:0"], &group[..]].concat());
    assert!(by_address.contains("name of a network interface"), "{by_address}");
    let receiver = ["--load-announce", "127.0.0.1:9", "--load-interface", "lo"];
    assert!(and(&receiver).contains("no receiver is one"));
    assert!(and(&["--load-api", "127.0.0.1:0", "--load-api-group", "0"]).contains("unix:PATH"));
    let nobodys = ["--load-api", "unix:/nowhere/load.sock", "--load-api-group", "no such group"];
    assert!(and(&nobodys).contains("/etc/group"));
    assert!(and(&["--load-api", "0.0.0.0:80"]).contains("loopback"));
    assert!(and(&["--serve", "copy:127.0.0.1:80"]).contains("--load-api"));
    assert!(and(&["--vip", "10.0.0.1:80"]).contains("--listen"));
    assert!(and(&["--name", "a/b"]).contains("give letters, digits, - and _"));
    assert!(and(&["--user", "no such user"]).contains("there is no user"));
    // Options of nodes are not ignored, whatever else is there.
    let taking = ["--listen", "127.0.0.1:0", "--interface", "lo", "--vip", "10.0.0.1:80"];
    let taking = [&taking[..], &["--serve", "origin:synthetic:fixed:1KB"]].concat();
    let handing = [&taking[..], &["--front-end", "fe=10.0.0.2"]].concat();
    let origin = [&listen[..], &["--serve", "origin:synthetic:fixed:1KB", "--origin-listen", "127.0.0.1:0"]];
    for (all, option) in [
        (&handing, &["--access-log", "-"]),
        (&handing, &["--admin", "127.0.0.1:0"]),
        (&handing, &["--clone-policy", "lard"]),
        (&origin.concat(), &["--decision-log", "log"]),
        (&[&listen[..], &["--load-index", "a,b"]].concat(), &["--access-log", "-"]),
    ] {
        let said = refused(&[&all[..], &option[..]].concat());
        assert!(said.contains("--clone-peer"), "{option:?}: {said}");
    }
    assert!(and(&["--load-index", "a", "--front-end", "fe=10.0.0.2"]).contains("--listen"));
    assert!(and(&["--load-index", "a", "--load-interface", "lo"]).contains("--load-announce"));
    let node = [&taking[..], &["--clone-peer", "n2=10.0.0.2:7400", "--name", "n1"]].concat();
    for beside in [["--front-end", "fe=10.0.0.2"], ["--origin-listen", "127.0.0.1:0"]] {
        let said = refused(&[&node[..], &beside[..]].concat());
        assert!(said.contains("cannot be used with"), "{beside:?}: {said}");
    }
    // What this machine lacks is no mistake of the command line.
    let lacks = |more: &[&str]| {
        let out = plimsoll(&[&["agent", "--key", &key], &listen[..], more].concat());
        assert_eq!(out.status.code(), Some(1), "{more:?}: {}", text(&out.stderr));
        text(&out.stderr)
    };
    let nowhere = lacks(&["--load-announce", "239.255.74.1:7403", "--load-interface", "none9"]);
    assert!(nowhere.contains("--load-interface none9: ") && nowhere.contains("there are: "), "{nowhere}");
    let socket = lacks(&["--load-api", "unix:/nowhere/load.sock"]);
    assert!(socket.contains("give a path in a directory that is there"), "{socket}");
}

#[test]
fn an_agent_that_nothing_tells_a_load_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let key = key_file(directory.path());
    let said = |more: &[&str]| {
        let mut agent = LoadAgent::start(&key, "127.0.0.1:0", more);
        agent.signal("-TERM");
        let mut rest = String::new();
        agent.stderr.read_to_string(&mut rest).unwrap();
        agent.before.clone() + &rest
    };
    assert!(said(&[]).contains("nothing tells this agent a load"));
    assert!(!said(&["--load-api", "127.0.0.1:0"]).contains("nothing tells"));
    assert!(!said(&["--load-index", "a,b"]).contains("nothing tells"));
}
