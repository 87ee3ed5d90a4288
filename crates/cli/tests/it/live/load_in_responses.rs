//! Loads that back-ends write into their responses.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_testkit::{OwnLoopback, eventually, wait_for};

use super::load_information::counted;
use super::processes::FrontEnd;

/// A back-end whose responses tell this load.
fn telling(metrics: &'static str) -> (SocketAddr, OwnLoopback) {
    telling_first(metrics, usize::MAX)
}

/// A back-end of which so many responses tell this load, and further ones nothing.
fn telling_first(metrics: &'static str, many: usize) -> (SocketAddr, OwnLoopback) {
    let left = Arc::new(AtomicUsize::new(many));
    let own = OwnLoopback::new();
    let listener = TcpListener::bind(own.at(8000)).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let left = Arc::clone(&left);
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {
                    let less = |left: usize| left.checked_sub(1);
                    let field = match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
                        Ok(_) => format!("endpoint-load-metrics: {metrics}\r\n"),
                        Err(_) => String::new(),
                    };
                    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{field}\r\nok");
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (own.at(8000), own)
}

#[test]
fn a_back_end_that_tells_its_load_no_more_becomes_like_the_others() {
    let backends = [telling_first("named_metrics.active=20", 1), telling("named_metrics.active=4")];
    let addresses = backends.each_ref().map(|(address, _)| *address);
    let text = "[health]\nprobe = \"none\"\n[policy]\nname = \"round_robin\"\n\
                [load_information]\nfrom = \"header\"\ninterval = \"50ms\"\n";
    let front_end = FrontEnd::start(&addresses, text);
    let ask = || {
        let mut stream = TcpStream::connect(front_end.address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    };
    // Both are asked in turn: the first one's load is told once, that of the second one again and again.
    eventually("the first one is like the second", || {
        ask();
        let reports = counted(&front_end, "plimsoll_load_reports_total");
        reports >= 2.0 && front_end.get("/backends")[0]["shown_load"].as_u64().unwrap() <= 5
    });
    assert!(counted(&front_end, "plimsoll_load_neutral_total") >= 1.0);
}

#[test]
fn loads_in_responses_are_used_and_passed_on() {
    let backends = [
        telling("TEXT cpu_utilization=0.2,named_metrics.active=20"),
        telling(r#"JSON {"named_metrics":{"active":4}}"#),
        telling("TEXT named_metrics.active=4294967295"),
    ];
    let addresses = backends.each_ref().map(|(address, _)| *address);
    let text = "[health]\nprobe = \"none\"\n[policy]\nname = \"round_robin\"\n\
                [load_information]\nfrom = \"header\"\ninterval = \"1h\"\n";
    let front_end = FrontEnd::start(&addresses, text);
    for _ in 0..3 {
        let mut stream = TcpStream::connect(front_end.address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("endpoint-load-metrics: "), "it is passed on: {answer}");
    }
    let shown = |n: usize| front_end.get("/backends")[n]["shown_load"].as_u64().unwrap();
    // Of each, the request that told it has ended since; the third one's is no load, so it has got the mean of the two.
    let loads = wait_for("all are told", || {
        let loads = [shown(0), shown(1), shown(2)];
        (loads[0] == 19 && loads[1] == 3).then_some(loads)
    });
    assert!((10..=12).contains(&loads[2]), "{loads:?}");
    assert!((counted(&front_end, "plimsoll_load_reports_total") - 2.0).abs() < 0.5);
    let refused = "plimsoll_load_refused_total{reason=\"implausible\"}";
    assert!((counted(&front_end, refused) - 1.0).abs() < 0.5);
}
