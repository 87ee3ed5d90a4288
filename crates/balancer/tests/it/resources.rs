//! CPU time and memory: measured in a process of its own, where nothing else runs.
#![cfg(target_os = "linux")]

use std::process::Command;
use std::time::{Duration, Instant};

use plimsoll_testkit::{Why, eventually, pace};

use super::common::origin::{Origin, echo};
use super::common::{Client, FrontEnd, assert_files_for, get};

const ALONE: &str = "PLIMSOLL_TEST_ALONE";

/// True in a process that runs the test of this name and nothing else; anywhere else, starts such a process and waits
/// for its success.
fn alone(name: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let exe = std::env::current_exe().unwrap();
    let run = Command::new(exe).args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let text = [run.stdout, run.stderr].map(|b| String::from_utf8_lossy(&b).into_owned()).concat();
    assert!(run.status.success() && text.contains("1 passed"), "{text}");
    false
}

/// CPU time of this process so far, in clock ticks of 10 ms.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Memory of this process in bytes.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn stuck_origin() -> Origin {
    Origin::scripted(|conn| {
        while conn.head() {
            let text = conn.text();
            if text.contains("/never-read") {
                pace(Duration::from_secs(20), Why::SlowPeer);
            }
            if text.contains("/early") {
                conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nearly");
            }
            let Some(request) = conn.request() else { return };
            match request.target() {
                "/never" => while conn.read() > 0 {},
                "/stops" => {
                    conn.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
                    while conn.read() > 0 {}
                }
                "/large" => {
                    conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n");
                    conn.write(&vec![b'x'; 50_000_000]);
                }
                "/junk" => {
                    conn.write(&echo(&request));
                    pace(Duration::from_millis(5), Why::Pieces);
                    conn.write(b"junk");
                }
                _ => drop(conn.write(&echo(&request))),
            }
        }
    })
}

#[test]
fn nothing_spins() {
    if !alone("resources::nothing_spins") {
        return;
    }
    let origin = stuck_origin();
    let front_end = FrontEnd::new(&[origin.address], "");
    let few = stuck_origin();
    let text = format!(
        "[[backend]]\naddress = \"{}\"\nmax_connections = 1\n[timeouts]\nconnect = \"20s\"\n",
        few.address
    );
    let full = FrontEnd::from_text(&text);
    let mut held: Vec<Client> = Vec::new();
    for end_side in [false, true] {
        let upload = |target: &str, bytes| {
            format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {bytes}\r\n\r\nx")
        };
        for text in [
            get("/never"),
            format!("{}{}", get("/never"), get("/next")),
            get("/stops"),
            format!("{}{}", get("/stops"), get("/next")),
            get("/large"),
            get("/junk"),
            String::new(),
            "GET / HTTP/1.1\r\n".to_owned(),
            "\r".to_owned(),
            upload("/early", 100),
            upload("/waits", 100),
            "POST /w HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5".to_owned(),
        ] {
            let mut client = front_end.client();
            client.send(text);
            if end_side {
                client.finish();
            }
            held.push(client);
        }
        for _ in 0..3 {
            let mut client = full.client();
            client.send(get("/never"));
            if end_side {
                client.finish();
            }
            held.push(client);
        }
    }
    let mut blocked = front_end.client();
    blocked.stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    blocked.send("POST /never-read HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    blocked.send(vec![b'x'; 100_000_000]);
    // It still has something to do at first.
    eventually("next to no use of the CPU", || {
        let (before, begin) = (cpu_ticks(), Instant::now());
        pace(Duration::from_millis(1500), Why::Measuring);
        let (used, share) = (cpu_ticks() - before, begin.elapsed().as_millis() as u64 / 10);
        println!("{used} of {share} ticks");
        used * 5 < share
    });
    held.push(blocked);
    held.into_iter().for_each(Client::reset);
    // What is stuck in a back-end may stay so; the process ends here.
    println!("test result: 1 passed");
    std::process::exit(0);
}

#[test]
fn memory_is_bounded() {
    if !alone("resources::memory_is_bounded") {
        return;
    }
    const CLIENTS: usize = 3000;
    assert_files_for(CLIENTS);
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "[timeouts]\nhead = \"300s\"\nidle = \"300s\"\n");
    for _ in 0..100 {
        front_end.client().get("/");
    }
    let before = resident_bytes();
    let each = |what: &str, most: usize| {
        pace(Duration::from_millis(300), Why::Measuring);
        let bytes = resident_bytes().saturating_sub(before) / CLIENTS;
        println!("{bytes} bytes for {what}");
        assert!(bytes < most, "{bytes} bytes for {what}");
    };
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| front_end.client()).collect();
    each("a new connection", 6000);
    for client in &mut clients {
        assert_eq!(client.get("/").status(), 200);
    }
    each("an idle connection", 7000);
    clients.iter_mut().for_each(|c| {
        let _ = c.send("GET / HTTP/1.1\r\n");
    });
    each("a connection with half a head", 40_000);
    assert_eq!(front_end.client().get("/").status(), 200);
    drop(clients);
    front_end.assert_idle();
}
