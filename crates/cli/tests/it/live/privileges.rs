//! A front-end that proxies, once it has given its privileges away.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use plimsoll_testkit::{PATIENCE, eventually};
use tempfile::TempDir;

use super::processes::{Origin, Process, config};
use crate::rights::{BIND_SERVICE, DAC_OVERRIDE, NOBODY, Rights, as_user, command_in, open_directory};

/// No user of the user database.
const STRANGER: u32 = 54_321;

/// A front-end in a directory that others may enter.
struct Trimmed {
    process: Process,
    origin: Origin,
    directory: TempDir,
}

impl Trimmed {
    /// Everything in the directory is `owner`'s; `run` names the program and its arguments.
    fn start(owner: u32, more: &str, run: impl FnOnce(PathBuf) -> Vec<std::ffi::OsString>) -> Self {
        let directory = open_directory(owner);
        Self::start_in(directory, more, run)
    }

    fn start_in(
        directory: TempDir,
        more: &str,
        run: impl FnOnce(PathBuf) -> Vec<std::ffi::OsString>,
    ) -> Self {
        let origin = Origin::start("b0", &[]);
        let file = directory.path().join("plimsoll.toml");
        fs::write(&file, config_before(&origin, more)).unwrap();
        let all = run(command_in(directory.path()));
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).args(["balance", "--config"]).arg(&file);
        let process = Process::run(&mut command, Stdio::null());
        process.wait_for("admin API on", 0);
        Self { process, origin, directory }
    }

    fn rights(&self) -> Rights {
        // Main, reload, watch, control, access log and two workers, at least.
        Rights::of(self.process.pid(), 6)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn get(&self, address: SocketAddr) {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        // The answer's content need not be text.
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        answer.push_str(&String::from_utf8_lossy(&bytes));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// Requests, a rotation of the log by moving it away, a reload by a change of the file, and a stop.
    fn assert_works(mut self, more: &str) {
        let address = self.process.address("listening on http://");
        self.get(address);
        let log = |name: &str| fs::read_to_string(self.path(name)).unwrap_or_default();
        eventually("a line of the log", || log("access.log").contains("GET /1 "));
        fs::rename(self.path("access.log"), self.path("access.log.1")).unwrap();
        self.process.signal("-HUP");
        self.process.wait_for("again", 0);
        self.get(address);
        eventually("a line of the new log", || log("access.log").contains("GET /1 "));
        let changed = format!("{}[timeouts]\nidle = \"7s\"\n", config_before(&self.origin, more));
        fs::write(self.path("plimsoll.toml"), changed).unwrap();
        self.process.wait_for("timeouts: idle", 0);
        self.process.signal("-TERM");
        assert_eq!(self.process.wait(), Some(0), "{}", self.process.said());
    }
}

const LOGS: &str = "[access_log]\nfile = \"access.log\"\n[decision_log]\ndirectory = \"decisions\"\n";

fn config_before(origin: &Origin, more: &str) -> String {
    let (top, tables) = more.split_once('\n').filter(|(top, _)| top.contains('=')).unwrap_or(("", more));
    format!("{top}\n{}", config(&[origin.address], tables))
}

fn itself(program: PathBuf) -> Vec<std::ffi::OsString> {
    vec![program.into()]
}

#[test]
fn root_becomes_nobody() {
    let front_end = Trimmed::start(NOBODY, LOGS, itself);
    assert_eq!(front_end.rights(), Rights::trimmed(NOBODY, BIND_SERVICE), "{}", front_end.process.said());
    let line = front_end.process.wait_for("runs as", 0);
    assert!(line.ends_with(" INFO runs as nobody (65534) with CAP_NET_BIND_SERVICE only"), "{line}");
    assert_eq!(fs::metadata(front_end.path("decisions")).unwrap().uid(), NOBODY);
    front_end.assert_works(LOGS);
}

/// What a reload asks for in addition may be out of reach then; the answer says so.
#[test]
fn a_new_log_where_nobody_may_write() {
    let mut front_end = Trimmed::start(0, "", itself);
    assert_eq!(front_end.rights(), Rights::trimmed(NOBODY, BIND_SERVICE), "{}", front_end.process.said());
    fs::write(front_end.path("plimsoll.toml"), config_before(&front_end.origin, LOGS)).unwrap();
    let line = front_end.process.wait_for("it runs as", 0);
    let remedy = "it runs as nobody (65534) since its start; give that user access, or start it anew";
    assert!(line.ends_with(&format!("ERROR {remedy}")), "{line}");
    front_end.process.wait_for("stays in force", 0);
    front_end.process.signal("-TERM");
    assert_eq!(front_end.process.wait(), Some(0), "{}", front_end.process.said());
}

#[test]
fn root_becomes_the_configured_user() {
    let more = format!("user = \"{STRANGER}\"\n{LOGS}");
    let front_end = Trimmed::start(STRANGER, &more, itself);
    assert_eq!(front_end.rights(), Rights::trimmed(STRANGER, BIND_SERVICE), "{}", front_end.process.said());
    front_end.assert_works(&more);
}

#[test]
fn root_stays_where_nobody_cannot_work() {
    let front_end = Trimmed::start(0, LOGS, itself);
    assert_eq!(front_end.rights(), Rights::trimmed(0, BIND_SERVICE), "{}", front_end.process.said());
    let line = front_end.process.wait_for("does not become another user", 0);
    let reason = format!("nobody may not make files in {}", front_end.directory.path().display());
    assert!(line.contains(&reason) && line.contains("choose a user by `user`"), "{line}");
    front_end.assert_works(LOGS);
}

/// A front-end in a directory of its own, before a back-end at a socket there; `others` says whether all may connect to it.
fn before_socket(others: bool) -> Trimmed {
    let directory = open_directory(NOBODY);
    let socket = directory.path().join("app.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(if others { 0o666 } else { 0o600 })).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // Health checks connect as well, and say what they want.
            let mut piece = [0; 4096];
            if stream.read(&mut piece).is_ok_and(|n| n > 0) {
                let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nsocket";
                drop(stream.write_all(answer));
            }
        }
    });
    let more = format!("[[backend]]\nname = \"app\"\naddress = \"unix:{}\"\n", socket.display());
    Trimmed::start_in(directory, &more, itself)
}

#[test]
fn nobody_connects_to_the_socket_of_a_back_end_that_lets_all_in() {
    for (others, rights) in [
        (true, Rights::trimmed(NOBODY, BIND_SERVICE)),
        // The socket is root's: it needs no more to connect.
        (false, Rights::trimmed(0, BIND_SERVICE)),
    ] {
        let mut front_end = before_socket(others);
        assert_eq!(front_end.rights(), rights, "{}", front_end.process.said());
        if !others {
            let line = front_end.process.wait_for("does not become another user", 0);
            let reason = format!("nobody may not write to {}", front_end.path("app.sock").display());
            assert!(line.contains(&reason) && line.contains("the socket of a back-end"), "{line}");
        }
        let address = front_end.process.address("listening on http://");
        eventually("an answer of the back-end at the socket", || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(b"GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            assert!(bytes.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&bytes));
            bytes.ends_with(b"socket")
        });
        front_end.process.signal("-TERM");
        assert_eq!(front_end.process.wait(), Some(0), "{}", front_end.process.said());
    }
}

#[test]
fn root_keeps_what_opens_files_of_others() {
    let directory = open_directory(STRANGER);
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let front_end = Trimmed::start_in(directory, LOGS, itself);
    let rights = Rights::trimmed(0, BIND_SERVICE | DAC_OVERRIDE);
    assert_eq!(front_end.rights(), rights, "{}", front_end.process.said());
    front_end.assert_works(LOGS);
}

#[test]
fn a_plain_user_without_capabilities() {
    let front_end = Trimmed::start(STRANGER, LOGS, |program| as_user(STRANGER, &[], program));
    let rights = front_end.rights();
    // Only CAP_SETPCAP trims the bounding set.
    let trimmed = Rights { bounding: rights.bounding, ..Rights::trimmed(STRANGER, 0) };
    assert_eq!(rights, trimmed, "{}", front_end.process.said());
    assert!(!front_end.process.said().contains("runs as"), "nothing was given away");
    front_end.assert_works(LOGS);
}

#[test]
fn a_plain_user_binds_low_ports_by_a_capability() {
    let front_end =
        Trimmed::start(STRANGER, LOGS, |program| as_user(STRANGER, &["net_bind_service"], program));
    let rights = front_end.rights();
    let trimmed = Rights { bounding: rights.bounding, ..Rights::trimmed(STRANGER, BIND_SERVICE) };
    assert_eq!(rights, trimmed, "{}", front_end.process.said());
    front_end.assert_works(LOGS);
}

#[test]
fn without_a_filter_of_system_calls() {
    let more = format!("seccomp = false\n{LOGS}");
    let front_end = Trimmed::start(NOBODY, &more, itself);
    let rights = Rights { seccomp: 0, ..Rights::trimmed(NOBODY, BIND_SERVICE) };
    assert_eq!(front_end.rights(), rights);
    front_end.assert_works(&more);
}

#[test]
fn a_plain_user_cannot_become_another() {
    let directory = open_directory(STRANGER);
    let file = directory.path().join("plimsoll.toml");
    fs::write(&file, "user = \"nobody\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n")
        .unwrap();
    let all = as_user(STRANGER, &[], command_in(directory.path()));
    let run = |command: &str| {
        let output =
            Command::new(&all[0]).args(&all[1..]).args([command, "--config"]).arg(&file).output().unwrap();
        (output.status.code(), crate::common::text(&output.stdout), crate::common::text(&output.stderr))
    };
    let (code, _, error) = run("balance");
    assert!(code == Some(1) && error.contains("cannot become nobody (65534): start it as root"), "{error}");
    let (code, said, _) = run("check");
    assert!(code == Some(0) && said.contains("nobody (65534); only root can check"), "{said}");
}
