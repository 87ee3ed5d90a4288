//! The memory cache as requests see it.

use std::fs;

use plimsoll_origin::synthetic::{self, Synthetic};
use plimsoll_origin::{OriginConfig, Source};
use plimsoll_testkit::eventually_async;

use crate::client::{Client, MODIFIED_S, Running, site, write};

/// Sizes of 60 documents, some too large for the cache.
fn sizes() -> Vec<u64> {
    (0..60).map(|n: u64| 1 + n * n * n % 9_973 + if n.is_multiple_of(20) { 40_000 } else { 0 }).collect()
}

fn documents() -> Source {
    let names = (0..).map(|n| format!("/{n}.bin").into_bytes());
    Source::synthetic(Synthetic::table(names.zip(sizes())).unwrap())
}

#[tokio::test]
async fn hits_and_misses_are_those_of_the_simulated_cache() {
    for policy in ["gds", "lru", "gdsf"] {
        let capacity_bytes = 40_000;
        let mut config = OriginConfig::new(documents());
        (config.cache_policy, config.cache_bytes) = (policy.to_owned(), capacity_bytes);
        let origin = Running::start(config).await;
        let mut simulated = plimsoll_cache::build(policy, capacity_bytes, None).unwrap();
        let mut client = Client::connect(origin.address()).await;
        let sizes = sizes();
        let mut counted = (0, 0, 0);
        let mut seed = 7u64;
        for step in 0..1500 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (seed >> 40) % 60;
            let size_bytes = sizes[number as usize];
            let answer = client.ask("GET", &format!("/{number}.bin"), &[]).await;
            assert_eq!(answer.body.len() as u64, size_bytes);
            assert!(synthetic::matches(number, 0, &answer.body), "document {number}");
            let expected = if size_bytes > capacity_bytes {
                counted.2 += 1;
                "bypass"
            } else if simulated.request(number, size_bytes, &mut Vec::new()) {
                counted.0 += 1;
                "hit"
            } else {
                counted.1 += 1;
                "miss"
            };
            assert_eq!(answer.header("x-cache"), expected, "{policy} step {step}");
        }
        let stats = origin.handle.stats();
        assert_eq!((stats.hits, stats.misses, stats.bypassed), counted);
        assert!(counted.0 > 50 && counted.1 > 50 && counted.2 > 10, "{counted:?}");
        assert_eq!((stats.requests, stats.joined, stats.reads), (1500, 0, counted.1));
        assert_eq!(stats.cache_used_bytes, simulated.used_bytes());
        assert_eq!(stats.cache_objects, simulated.len() as u64);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_stays_within_bounds_under_load() {
    let mut config = OriginConfig::new(documents());
    (config.cache_bytes, config.cache_object_limit_bytes) = (20_000, Some(6_000));
    let origin = Running::start(config).await;
    let clients: Vec<_> = (0..16u64)
        .map(|client| {
            let (address, sizes) = (origin.address(), sizes());
            tokio::spawn(async move {
                let mut connection = Client::connect(address).await;
                for step in 0..100 {
                    let number = (client * 7 + step * step) % 60;
                    let answer = connection.ask("GET", &format!("/{number}.bin"), &[]).await;
                    assert_eq!(answer.body.len() as u64, sizes[number as usize]);
                    assert!(synthetic::matches(number, 0, &answer.body));
                    let bypassed = answer.header("x-cache") == "bypass";
                    assert_eq!(bypassed, sizes[number as usize] > 6_000);
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
        assert!(origin.handle.stats().cache_used_bytes <= 20_000);
    }
    let stats = origin.handle.stats();
    assert_eq!(stats.requests, 1600);
    assert_eq!(stats.hits + stats.misses + stats.joined + stats.bypassed, 1600);
    assert_eq!(stats.misses, stats.reads);
    assert!(stats.hits > 0 && stats.bypassed > 0, "{stats:?}");
}

#[tokio::test]
async fn a_changed_file_is_read_again() {
    let site = site(&[("a", b"first"), ("b", b"here")]);
    let origin = Running::files(site.path()).await;
    let first = origin.get("/a").await;
    assert_eq!((first.text(), first.header("x-cache")), ("first", "miss"));
    assert_eq!(origin.get("/a").await.header("x-cache"), "hit");
    // Of the same size, so that only the time tells.
    write(&site.path().join("a"), b"again", MODIFIED_S + 10);
    let mut again = origin.get("/a").await;
    eventually_async("the new content", async || {
        if again.text() == "again" {
            return true;
        }
        assert_eq!(again.header("etag"), first.header("etag"), "tag and bytes belong together");
        again = origin.get("/a").await;
        false
    })
    .await;
    assert_eq!(again.header("x-cache"), "miss");
    assert_ne!(again.header("etag"), first.header("etag"));
    assert_eq!(origin.get("/a").await.header("x-cache"), "hit");
    assert_eq!(origin.get("/b").await.text(), "here");
    fs::remove_file(site.path().join("b")).unwrap();
    eventually_async("the end of a removed file", async || origin.get("/b").await.status == 404).await;
}

#[tokio::test]
async fn a_file_that_changes_between_look_and_read_is_looked_at_again() {
    let site = site(&[("a", b"first")]);
    let mut config = OriginConfig::new(Source::files(site.path(), false).unwrap());
    config.cache_bytes = 0;
    let origin = Running::start(config).await;
    assert_eq!(origin.get("/a").await.text(), "first");
    // The look at the file is still fresh, and nothing of it in memory.
    write(&site.path().join("a"), b"the second version", MODIFIED_S + 10);
    let second = origin.get("/a").await;
    assert_eq!((second.status, second.text()), (200, "the second version"));
}

#[tokio::test]
async fn a_big_file_is_streamed() {
    let mut content = vec![0; 3_000_000];
    synthetic::fill(5, 0, &mut content);
    let site = site(&[("big", &content)]);
    let mut config = OriginConfig::new(Source::files(site.path(), false).unwrap());
    config.cache_object_limit_bytes = Some(1_000_000);
    let origin = Running::start(config).await;
    let mut client = Client::connect(origin.address()).await;
    for _ in 0..2 {
        let whole = client.ask("GET", "/big", &[]).await;
        assert_eq!((whole.status, whole.header("x-cache")), (200, "bypass"));
        assert!(whole.body == content);
    }
    let part = client.ask("GET", "/big", &[("Range", "bytes=1000001-2999998")]).await;
    assert_eq!((part.status, part.header("content-range")), (206, "bytes 1000001-2999998/3000000"));
    assert!(synthetic::matches(5, 1_000_001, &part.body) && part.body.len() == 1_999_998);
    let parts = client.ask("GET", "/big", &[("Range", "bytes=0-9,-10")]).await;
    assert_eq!(parts.status, 206);
    assert!(parts.body.windows(10).any(|w| w == &content[..10]));
    assert!(parts.body.windows(10).any(|w| w == &content[2_999_990..]));
    let stats = origin.handle.stats();
    assert_eq!((stats.bypassed, stats.cache_used_bytes, stats.reads), (4, 0, 0));
    assert_eq!(stats.body_bytes, 2 * 3_000_000 + 1_999_998 + parts.body.len() as u64);
}

#[tokio::test]
async fn a_streamed_file_that_shrinks_cuts_the_connection() {
    let site = site(&[("big", b"")]);
    let big = fs::File::options().write(true).open(site.path().join("big")).unwrap();
    big.set_len(100_000_000).unwrap();
    let mut config = OriginConfig::new(Source::files(site.path(), false).unwrap());
    config.cache_bytes = 0;
    let origin = Running::start(config).await;
    let mut client = Client::connect(origin.address()).await;
    client.send(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n").await;
    // Socket buffers do not hold all of it, so the rest is read only after the file has shrunk.
    eventually_async("the request", async || origin.handle.stats().bypassed == 1).await;
    big.set_len(10).unwrap();
    let received = client.rest().await;
    assert!(received.starts_with(b"HTTP/1.1 200 "));
    assert!(received.len() < 100_000_000, "{}", received.len());
}
