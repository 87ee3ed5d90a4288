//! Connections: pipelining, bounds, pause and end.

use std::time::{Duration, Instant};

use plimsoll_origin::synthetic::Synthetic;
use plimsoll_origin::{DiskModel, Origin, OriginConfig, OriginError, Source};
use plimsoll_testkit::{PATIENCE, Why, eventually_async, pace_async};
use tokio::sync::oneshot;

use crate::client::{Client, Running, until_all_is_read};

fn config() -> OriginConfig {
    OriginConfig::new(Source::synthetic(Synthetic::fixed(10)))
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let origin = Running::start(config()).await;
    let mut client = Client::connect(origin.address()).await;
    let requests: String = (1..=50).map(|n| format!("GET /size/{n} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    client.send(requests.as_bytes()).await;
    for n in 1..=50 {
        assert_eq!(client.answer("GET").await.body.len(), n);
    }
    let stats = origin.handle.stats();
    assert_eq!((stats.requests, stats.connections, stats.connections_open), (50, 1, 1));
}

#[tokio::test]
async fn bodies_of_requests_are_read_and_bounded() {
    let origin = Running::start(config()).await;
    let mut client = Client::connect(origin.address()).await;
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
    assert_eq!(client.answer("GET").await.status, 200);
    client
        .send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        .await;
    assert_eq!(client.answer("POST").await.status, 405);
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n").await;
    let answer = client.answer("PUT").await;
    assert_eq!((answer.status, answer.header("connection")), (413, "close"));
    assert_eq!(client.rest().await, b"");
    let mut client = Client::connect(origin.address()).await;
    let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000)).repeat(5);
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    client.send(chunk.as_bytes()).await;
    assert_eq!(client.answer("PUT").await.status, 413);
}

#[tokio::test]
async fn heads_are_bounded_in_size_and_time() {
    let mut config = config();
    // Long enough for a request that is sent at once, on a machine however busy.
    config.head_timeout = Duration::from_secs(2);
    let origin = Running::start(config).await;
    let mut idle = Client::connect(origin.address()).await;
    assert_eq!(idle.ask("GET", "/", &[]).await.status, 200);
    let mut begun = Vec::new();
    for start in ["", "GET / HTT", "GET / HTTP/1.1\r\nHost: a\r\n"] {
        let mut client = Client::connect(origin.address()).await;
        client.send(start.as_bytes()).await;
        begun.push((start, client));
    }
    for (start, mut client) in begun {
        let answer = client.rest().await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{start:?}");
    }
    // An idle connection ends too.
    idle.rest().await;
    let mut client = Client::connect(origin.address()).await;
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(1_000_000));
    // The origin may close the connection before all of it is sent.
    let _ = client.try_send(head.as_bytes()).await;
    assert!(!client.rest().await.starts_with(b"HTTP/1.1 200"));
    eventually_async("the end of all connections", async || origin.handle.stats().connections_open == 0)
        .await;
}

#[tokio::test]
async fn what_is_no_request_is_told_so() {
    let origin = Running::start(config()).await;
    let many = "X: 1\r\n".repeat(101);
    for (what, status) in [
        ("GARBAGE\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"), 431),
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(70_000)), 414),
    ] {
        let mut client = Client::connect(origin.address()).await;
        // The origin may answer before all of it is sent.
        let _ = client.try_send(what.as_bytes()).await;
        let answer = client.rest().await;
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(expected.as_bytes()), "{what:.40}: {}", String::from_utf8_lossy(&answer));
    }
}

#[tokio::test]
async fn what_a_client_does_not_read_is_not_held_for_it() {
    let origin = Running::start(config()).await;
    let mut client = Client::connect(origin.address()).await;
    client.send(b"GET /size/10000000000 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut before = 0;
    eventually_async("the end of what sockets take", async || {
        pace_async(Duration::from_millis(200), Why::TimeIsUp).await;
        let now = origin.handle.stats().body_bytes;
        now > 0 && std::mem::replace(&mut before, now) == now
    })
    .await;
    assert!(before < 100_000_000, "{before} bytes are on their way to a client that reads none");
}

#[tokio::test]
async fn truncated_requests_end_their_connection() {
    let origin = Running::start(config()).await;
    let whole = b"GET /abc HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz";
    for length in 0..whole.len() {
        let mut client = Client::connect(origin.address()).await;
        client.send(&whole[..length]).await;
        client.finish().await;
        let answer = client.rest().await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{length}: {}", String::from_utf8_lossy(&answer));
    }
    let mut client = Client::connect(origin.address()).await;
    client.send(whole).await;
    client.finish().await;
    assert!(client.rest().await.starts_with(b"HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_connection() {
    let mut config = config();
    config.write_timeout = Duration::from_millis(200);
    let origin = Running::start(config).await;
    let mut client = Client::connect(origin.address()).await;
    client.send(b"GET /size/1000000000 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually_async("the end of the connection", async || {
        let stats = origin.handle.stats();
        (stats.connections, stats.connections_open) == (1, 0)
    })
    .await;
    let stats = origin.handle.stats();
    assert!(stats.body_bytes < 500_000_000, "{stats:?}");
}

#[tokio::test]
async fn connections_are_bounded() {
    let mut config = config();
    config.max_connections = 2;
    let origin = Running::start(config).await;
    let mut first = Client::connect(origin.address()).await;
    let mut second = Client::connect(origin.address()).await;
    assert_eq!(first.ask("GET", "/", &[]).await.status, 200);
    assert_eq!(second.ask("GET", "/", &[]).await.status, 200);
    let mut third = Client::connect(origin.address()).await;
    third.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until_all_is_read().await;
    let stats = origin.handle.stats();
    assert_eq!((stats.connections, stats.requests, third.has_heard_nothing()), (2, 2, true));
    drop(first);
    assert_eq!(third.answer("GET").await.status, 200);
}

#[tokio::test]
async fn a_paused_origin_answers_when_it_is_resumed() {
    let origin = Running::start(config()).await;
    origin.handle.pause();
    let mut client = Client::connect(origin.address()).await;
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until_all_is_read().await;
    assert_eq!((origin.handle.stats().requests, client.has_heard_nothing()), (0, true));
    origin.handle.resume();
    assert_eq!(client.answer("GET").await.status, 200);
    assert_eq!(origin.get("/").await.status, 200);
}

#[tokio::test]
async fn stopping_ends_running_requests_first() {
    let mut config = config();
    config.disk = Some(DiskModel { latency: Duration::from_millis(300), ..DiskModel::lard98() });
    let origin = Origin::bind(config, "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = origin.local_addr();
    let handle = origin.handle();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(origin.serve(async { drop(stopped.await) }));
    let mut idle = Client::connect(address).await;
    assert_eq!(idle.ask("HEAD", "/", &[]).await.status, 200);
    let mut running = Client::connect(address).await;
    running.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually_async("the request", async || handle.stats().requests == 2).await;
    stop.send(()).unwrap();
    assert_eq!(idle.rest().await, b"");
    assert_eq!(running.answer("GET").await.status, 200);
    assert_eq!(running.rest().await, b"");
    tokio::time::timeout(PATIENCE, serving).await.unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn what_does_not_end_is_cut_off() {
    let mut config = config();
    config.drain_timeout = Duration::from_millis(200);
    let origin = Origin::bind(config, "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (address, handle) = (origin.local_addr(), origin.handle());
    handle.pause();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(origin.serve(async { drop(stopped.await) }));
    let mut client = Client::connect(address).await;
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until_all_is_read().await;
    assert_eq!(handle.stats().connections_open, 1);
    let began = Instant::now();
    stop.send(()).unwrap();
    tokio::time::timeout(PATIENCE, serving).await.unwrap().unwrap();
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert_eq!(client.rest().await, b"");
    assert_eq!(handle.stats().connections_open, 0);
}

#[tokio::test]
async fn origins_that_cannot_be() {
    let address = "127.0.0.1:0".parse().unwrap();
    let first = Origin::bind(config(), address).await.unwrap();
    let taken = first.local_addr();
    let error = Origin::bind(config(), taken).await.unwrap_err();
    assert!(matches!(error, OriginError::Listen { .. }));
    assert!(error.to_string().contains(&taken.to_string()), "{error}");
    for name in ["", "a\nb", "ä"] {
        let mut config = config();
        config.name = Some(name.to_owned());
        assert!(
            matches!(Origin::bind(config, address).await.unwrap_err(), OriginError::Name(n) if n == name)
        );
    }
    let mut unknown = config();
    unknown.cache_policy = "lur".to_owned();
    assert!(Origin::bind(unknown, address).await.unwrap_err().to_string().contains("lru"));
}
