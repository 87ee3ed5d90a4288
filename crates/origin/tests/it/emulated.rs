//! The emulated disk and CPU as requests see them.

use std::time::{Duration, Instant};

use plimsoll_origin::synthetic::Synthetic;
use plimsoll_origin::{CpuModel, DiskModel, OriginConfig, Source};

use crate::client::{Client, Running, until_all_is_read};

fn config() -> OriginConfig {
    let mut config = OriginConfig::new(Source::synthetic(Synthetic::fixed(8192)));
    config.disk = Some(DiskModel::lard98());
    config
}

#[tokio::test]
async fn requests_for_one_document_share_one_read() {
    let origin = Running::start(config()).await;
    // So that they are there together.
    origin.handle.pause();
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = Client::connect(origin.address()).await;
        client.send(b"GET /one HTTP/1.1\r\nHost: a\r\n\r\n").await;
        clients.push(client);
    }
    until_all_is_read().await;
    origin.handle.resume();
    let mut outcomes = Vec::new();
    for mut client in clients {
        let answer = client.answer("GET").await;
        assert_eq!(answer.body.len(), 8192);
        outcomes.push(answer.header("x-cache").to_owned());
    }
    let count = |outcome| outcomes.iter().filter(|o| *o == outcome).count();
    assert_eq!((count("miss"), count("miss") + count("joined") + count("hit")), (1, 20));
    assert!(count("joined") > 0, "{outcomes:?}");
    let stats = origin.handle.stats();
    assert_eq!((stats.reads, stats.misses, stats.joined as usize), (1, 1, count("joined")));
    assert_eq!(origin.get("/one").await.header("x-cache"), "hit");
}

#[tokio::test]
async fn the_disk_reads_one_after_another() {
    let origin = Running::start(config()).await;
    let began = Instant::now();
    let clients: Vec<_> = (0..10)
        .map(|n| {
            let address = origin.address();
            tokio::spawn(
                async move { Client::connect(address).await.ask("GET", &format!("/{n}"), &[]).await },
            )
        })
        .collect();
    for client in clients {
        assert_eq!(client.await.unwrap().header("x-cache"), "miss");
    }
    // Ten reads of 28.82 ms, on a machine however slow.
    assert!(began.elapsed() >= Duration::from_millis(288), "{:?}", began.elapsed());
}

#[tokio::test]
async fn streamed_blocks_and_the_cpu_take_their_time() {
    let mut config = config();
    config.cache_bytes = 0;
    config.cpu = Some(CpuModel::lard98());
    let origin = Running::start(config).await;
    let mut client = Client::connect(origin.address()).await;
    let began = Instant::now();
    let answer = client.ask("GET", "/size/90113", &[]).await;
    assert_eq!((answer.header("x-cache"), answer.body.len()), ("bypass", 90_113));
    // Three blocks: 28 + 2 · 14 ms of seeks and 9 ms of transfers; and 7 ms of CPU.
    assert!(began.elapsed() >= Duration::from_millis(72), "{:?}", began.elapsed());
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(client.ask("HEAD", "/x", &[]).await.status, 200);
        assert_eq!(client.ask("PUT", "/x", &[]).await.status, 405);
    }
    // Forty times 290 µs.
    assert!(began.elapsed() >= Duration::from_micros(11_600), "{:?}", began.elapsed());
}

#[tokio::test]
async fn with_a_cpu_misses_and_hits_are_counted_once() {
    let mut config = config();
    config.disk = None;
    config.cpu = Some(CpuModel::lard98());
    let origin = Running::start(config).await;
    for expected in ["miss", "hit", "hit"] {
        assert_eq!(origin.get("/a").await.header("x-cache"), expected);
    }
    let stats = origin.handle.stats();
    assert_eq!((stats.requests, stats.misses, stats.hits, stats.joined), (3, 1, 2, 0));
}
