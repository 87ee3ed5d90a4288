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
                "/part" => ("206 Partial Content", "Content-Range: bytes 0-0/9\r\nX-Cache: HIT\r\n"),
                "/wrong" => ("404 Not Found", "X-Cache: HIT\r\n"),
                "/known" => ("304 Not Modified", "X-Cache: HIT\r\n"),
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
        ("GET", "/part", Some(true)),
        // None of these brings the document.
        ("GET", "/wrong", None),
        ("GET", "/known", None),
        ("HEAD", "/hit", None),
        ("POST", "/hit", None),
    ];
    for (method, path, _) in asked {
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"));
        client.response(method);
    }
    let metrics = rig.metrics_once(|m| m.sum("plimsoll_requests_total", "") == 9.0);
    let counts =
        ["hits", "misses"].map(|what| metrics.sum(&format!("plimsoll_backend_told_{what}_total"), ""));
    assert_eq!(counts.map(|count| count as u64), [3, 1]);
    rig.stop();
    let text = std::fs::read_to_string(&log).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let hits: Vec<Option<bool>> =
        lines.map(|line| line.get("hit").map(|hit| hit.as_bool().unwrap())).collect();
    assert_eq!(hits, asked.map(|(.., hit)| hit));
}
