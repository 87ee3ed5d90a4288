//! Metrics agree with what was sent, and no counter falls.

use std::time::{SystemTime, UNIX_EPOCH};

use super::rig::{Rig, text};
use crate::common::origin::{Origin, echo};

fn missing_some() -> Origin {
    Origin::answering(|request| match request.target() {
        "/none" => b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno\n".to_vec(),
        _ => echo(request),
    })
}

#[test]
fn counted_once_each() {
    let origins = [missing_some(), missing_some()];
    let rig = Rig::new(&[&origins[0], &origins[1]], "[policy]\nname = \"round_robin\"\n");
    let (mut one, mut two) = (rig.client(), rig.client());
    let mut bytes = 0;
    for i in 0..30 {
        let client = if i % 2 == 0 { &mut one } else { &mut two };
        let target = if i % 10 == 0 { "/none" } else { "/a" };
        bytes += client.get(target).body.len();
    }
    let mut bad = rig.client();
    bad.send("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(bad.response("GET").status(), 400);
    let m =
        rig.metrics_once(|m| m.sum("plimsoll_requests_total", "") == 31.0 && m.get("plimsoll_load") == 0.0);
    assert_eq!(m.get("plimsoll_requests_total{code=\"2xx\"}"), 27.0);
    assert_eq!(m.get("plimsoll_requests_total{code=\"4xx\"}"), 4.0);
    assert_eq!(m.get("plimsoll_decisions_total"), 30.0);
    assert_eq!(m.sum("plimsoll_backend_responses_total", "code=\"2xx\""), 27.0);
    assert_eq!(m.sum("plimsoll_backend_responses_total", "code=\"4xx\""), 3.0);
    assert_eq!(m.sum("plimsoll_backend_responses_total", "backend=\"b0\""), 15.0);
    assert_eq!(m.sum("plimsoll_backend_content_bytes_total", ""), bytes as f64);
    for histogram in ["plimsoll_backend_response_time_seconds", "plimsoll_backend_first_byte_seconds"] {
        assert_eq!(m.sum(&format!("{histogram}_count"), ""), 30.0);
        let buckets = format!("{histogram}_bucket");
        assert_eq!(m.sum(&buckets, "le=\"+Inf\""), 30.0);
        assert!(m.sum(&buckets, "le=\"0.0005\"") <= m.sum(&buckets, "le=\"10.0\""));
        assert!(m.sum(&format!("{histogram}_sum"), "") > 0.0);
    }
    assert_eq!(m.get("plimsoll_connections_accepted_total"), 3.0);
    assert!(m.get("plimsoll_connections_open") >= 2.0);
    let opened = m.sum("plimsoll_backend_connections_opened_total", "");
    let seen = origins.iter().map(|origin| origin.connections()).sum::<usize>();
    assert_eq!(opened, seen as f64);
    assert_eq!(m.sum("plimsoll_backend_connections_open", ""), opened);
    assert_eq!(m.sum("plimsoll_backend_failures_total", ""), 0.0);
    let json = rig.backend("b0");
    assert_eq!(json["answers"]["2xx"].as_u64().unwrap() + json["answers"]["4xx"].as_u64().unwrap(), 15);
    assert!(json["mean_response_time_s"].as_f64().unwrap() > 0.0);
    process(&m);
}

fn process(m: &super::rig::Metrics) {
    assert!(m.get("process_resident_memory_bytes") > 1e6);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let age = now - m.get("process_start_time_seconds");
    // The boot time that the kernel tells is in whole seconds.
    assert!((-2.0..86_400.0).contains(&age), "{age}");
    assert_eq!(m.get(&format!("plimsoll_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"))), 1.0);
}

#[test]
fn no_counter_falls_with_a_reload() {
    let origins = [Origin::echo(), Origin::echo(), Origin::echo()];
    let log = tempfile::tempdir().unwrap();
    let tables = format!("[decision_log]\ndirectory = \"{}\"\n", log.path().display());
    let [a, b, c] = &origins;
    let rig = Rig::from_text(&text(&[(a, ""), (b, "")], &tables));
    rig.get_times(20, "/a");
    let mut before = rig.metrics_once(|m| m.sum("plimsoll_requests_total", "") == 20.0);
    for (round, reloaded) in [
        // Another limit makes another back-end of it.
        text(&[(a, "max_connections = 7"), (b, "")], &tables),
        // One has gone, another policy is there, and the log has ended.
        text(&[(a, "max_connections = 7")], "[policy]\nname = \"lard_r\"\n"),
        // It comes back at another address.
        text(&[(a, "max_connections = 7"), (c, "")], ""),
    ]
    .iter()
    .enumerate()
    {
        rig.reload(reloaded);
        rig.get_times(10, "/a");
        let sent = 30.0 + 10.0 * round as f64;
        let after = rig.metrics_once(|m| m.sum("plimsoll_requests_total", "") == sent);
        for (series, value) in before.counters() {
            let now = after.samples.get(series);
            assert!(
                now.is_some_and(|&now| now >= value),
                "{series} fell from {value} to {now:?} in round {round}"
            );
        }
        assert_eq!(after.sum("plimsoll_backend_responses_total", ""), sent, "round {round}");
        assert_eq!(after.sum("plimsoll_backend_response_time_seconds_count", ""), sent);
        before = after;
    }
    assert_eq!(before.get("plimsoll_backend_connections_limit{backend=\"b0\"}"), 7.0);
    rig.get("/backends/b2").assert_error(404);
}

#[test]
fn a_backend_that_is_not_there() {
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let origin = Origin::echo();
    let base = text(&[(&origin, "")], "[policy]\nname = \"round_robin\"\n");
    let rig = Rig::from_text(&format!("{base}[[backend]]\nname = \"gone\"\naddress = \"{gone}\"\n"));
    rig.get_times(12, "/a");
    let m = rig.metrics_once(|m| m.sum("plimsoll_requests_total", "") == 12.0);
    assert!(m.get("plimsoll_backend_connections_failed_total{backend=\"gone\"}") >= 1.0);
    assert!(m.get("plimsoll_requests_retried_total") >= 1.0);
    assert_eq!(m.sum("plimsoll_backend_responses_total", "backend=\"gone\""), 0.0);
    assert_eq!(m.get("plimsoll_requests_total{code=\"2xx\"}"), 12.0);
}
