//! Stopping, and not starting.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use plimsoll_testkit::{PATIENCE, eventually, uninterrupted};

use super::processes::{FrontEnd, config};

/// A back-end that answers each connection's request with the first half of a body at once and the second when told.
fn half_now() -> (SocketAddr, std::sync::mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (go_on, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = uninterrupted(|| stream.read(&mut [0; 4096])).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf").unwrap();
        if told.recv_timeout(PATIENCE).is_ok() {
            stream.write_all(b"half").unwrap();
        }
    });
    (address, go_on)
}

fn request(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    stream
}

fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    let mut piece = [0; 4096];
    while !text.ends_with(end) {
        let n = uninterrupted(|| stream.read(&mut piece)).unwrap();
        assert_ne!(n, 0, "ended after {text:?}");
        text += std::str::from_utf8(&piece[..n]).unwrap();
    }
    text
}

#[test]
fn sigterm_finishes_what_is_under_way_and_takes_nothing_new() {
    let (backend, go_on) = half_now();
    let mut front_end = FrontEnd::start(&[backend], "[health]\nprobe = \"none\"\n");
    let mut client = request(front_end.address);
    read_until(&mut client, "half");
    front_end.process.signal("-TERM");
    front_end.process.wait_for("stopping", 0);
    eventually("an end of new connections", || TcpStream::connect(front_end.address).is_err());
    go_on.send(()).unwrap();
    read_until(&mut client, "half");
    assert_eq!(front_end.process.wait(), Some(0), "{}", front_end.process.said());
}

#[test]
fn a_second_signal_does_not_wait() {
    let (backend, _go_on) = half_now();
    let mut front_end = FrontEnd::start(&[backend], "[health]\nprobe = \"none\"\n");
    let mut client = request(front_end.address);
    read_until(&mut client, "half");
    front_end.process.signal("-TERM");
    front_end.process.wait_for("stopping", 0);
    front_end.process.signal("-TERM");
    assert_eq!(front_end.process.wait(), Some(1));
}

#[test]
fn what_cannot_start_says_why() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("plimsoll.toml");
    let backend = SocketAddr::from(([127, 0, 0, 1], 9));
    let text = config(&[backend], "").replacen("127.0.0.1:0", &taken.local_addr().unwrap().to_string(), 1);
    for (text, why) in [(text.as_str(), "cannot listen at"), ("[[listener]]\n", "plimsoll.toml:1")] {
        std::fs::write(&file, text).unwrap();
        let out = crate::common::plimsoll(&["balance", "--config", file.to_str().unwrap()]);
        let said = crate::common::text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(said.contains(why), "{said}");
    }
    let out = crate::common::plimsoll(&["balance"]);
    assert_eq!(out.status.code(), Some(2));
}
