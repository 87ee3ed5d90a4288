//! `plimsoll measure`, against our origin and against servers that cannot be measured.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::common::{plimsoll, text};
use crate::json::assert_keys_documented;

/// An origin with a small and a large file.
pub(crate) struct MeasuredOrigin {
    child: Child,
    url: String,
    _site: tempfile::TempDir,
}

impl MeasuredOrigin {
    pub(crate) fn start() -> Self {
        let site = tempfile::tempdir().unwrap();
        std::fs::write(site.path().join("small"), vec![b'a'; 1_000]).unwrap();
        std::fs::write(site.path().join("large"), vec![b'a'; 200_000]).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["origin", "--listen", "127.0.0.1:0", "--root", site.path().to_str().unwrap()])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim_end().split_once(" INFO listening on ").unwrap_or_else(|| panic!("{line}")).1;
        Self { child, url: url.to_owned(), _site: site }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for MeasuredOrigin {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the command, which is to fail with this exit code and a message that contains `part`.
fn refused(args: &[&str], code: i32, part: &str) {
    let output = plimsoll(&[&["measure"], args].concat());
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    assert!(message.contains(part), "{args:?}: no `{part}` in {message}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_server_is_measured_as_parameters_that_simulate_takes() {
    let origin = MeasuredOrigin::start();
    let (small, large) = (format!("{}/small", origin.url), format!("{}/large", origin.url));
    let (pid, what) = (origin.child.id().to_string(), [&*small, "--large", &large, "--requests", "10"]);
    let run = |more: &[&str]| {
        let output = plimsoll(&[&["measure"], &what[..], more].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let measured: Value = serde_json::from_str(&run(&["--pid", &pid, "--json"])).unwrap();
    assert_keys_documented(&measured, "`plimsoll measure`");
    assert_eq!((&measured["bytes"], &measured["large_bytes"]), (&1_000.into(), &200_000.into()));
    assert_eq!(measured["measured"], "cpu_time");
    assert!(measured["several_at_once"]["request_us"]["median"].as_f64().unwrap() > 0.0, "{measured}");
    let settings = measured["settings"].as_object().unwrap();
    assert_eq!(settings.len(), 4);
    let mut simulate = vec!["simulate", "synth:chess", "--limit", "100", "-p", "wrr", "-b", "1", "--json"];
    let given: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    simulate.extend(given.iter().flat_map(|setting| ["--set", setting]));
    let simulated: Value = serde_json::from_slice(&plimsoll(&simulate).stdout).unwrap();
    assert_eq!(simulated["params"]["lard.connect_us"].as_f64(), settings["lard.connect_us"].as_f64());

    // Without the process it is response time, and the text says so.
    let shown = run(&[]);
    for part in
        ["upper bounds", "200000 bytes", "--set lard.transmit_per_512_bytes_us=", "lard.teardown_us=0 "]
    {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
    assert!(plimsoll(&["measure", &small, "--requests", "10"]).status.success(), "bytes may stay unknown");
    refused(&[&large, "--large", &small], 2, "at least 64 KiB more");
    refused(&[&format!("{}/nothing", origin.url)], 1, "answers 404");
    refused(&[&small, "--pid", "4294967295"], 1, "name a process that runs here");
    refused(&[&small, "--large", "http://127.0.0.2:1/large"], 2, "two resources of one server");
    refused(&["https://127.0.0.1/"], 2, "only http can be measured");
    refused(&[&small, "--limit-s", "0.000001"], 1, "give fewer --requests");
    refused(&[&small, "--requests", "100000"], 2, "2000");
    let mut other = Command::new("sleep").arg("600").spawn().unwrap();
    refused(&[&small, "--pid", &other.id().to_string()], 1, "used no CPU time while");
    other.kill().unwrap();
    other.wait().unwrap();
    refused(&[&small, "--pid", &std::process::id().to_string()], 1, "has started this command");
}

/// A server that gives one answer to its first connection.
fn answers(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let read = stream.read(&mut request).unwrap();
        assert!(request[..read].starts_with(b"GET / HTTP/1.1\r\n"));
        stream.write_all(answer.as_bytes()).unwrap();
    });
    url
}

#[test]
fn answers_that_say_nothing_of_the_server_are_refused() {
    for (answer, part) in [
        (
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/x\r\nContent-Length: 0\r\n\r\n",
            "redirects with 302 to http://127",
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "no Content-Length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", "before its answer was complete"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nlonger", "more than the length"),
        ("SSH-2.0-server\r\n", "does not answer in HTTP"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "name one of at most 16777216"),
        ("", "closed the connection"),
    ] {
        refused(&[&answers(answer)], 1, part);
    }
}

/// A server that gives this to each connection, and then closes it or waits for the client to do so.
fn answers_all(answer: &'static str, closes: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 1024];
            if stream.read(&mut request).is_ok_and(|read| read > 0) {
                let _ = stream.write_all(answer.as_bytes());
                while !closes && stream.read(&mut request).is_ok_and(|read| read > 0) {}
            }
        }
    });
    url
}

#[test]
fn a_server_that_keeps_no_connections_or_keeps_one_waiting_is_refused() {
    let closing = answers_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", true);
    refused(&[&closing], 1, "ends a connection after 1 of its requests");
    let endless = answers_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", false);
    refused(&[&endless, "--limit-s", "0.2"], 1, "no answer within");
    let open = answers_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false);
    refused(&[&open, "--limit-s", "0.2"], 1, "does not close a connection");
}
