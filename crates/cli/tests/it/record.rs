//! `plimsoll record`, at the loopback interface. These tests need CAP_NET_RAW.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_testkit::eventually;
use serde_json::Value;

use crate::common::{plimsoll, text};
use crate::rights::{NOBODY, Rights};

/// Serves each connection until its client ends it: `/N` has N bytes, others are not there.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 0 {
                let asked = line.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
                while line.trim() != "" {
                    line.clear();
                    reader.read_line(&mut line).unwrap();
                }
                line.clear();
                let answer = match asked.parse::<usize>() {
                    Ok(bytes) => {
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n{}", "x".repeat(bytes))
                    }
                    Err(_) => "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno".to_owned(),
                };
                stream.write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    port
}

/// Starts to record, and returns once it does.
fn record(port: u16, out: &Path, more: &[&str]) -> Child {
    let port = port.to_string();
    let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["record", "--observe", "lo", "--port", &port, "--json", "-o"])
        .arg(out)
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("Recording"), "{line}");
    child
}

/// Asks for these on one connection.
fn ask(port: u16, paths: &[&str]) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    for path in paths {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut reader = BufReader::new(&stream);
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
            if let Some(bytes) = line.strip_prefix("Content-Length: ") {
                length = bytes.trim().parse().unwrap();
            }
        }
        std::io::copy(&mut reader.take(length), &mut std::io::sink()).unwrap();
    }
}

fn ended(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_str(&text(&output.stdout)).unwrap()
}

#[test]
fn what_passes_at_an_interface_is_a_trace_to_simulate() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("seen.parquet");
    let port = server();
    let child = record(port, &out, &["--requests", "5", "--duration", "600s"]);
    ask(port, &["/100", "/200000", "/none", "/100"]);
    // Ends by the number of requests that count.
    ask(port, &["/7", "/300"]);
    let told = ended(child);
    assert_eq!(told["requests"], 5, "{told}");
    let by_key =
        ["targets", "clients", "left_out", "unknown_sizes", "samples_lost"].map(|key| told[key].as_u64());
    assert_eq!(by_key, [Some(4), Some(1), Some(1), Some(0), Some(0)], "{told}");
    let out = out.to_str().unwrap();
    let csv = plimsoll(&["trace", "convert", out, "--to", "-", "--to-format", "csv"]);
    let rows: Vec<String> = text(&csv.stdout)
        .lines()
        .skip(1)
        .map(|row| row.split(',').skip(1).take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(rows, ["/100 100", "/200000 200000", "/100 100", "/7 7", "/300 300"]);
    let simulated = plimsoll(&["simulate", out, "--policy", "lard,least_connections", "--backends", "2"]);
    assert!(simulated.status.success(), "{}", text(&simulated.stderr));
}

#[test]
fn a_signal_ends_it_and_everything_is_recorded_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("seen.csv");
    let port = server();
    let child = record(port, &out, &["--include-all", "--duration", "600s"]);
    // What comes from the network is read without privileges.
    if rustix::process::geteuid().is_root() {
        let given_away = Rights::trimmed(NOBODY, 0);
        eventually("privileges are given away", || Rights::of(child.id(), 2) == given_away);
    }
    ask(port, &["/none", "/3"]);
    let pid = i32::try_from(child.id()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::INT)
        .unwrap();
    let told = ended(child);
    assert_eq!((&told["requests"], &told["left_out"]), (&2.into(), &0.into()), "{told}");
    assert!(out.exists());
}

#[test]
fn mistakes_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("x.parquet").to_str().unwrap().to_owned();
    for (args, code, expected) in [
        (&["-o", &*out][..], 2, "--observe"),
        (&["--observe", "no-such-if", "-o", &out], 1, "no network interface no-such-if"),
        (&["--observe", "lo", "-o", "x.unknown"], 2, "does not tell the format"),
        (&["--observe", "lo", "-o", &out, "--copy-bytes", "10"], 2, "128"),
        (&["--observe", "lo", "-o", &out, "--duration", "soon"], 2, "expected a time"),
        (&["--observe", "lo", "-c", "x.toml", "-o", &out], 2, "cannot be used with"),
    ] {
        let output = plimsoll(&[&["record"], args].concat());
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(code) && stderr.contains(expected), "{args:?}: {stderr}");
    }
}
