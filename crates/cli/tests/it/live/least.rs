//! The least configuration: a listener and one back-end, and everything else as it is without a word.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_testbed::load::{ClosedLoop, Req, closed_loop};
use plimsoll_testkit::{PATIENCE, Why, eventually, pace};

use super::processes::{FrontEnd, Origin, run};
use crate::common::alone;

/// Clients at a time.
const CLIENTS: usize = 60;
/// Size of a download.
const LARGE_BYTES: usize = 8 << 20;

/// Downloads slowly, and to the end at once when it may; the bytes of the content, or what came instead.
fn download(address: SocketAddr, hurry: &AtomicBool) -> Result<usize, String> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut piece = vec![0; 16 << 10];
    let mut all = Vec::new();
    loop {
        match stream.read(&mut piece).map_err(|e| format!("after {} bytes: {e}", all.len()))? {
            0 => break,
            n => all.extend_from_slice(&piece[..n]),
        }
        if !hurry.load(Ordering::Relaxed) {
            pace(Duration::from_millis(50), Why::SlowPeer);
        }
    }
    let end = all.windows(4).position(|w| w == b"\r\n\r\n").ok_or("no head")?;
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    if head.starts_with("HTTP/1.1 200") { Ok(all.len() - end - 4) } else { Err(head) }
}

#[test]
fn one_back_end_refuses_nobody() {
    // A machine that stands still for others looks like a back-end that is overloaded.
    let _alone = alone();
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("large"), vec![b'x'; LARGE_BYTES]).unwrap();
    std::fs::write(files.path().join("small"), "small").unwrap();
    // Whom root starts becomes another one, who reads these too.
    std::fs::set_permissions(files.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let origin = Origin::serving(files.path());
    let mut front_end = FrontEnd::start(&[origin.address], "");
    let hurry = Arc::new(AtomicBool::new(false));
    let downloads: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (hurry, address) = (Arc::clone(&hurry), front_end.address);
            std::thread::spawn(move || download(address, &hurry))
        })
        .collect();
    eventually("all downloads under way", || {
        front_end.get("/backends/b0")["connections"].as_u64().unwrap() >= CLIENTS as u64
    });
    let load = ClosedLoop {
        connections: CLIENTS,
        requests: CLIENTS as u64 * 200,
        // Only the number of requests ends it.
        seconds: 3600.0,
        timeout: PATIENCE,
        ..ClosedLoop::new(front_end.address, |_| Req::get("/small"))
    };
    let summary = run(closed_loop(load));
    assert_eq!(summary.succeeded, summary.requests, "{:?} {:?}", summary.failures, summary.statuses);
    hurry.store(true, Ordering::Relaxed);
    for download in downloads {
        assert_eq!(download.join().unwrap(), Ok(LARGE_BYTES));
    }
    assert_eq!(front_end.get("/refusals"), serde_json::json!([]));
    front_end.stop();
}

#[test]
fn a_refusal_is_told_with_its_remedy() {
    let origin = Origin::start("drained", &[]);
    let mut front_end = FrontEnd::start(&[origin.address], "");
    front_end.post("/backends/b0/drain");
    let mut client = TcpStream::connect(front_end.address).unwrap();
    client.write_all(b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let line = front_end.process.wait_for("refused: no back-end takes requests", 0);
    for part in ["no_backend", "not_shown", "GET /a from 127.0.0.1", "look at `/backends`"] {
        assert!(line.contains(part), "no `{part}` in {line}");
    }
    front_end.stop();
}
