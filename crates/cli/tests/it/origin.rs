//! `plimsoll origin`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};

use plimsoll_testkit::{PATIENCE, wait_for};
use serde_json::Value;

use crate::common::Killed;

/// A running origin; ends with this.
struct Origin {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: SocketAddr,
}

impl Origin {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .arg("origin")
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let address = line.trim_end().split_once(" INFO listening on http://");
        let address = address.map(|(_, address)| address);
        let address = address.unwrap_or_else(|| panic!("{line}")).parse().unwrap();
        Self { child, stderr, address }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Sends a signal and returns exit code, standard output and the rest of standard error.
    fn end(mut self, signal: &str) -> (Option<i32>, String, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        (self.child.wait().unwrap().code(), out, rest)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn files_are_served_until_a_signal() {
    let site = tempfile::tempdir().unwrap();
    std::fs::write(site.path().join("index.html"), "<p>hello").unwrap();
    let root = site.path().to_str().unwrap();
    let origin = Origin::start(&["--root", root, "--listen", "127.0.0.1:0", "--name", "b1", "--json-stats"]);
    let answer = origin.get("/");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n<p>hello"), "{answer}");
    assert!(answer.contains("x-backend: b1\r\n") && answer.contains("x-cache: miss\r\n"), "{answer}");
    assert!(origin.get("/").contains("x-cache: hit\r\n"));
    assert!(origin.get("/none").starts_with("HTTP/1.1 404 "));
    let (code, out, rest) = origin.end("-TERM");
    assert_eq!((code, rest.as_str()), (Some(0), ""));
    let stats: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&stats["requests"], &stats["hits"], &stats["misses"]), (&3.into(), &1.into(), &1.into()));
}

#[test]
fn generated_contents_with_emulated_hardware() {
    let workload = "rice,targets=500,total_mib=4,requests=5000,cover97_mib=0,cover98_mib=0,cover99_mib=0";
    let options =
        ["--disk-delay", "lard98", "--disk-speed", "100", "--cpu-delay", "lard98", "--cpu-speed", "10"];
    let arguments = [&["--synthetic", workload, "--listen", "127.0.0.1:0"][..], &options].concat();
    let origin = Origin::start(&arguments);
    assert!(origin.get("/rice/00499.html").starts_with("HTTP/1.1 200 "));
    assert!(origin.get("/rice/00500.html").starts_with("HTTP/1.1 404 "));
    let (code, out, _) = origin.end("-INT");
    assert_eq!((code, out.as_str()), (Some(0), ""));
    // Not every machine has IPv6.
    if TcpListener::bind("[::1]:0").is_ok() {
        let origin = Origin::start(&["--synthetic", "fixed:100B", "--listen", "[::1]:0", "--cache", "0"]);
        assert!(origin.address.is_ipv6());
        assert!(origin.get("/any").contains("content-length: 100\r\n"));
        assert!(origin.get("/size/7").contains("x-cache: bypass\r\n"));
    }
}

/// Exit code and standard error of an origin that must not begin to serve.
fn refused(args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.arg("origin").args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Killed(command.spawn().unwrap());
    let status = wait_for(&format!("its end: {args:?}"), || child.0.try_wait().unwrap());
    let mut message = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    (status.code(), message)
}

#[test]
fn wrong_usage_and_failures() {
    let site = tempfile::tempdir().unwrap();
    let root = site.path().to_str().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let missing = site.path().join("missing");
    let missing = missing.to_str().unwrap();
    let table: &[(&[&str], i32, &str)] = &[
        (&[], 2, "--root"),
        (&["--root", root, "--synthetic", "rice"], 2, "cannot be used with"),
        (&["--synthetic", "rise"], 2, "did you mean \"rice\"?"),
        (&["--synthetic", "rice,targets=x"], 2, "targets"),
        (&["--synthetic", "rice,targets"], 2, "KEY=VALUE"),
        (&["--synthetic", "fixed:big"], 2, "expected a size"),
        (&["--synthetic", "fixed:1", "--policy", "lur"], 2, "There are: fifo, gds, gdsf, lfu, lru"),
        (&["--synthetic", "fixed:1", "--name", "a\tb"], 2, "X-Backend"),
        (&["--synthetic", "fixed:1", "--disk-delay", "lard99"], 2, "lard98"),
        (&["--synthetic", "fixed:1", "--disk-delay", "lard98", "--disk-speed", "0"], 2, "above 0"),
        (&["--synthetic", "fixed:1", "--disk-delay", "lard98", "--disk-speed", "1e-300"], 2, "--disk-speed"),
        (&["--synthetic", "fixed:1", "--follow-symlinks"], 2, "cannot be used with"),
        (&["--root", root, "--listen", "localhost"], 2, "--listen"),
        (&["--root", root, "--max-connections", "0"], 2, "--max-connections"),
        (&["--root", missing], 1, "give a directory that can be read"),
        (&["--root", root, "--listen", &taken], 1, "a port that is free"),
    ];
    for (args, code, says) in table {
        let (found, message) = refused(args);
        assert_eq!(found, Some(*code), "{args:?}: {message}");
        assert!(message.contains(says) && !message.contains("panicked"), "{args:?}: {message}");
    }
}
