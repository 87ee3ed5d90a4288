//! Outputs that take nothing: a full pipe on standard output or standard error, a FIFO without reader.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use plimsoll_testkit::{PATIENCE, eventually, uninterrupted};

use crate::common::Killed;

use super::processes::{FrontEnd, Origin, Process, config, private_directory};

const TO_STDOUT: &str = "[access_log]\nfile = \"-\"\nformat = \"json\"\n";

/// Asks so often that the log is longer than a pipe and all buffers of the front-end.
fn fill(address: SocketAddr) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let target = "x".repeat(6000);
    let mut answer = vec![0; 64 << 10];
    for number in 0..600 {
        let last = if number == 599 { "Connection: close\r\n" } else { "" };
        let request = format!("HEAD /{target}{number} HTTP/1.1\r\nHost: a\r\n{last}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut end = 0;
        while !answer[..end].ends_with(b"\r\n\r\n") {
            let n = uninterrupted(|| stream.read(&mut answer[end..])).unwrap();
            assert_ne!(n, 0, "request {number}");
            end += n;
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..end]));
    }
}

/// A front-end whose standard output is a full pipe that nobody reads.
fn stuck(origin: &Origin) -> FrontEnd {
    let front_end = FrontEnd::start_with_stdout(&[origin.address], TO_STDOUT, Stdio::piped());
    fill(front_end.address);
    front_end
}

#[test]
fn a_full_pipe_stops_neither_reload_nor_end() {
    let origin = Origin::start("b0", &[]);
    let mut front_end = stuck(&origin);
    for count in 0..3 {
        front_end.process.signal("-HUP");
        front_end.process.wait_for(" again", count);
    }
    front_end.process.signal("-TERM");
    front_end.process.wait_for("stopping", 0);
    assert_eq!(front_end.process.wait(), Some(0), "{}", front_end.process.said());
    front_end.process.wait_for("they are lost", 0);
}

#[test]
fn a_second_signal_is_heard_behind_a_full_pipe() {
    let origin = Origin::start("b0", &[]);
    let mut front_end = stuck(&origin);
    front_end.process.signal("-HUP");
    front_end.process.wait_for(" again", 0);
    // Something under way, so that the first signal has something to wait for.
    origin.process.signal("-STOP");
    let mut client = TcpStream::connect(front_end.address).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    eventually("the request", || front_end.load() == 1);
    front_end.process.signal("-TERM");
    front_end.process.wait_for("stopping", 0);
    front_end.process.signal("-TERM");
    assert_eq!(front_end.process.wait(), Some(1), "{}", front_end.process.said());
}

#[test]
fn a_full_pipe_can_be_left_for_a_file() {
    let origin = Origin::start("b0", &[]);
    let mut front_end = stuck(&origin);
    let log = front_end.path("access.log");
    let to_file = format!("[access_log]\nfile = \"{}\"\nformat = \"json\"\n", log.display());
    std::fs::write(&front_end.file, config(&[origin.address], &to_file)).unwrap();
    front_end.process.signal("-HUP");
    front_end.process.wait_for(" again", 0);
    // Until what had to wait is written, further records are lost.
    eventually("a record of a later request", || {
        let mut client = TcpStream::connect(front_end.address).unwrap();
        client.write_all(b"GET /after HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        client.read_to_end(&mut Vec::new()).unwrap();
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("\"/after\""))
    });
    front_end.stop();
    let text = std::fs::read_to_string(log).unwrap();
    // Only whole lines.
    assert!(text.lines().all(|line| line.starts_with('{') && line.ends_with('}')));
}

#[test]
fn a_fifo_without_reader_is_refused() {
    let origin = Origin::start("b0", &[]);
    let mut front_end = FrontEnd::start(&[origin.address], "");
    let fifo = front_end.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let to_fifo = format!("[access_log]\nfile = \"{}\"\n", fifo.display());
    std::fs::write(&front_end.file, config(&[origin.address], &to_fifo)).unwrap();
    front_end.process.signal("-HUP");
    front_end.process.wait_for("a FIFO that nobody reads", 0);
    front_end.process.wait_for("stays in force", 0);
    let mut second = Process::start(&["balance", "--config", front_end.file.to_str().unwrap()]);
    assert_eq!(second.wait(), Some(1));
    second.wait_for("a FIFO that nobody reads", 0);
    front_end.stop();
}

/// Whether the process handles SIGHUP, which is signal 1.
fn handles_hangup(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let handled = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(handled.trim(), 16).unwrap() & 1 == 1
}

#[test]
fn a_hangup_before_the_first_message_is_a_reload() {
    let directory = private_directory();
    let file = directory.path().join("plimsoll.toml");
    std::fs::write(&file, config(&[], "[[backend]]\nname = \"b0\"\naddress = \"127.0.0.1:9\"\n")).unwrap();
    // Standard error is a full pipe: the first message waits until somebody reads.
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[b'\n'; 64 << 10]).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["balance", "--no-watch", "--config", file.to_str().unwrap()])
        .stderr(writer)
        .spawn()
        .unwrap();
    let mut child = Killed(child);
    let pid = child.0.id();
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &*pid.to_string()]).status().unwrap().success());
    };
    eventually("a handler of SIGHUP", || handles_hangup(pid));
    signal("-HUP");
    let (sender, said) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(reader).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let wait_for = |what: &str| while !said.recv_timeout(PATIENCE).unwrap().contains(what) {};
    wait_for(" again");
    signal("-TERM");
    wait_for("stopping");
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}
