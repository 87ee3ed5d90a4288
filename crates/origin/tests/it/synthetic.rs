//! Generated contents.

use plimsoll_origin::synthetic::{self, Synthetic};
use plimsoll_origin::{OriginConfig, Source};

use crate::client::{MODIFIED, Running};

#[tokio::test]
async fn fixed_sizes() {
    let mut config = OriginConfig::new(Source::synthetic(Synthetic::fixed(100)));
    config.name = Some("b 3".to_owned());
    let origin = Running::start(config).await;
    let first = origin.get("/any/path").await;
    let number = Synthetic::fixed(100).find("/any/path").unwrap().number;
    assert_eq!((first.status, first.body.len(), first.header("x-backend")), (200, 100, "b 3"));
    assert!(synthetic::matches(number, 0, &first.body));
    let part = origin.ask("GET", "/any/path?q", &[("Range", "bytes=13-57")]).await;
    assert_eq!((part.status, part.header("x-cache"), part.body.len()), (206, "hit", 45));
    assert!(synthetic::matches(number, 13, &part.body));
    let tag = first.header("etag").to_owned();
    assert_eq!(origin.ask("GET", "/any/path", &[("If-None-Match", &tag)]).await.status, 304);
    assert_ne!(first.header("last-modified"), MODIFIED);
    assert_eq!(origin.get("/size/123456").await.body.len(), 123_456);
    assert_eq!(origin.get("/size/x").await.status, 404);
    assert_eq!(origin.ask("PUT", "/", &[]).await.header("x-backend"), "b 3");
}

#[tokio::test]
async fn workloads_and_streams() {
    let overrides = [
        ("targets", "300"),
        ("total_mib", "30"),
        ("requests", "3000"),
        ("cover97_mib", "0"),
        ("cover98_mib", "0"),
        ("cover99_mib", "0"),
    ];
    let documents = Synthetic::workload("rice", &overrides, 1).unwrap();
    let mut config = OriginConfig::new(Source::synthetic(documents.clone()));
    config.cache_bytes = 100_000;
    let origin = Running::start(config).await;
    let mut streamed = 0;
    for n in 0..300 {
        let path = format!("/rice/{n:05}.html");
        let document = documents.find(&path).unwrap();
        let answer = origin.get(&path).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, "text/html"));
        assert_eq!(answer.body.len() as u64, document.size_bytes);
        assert!(synthetic::matches(document.number, 0, &answer.body), "{path}");
        streamed += u64::from(document.size_bytes > 100_000);
    }
    assert!(streamed > 0);
    assert_eq!(origin.handle.stats().bypassed, streamed);
    assert_eq!(origin.get("/rice/00300.html").await.status, 404);
}
