//! The load generator against what is no good server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_testbed::load::{ClosedLoop, LoadSummary, Req, RequestFailure, closed_loop};
use plimsoll_testkit::{OwnLoopback, PATIENCE, Why, pace};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Answers the first request of each connection with these bytes and closes it.
async fn answering(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            stream.write_all(bytes).await.unwrap();
        }
    });
    address
}

async fn three(target: SocketAddr, timeout: Duration) -> LoadSummary {
    let load =
        ClosedLoop { connections: 1, requests: 3, timeout, ..ClosedLoop::new(target, |_| Req::get("/")) };
    closed_loop(load).await
}

const LONG: Duration = PATIENCE;

#[tokio::test]
async fn failures_are_told_apart() {
    let cases: [(&[u8], RequestFailure); 4] = [
        (b"", RequestFailure::Closed),
        (b"HTTP/1.1 200", RequestFailure::Closed),
        (b"220 smtp.example ESMTP\r\n\r\n", RequestFailure::Malformed),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", RequestFailure::Truncated),
    ];
    for (answer, failure) in cases {
        let summary = three(answering(answer).await, LONG).await;
        assert_eq!(summary.failures, BTreeMap::from([(failure, 3)]), "{summary}");
    }
}

#[tokio::test]
async fn who_does_not_listen_or_does_not_answer() {
    let own = OwnLoopback::new();
    let address = own.at(8000);
    let listener = TcpListener::bind(address).await.unwrap();
    let summary = three(address, Duration::from_millis(100)).await;
    assert_eq!(summary.failures, BTreeMap::from([(RequestFailure::Timeout, 3)]), "{summary}");
    drop(listener);
    let summary = three(address, LONG).await;
    assert_eq!(summary.failures, BTreeMap::from([(RequestFailure::Connect, 3)]), "{summary}");
}

#[tokio::test]
async fn a_connection_that_ended_while_idle_is_replaced() {
    // Without `Connection: close`: the client learns of the end only when it comes.
    let target = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let request = |_| {
        pace(Duration::from_millis(50), Why::Midst);
        Req::get("/")
    };
    let load = ClosedLoop { connections: 1, requests: 3, ..ClosedLoop::new(target, request) };
    let summary = closed_loop(load).await;
    // Whether the end is seen before the next request is sent is not for the client to decide.
    let closed = summary.failures.get(&RequestFailure::Closed).copied().unwrap_or(0);
    assert_eq!(summary.succeeded + closed, 3, "{summary}");
    assert!(summary.succeeded >= 2, "{summary}");
}
