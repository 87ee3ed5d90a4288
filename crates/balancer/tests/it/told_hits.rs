//! What back-ends tell of their caches, in the access log and in metrics.

use super::admin::rig::Rig;
use super::common::origin::Origin;

/// An origin that tells what the path says.
fn origin() -> Origin {
    Origin::scripted(|conn| {
        while let Some(request) = conn.request() {
            let (status, field) = match request.target() {
                "/hit" => ("200 OK", "Cache-Status: near; hit\r\n"),
                "/miss" => ("200 OK", "X-Cache: MISS from near\r\n"),
                "/wrong" => ("404 Not Found", "X-Cache: HIT\r\n"),
                _ => ("200 OK", ""),
            };
            conn.write(format!("HTTP/1.1 {status}\r\n{field}Content-Length: 0\r\n\r\n").as_bytes());
        }
    })
}

#[test]
fn what_is_told_is_logged_and_counted() {
    let origin = origin();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let rig = Rig::new(&[&origin], &format!("[access_log]\nfile = {log:?}\nformat = \"json\"\n"));
    let mut client = rig.client();
    let asked = [
        ("GET", "/hit", Some(true)),
        ("GET", "/miss", Some(false)),
        ("GET", "/hit", Some(true)),
        ("GET", "/silent", None),
        // Neither of these is the document.
        ("GET", "/wrong", None),
        ("POST", "/hit", None),
    ];
    for (method, path, _) in asked {
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"));
        client.response(method);
    }
    let metrics = rig.metrics_once(|m| m.sum("plimsoll_requests_total", "") == 6.0);
    let counts =
        ["hits", "misses"].map(|what| metrics.sum(&format!("plimsoll_backend_told_{what}_total"), ""));
    assert_eq!(counts.map(|count| count as u64), [2, 1]);
    rig.stop();
    let text = std::fs::read_to_string(&log).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let hits: Vec<Option<bool>> =
        lines.map(|line| line.get("hit").map(|hit| hit.as_bool().unwrap())).collect();
    assert_eq!(hits, asked.map(|(.., hit)| hit));
}
