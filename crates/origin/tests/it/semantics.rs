//! Methods, conditions, ranges and headers: RFC 9110.

use crate::client::{Client, MODIFIED, Running, site};

const TEXT: &[u8] = b"0123456789abcdefghij";

async fn origin() -> (tempfile::TempDir, Running) {
    let site = site(&[("a.txt", TEXT), ("empty", b""), ("index.html", b"<p>home"), ("x.unknown-kind", b"?")]);
    let running = Running::files(site.path()).await;
    (site, running)
}

#[tokio::test]
async fn a_file_with_its_headers() {
    let (_site, origin) = origin().await;
    let answer = origin.get("/a.txt").await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, TEXT));
    assert_eq!(answer.header("content-type"), "text/plain");
    assert_eq!(answer.header("last-modified"), MODIFIED);
    assert_eq!(answer.header("accept-ranges"), "bytes");
    assert_eq!(answer.header("x-cache"), "miss");
    assert_eq!(answer.header("x-backend"), "");
    assert!(answer.header("etag").starts_with('"') && answer.header("etag").ends_with('"'));
    assert!(answer.header("date").ends_with(" GMT"));
    assert_eq!(origin.get("/").await.header("content-type"), "text/html");
    assert_eq!(origin.get("/x.unknown-kind").await.header("content-type"), "application/octet-stream");
    let empty = origin.get("/empty").await;
    assert_eq!((empty.status, empty.header("content-length"), empty.header("x-cache")), (200, "0", ""));
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let (_site, origin) = origin().await;
    let mut client = Client::connect(origin.address()).await;
    let head = client.ask("HEAD", "/a.txt", &[("Range", "bytes=0-1")]).await;
    assert_eq!((head.status, head.header("content-length")), (200, "20"));
    let missing = client.ask("HEAD", "/none", &[]).await;
    assert_eq!((missing.status, missing.header("content-length")), (404, "14"));
    // The connection goes on, and HEAD brought nothing into the cache.
    let get = client.ask("GET", "/a.txt", &[]).await;
    assert_eq!((get.status, get.header("x-cache")), (200, "miss"));
    for name in ["etag", "last-modified", "content-type", "accept-ranges"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
}

#[tokio::test]
async fn other_methods() {
    let (_site, origin) = origin().await;
    for (method, target, status) in [
        ("OPTIONS", "/a.txt", 204),
        ("OPTIONS", "*", 204),
        ("POST", "/a.txt", 405),
        ("PUT", "/new", 405),
        ("DELETE", "/a.txt", 405),
        ("TRACE", "/", 405),
        ("BREW", "/", 405),
    ] {
        let answer = origin.ask(method, target, &[]).await;
        assert_eq!(
            (answer.status, answer.header("allow")),
            (status, "GET, HEAD, OPTIONS"),
            "{method} {target}"
        );
    }
    assert_eq!(origin.get("/a.txt").await.body, TEXT);
}

#[tokio::test]
async fn conditions() {
    let (_site, origin) = origin().await;
    let tag = origin.get("/a.txt").await.header("etag").to_owned();
    let weak = format!("W/{tag}");
    let later = "Sun, 06 Nov 1994 08:49:38 GMT";
    let earlier = "Sun, 06 Nov 1994 08:49:36 GMT";
    let table: &[(&[(&str, &str)], u16)] = &[
        (&[("If-None-Match", &tag)], 304),
        (&[("If-None-Match", &weak)], 304),
        (&[("If-None-Match", "\"other\"")], 200),
        (&[("If-Modified-Since", MODIFIED)], 304),
        (&[("If-Modified-Since", earlier)], 200),
        (&[("If-None-Match", "\"other\""), ("If-Modified-Since", later)], 200),
        (&[("If-Match", "\"other\"")], 412),
        (&[("If-Match", &weak)], 412),
        (&[("If-Match", &tag), ("If-Unmodified-Since", earlier)], 200),
        (&[("If-Unmodified-Since", earlier)], 412),
        (&[("If-Match", "\"other\""), ("If-None-Match", &tag)], 412),
        (&[("If-Range", &tag), ("Range", "bytes=1-2")], 206),
        (&[("If-Range", &weak), ("Range", "bytes=1-2")], 200),
        (&[("If-Range", MODIFIED), ("Range", "bytes=1-2")], 206),
        (&[("If-Range", later), ("Range", "bytes=1-2")], 200),
        (&[("If-None-Match", &tag), ("Range", "bytes=1-2")], 304),
        (&[("If-Match", "\"other\""), ("Range", "bytes=99-")], 412),
    ];
    for (headers, status) in table {
        let answer = origin.ask("GET", "/a.txt", headers).await;
        assert_eq!(answer.status, *status, "{headers:?}");
        assert_eq!(answer.header("etag"), tag, "{headers:?}");
    }
    assert_eq!(origin.ask("HEAD", "/a.txt", &[("If-None-Match", "*")]).await.status, 304);
    // Conditions on what is not there change nothing.
    assert_eq!(origin.ask("GET", "/none", &[("If-Match", "*")]).await.status, 404);
}

#[tokio::test]
async fn ranges() {
    let (_site, origin) = origin().await;
    let table: &[(&str, &str, &str)] = &[
        ("bytes=0-3", "bytes 0-3/20", "0123"),
        ("bytes=15-", "bytes 15-19/20", "fghij"),
        ("bytes=-2", "bytes 18-19/20", "ij"),
        ("bytes=18-99", "bytes 18-19/20", "ij"),
        ("bytes=0-0,50-60", "bytes 0-0/20", "0"),
    ];
    for &(range, content_range, body) in table {
        let answer = origin.ask("GET", "/a.txt", &[("Range", range)]).await;
        assert_eq!(
            (answer.status, answer.header("content-range"), answer.text()),
            (206, content_range, body),
            "{range}"
        );
        assert_eq!(answer.header("content-type"), "text/plain");
    }
    for range in ["bytes=20-", "bytes=-0", "bytes=30-40,99-"] {
        let answer = origin.ask("GET", "/a.txt", &[("Range", range)]).await;
        assert_eq!((answer.status, answer.header("content-range")), (416, "bytes */20"), "{range}");
    }
    for range in ["bytes=3-1", "pages=1-2", "bytes=x", "bytes=0-19,0-19"] {
        let answer = origin.ask("GET", "/a.txt", &[("Range", range)]).await;
        assert_eq!((answer.status, answer.body.as_slice()), (200, TEXT), "{range}");
    }
    assert_eq!(origin.ask("GET", "/empty", &[("Range", "bytes=0-")]).await.status, 416);
    // Ranges come from the whole file in memory.
    assert_eq!(origin.handle.stats().reads, 1);
}

#[tokio::test]
async fn several_ranges() {
    let (_site, origin) = origin().await;
    let answer = origin.ask("GET", "/a.txt", &[("Range", "bytes=0-1, 5-5,-3")]).await;
    let boundary = answer.header("content-type").strip_prefix("multipart/byteranges; boundary=").unwrap();
    let part = |range: &str, body: &str| {
        format!(
            "--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {range}/20\r\n\r\n{body}\r\n"
        )
    };
    let expected =
        [part("0-1", "01"), part("5-5", "5"), part("17-19", "hij"), format!("--{boundary}--\r\n")].concat();
    assert_eq!((answer.status, answer.text()), (206, expected.as_str()));
    assert_eq!(answer.header("content-range"), "");
}

#[tokio::test]
async fn version_and_host() {
    let (_site, origin) = origin().await;
    for (request, status) in [
        ("GET /a.txt HTTP/1.1\r\n\r\n", 400),
        ("GET /a.txt HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET /a.txt HTTP/1.0\r\n\r\n", 200),
        ("GET http://origin/a.txt HTTP/1.1\r\nHost: origin\r\n\r\n", 200),
        ("GET nonsense HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET http://origin HTTP/1.1\r\nHost: origin\r\n\r\n", 200),
    ] {
        let mut client = Client::connect(origin.address()).await;
        client.send(request.as_bytes()).await;
        assert_eq!(client.answer("GET").await.status, status, "{request:?}");
    }
}
