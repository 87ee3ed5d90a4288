//! Compression of what back-ends have not compressed.

mod streams;

use std::io::Read as _;
use std::process::Command;

use plimsoll_trace::{ReadOptions, TraceInput, load};

use super::admin::rig::Rig;
use super::common::origin::Origin;
use super::common::strict::Message;
use super::common::{Client, FrontEnd};
use super::proxy_protocol::peers::Peer;

const ON: &str = "[compression]\nmin_size = 100\n";

/// What compresses well.
fn prose(bytes: usize) -> Vec<u8> {
    let line = b"All the world's a stage, and all the men and women merely players. ";
    line.iter().copied().cycle().take(bytes).collect()
}

/// An origin whose answers have as many bytes as the first segment of the path says, framed by the second: `length`, `chunked` or `close`,
/// and have this type. The third says what they have besides.
fn origin(media_type: &'static str) -> Origin {
    Origin::scripted(move |conn| {
        while let Some(request) = conn.request() {
            let mut path = request.target().split('/').skip(1);
            let bytes: usize = path.next().unwrap().parse().unwrap();
            let (framing, more) = (path.next().unwrap(), path.next().unwrap_or_default());
            let body = prose(bytes);
            let status = if more == "206" { "206 Partial Content" } else { "200 OK" };
            let more = match more {
                "no-transform" => "Cache-Control: no-transform\r\n",
                "coded" => "Content-Encoding: br\r\n",
                "digest" => "Repr-Digest: sha-256=:x=:\r\n",
                "206" => "Content-Range: bytes 0-999/5000\r\n",
                _ => "",
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nETag: \"x\"\r\n{more}");
            let is_head = request.method() == "HEAD";
            conn.write(head.as_bytes());
            match framing {
                "length" => {
                    conn.write(format!("Content-Length: {bytes}\r\n\r\n").as_bytes());
                    conn.write(if is_head { b"" } else { &body });
                }
                "chunked" => {
                    conn.write(b"Transfer-Encoding: chunked\r\n\r\n");
                    for piece in body.chunks(5000) {
                        conn.write(format!("{:x}\r\n", piece.len()).as_bytes());
                        conn.write(piece);
                        conn.write(b"\r\n");
                    }
                    conn.write(b"0\r\nX-Sum: 7\r\n\r\n");
                }
                _ => {
                    conn.write(b"Connection: close\r\n\r\n");
                    conn.write(&body);
                    return;
                }
            }
        }
    })
}

fn ask(client: &mut Client, method: &str, path: &str, accepted: &str) -> Message {
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {accepted}\r\n\r\n"));
    client.response(method)
}

fn decoded(answer: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    match answer.one("content-encoding") {
        Some("gzip") => flate2::read::GzDecoder::new(&answer.body[..]).read_to_end(&mut out).unwrap(),
        Some("zstd") => {
            zstd::stream::read::Decoder::new(&answer.body[..]).unwrap().read_to_end(&mut out).unwrap()
        }
        _ => return answer.body.clone(),
    };
    out
}

#[test]
fn clients_get_what_they_take_however_the_back_end_frames_it() {
    let origin = origin("text/plain; charset=utf-8");
    let front_end = FrontEnd::new(&[origin.address], ON);
    let mut client = front_end.client();
    for bytes in [100, 5000, 300_000, 3_000_000] {
        for framing in ["length", "chunked", "close"] {
            for (accepted, coding) in
                [("gzip", Some("gzip")), ("gzip, zstd", Some("zstd")), ("br", None), ("gzip;q=0", None)]
            {
                let answer = ask(&mut client, "GET", &format!("/{bytes}/{framing}"), accepted);
                assert_eq!(answer.one("content-encoding"), coding, "{bytes} {framing} {accepted}");
                assert!(decoded(&answer) == prose(bytes), "{bytes} {framing} {accepted}");
                assert_eq!(answer.all("vary"), ["Accept-Encoding"]);
                assert_eq!(answer.one("etag"), Some(if coding.is_some() { "W/\"x\"" } else { "\"x\"" }));
                assert!(coding.is_none() || answer.one("content-length").is_none());
                assert!(coding.is_none() || bytes < 5000 || answer.body.len() < bytes / 10);
            }
        }
    }
    for framing in ["length", "chunked"] {
        let path = format!("/1000/{framing}");
        let (got, head) = (ask(&mut client, "GET", &path, "gzip"), ask(&mut client, "HEAD", &path, "gzip"));
        for name in ["content-type", "content-encoding", "vary", "etag", "content-length"] {
            assert_eq!(head.all(name), got.all(name), "{name}");
        }
    }
}

#[test]
fn what_must_not_be_changed_or_is_not_worth_it_stays() {
    let origin = origin("application/json");
    let front_end = FrontEnd::new(&[origin.address], ON);
    let mut client = front_end.client();
    for path in [
        "/99/length",
        "/1000/length/no-transform",
        "/1000/length/coded",
        "/1000/length/206",
        "/1000/length/digest",
    ] {
        let answer = ask(&mut client, "GET", path, "gzip");
        assert!(answer.one("content-encoding") != Some("gzip") && answer.one("vary").is_none(), "{path}");
        assert_eq!(
            (answer.one("etag"), answer.one("content-length")),
            (Some("\"x\""), path.split('/').nth(1))
        );
    }
    client.send("GET /1000/length HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nCache-Control: no-transform\r\n\r\n");
    assert_eq!(client.response("GET").one("content-encoding"), None);
    let mut old = front_end.client();
    old.send("GET /1000/length HTTP/1.0\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    assert_eq!(old.response_or_end("GET").one("content-encoding"), None);
    let image = self::origin("image/png");
    front_end.reload(&format!("[[backend]]\naddress = \"{}\"\n{ON}", image.address));
    assert_eq!(ask(&mut client, "GET", "/1000/length", "gzip").one("content-encoding"), None);
    front_end.reload(&format!("[[backend]]\naddress = \"{}\"\n", origin.address));
    let off = ask(&mut client, "GET", "/1000/length", "gzip");
    assert_eq!((off.one("content-encoding"), off.one("vary")), (None, None), "by default there is none");
}

#[test]
fn pools_and_routes_differ() {
    let origin = origin("text/css");
    let text = format!(
        "[[backend]]\naddress = \"{0}\"\n[[backend]]\nname = \"b\"\naddress = \"{0}\"\npool = \"own\"\n\
         [[backend]]\nname = \"c\"\naddress = \"{0}\"\npool = \"none\"\n{ON}\
         [[pool]]\nname = \"own\"\n[pool.compression]\ncodings = [\"gzip\"]\n\
         [[pool]]\nname = \"none\"\n[pool.compression]\nenabled = false\n\
         [[route]]\nhost = \"own\"\npool = \"own\"\n[[route]]\nhost = \"none\"\npool = \"none\"\n\
         [[route]]\npath = \"/2000\"\ncompression = false\n",
        origin.address
    );
    let front_end = FrontEnd::from_text(&text);
    let mut client = front_end.client();
    let mut coding = |host: &str, path: &str| {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: zstd, gzip\r\n\r\n"));
        client.response("GET").one("content-encoding").map(str::to_owned)
    };
    assert_eq!(coding("a", "/1000/length").as_deref(), Some("zstd"));
    assert_eq!(coding("a", "/2000/length"), None);
    assert_eq!(coding("own", "/2000/length").as_deref(), Some("gzip"));
    assert_eq!(coding("own", "/1000/length"), None, "a table of its own has its own defaults");
    assert_eq!(coding("none", "/2000/length"), None);
}

#[test]
fn what_a_client_has_is_confirmed_by_the_name_that_it_knows() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page.html"), prose(5000)).unwrap();
    let root = folder.path().display();
    // It names pages strongly.
    let nginx = Peer::nginx(&format!("listen ADDRESS; root {root}; etag on; types {{ text/html html; }}"));
    let front_end = FrontEnd::new(&[nginx.address], ON);
    let mut client = front_end.client();
    let coded = ask(&mut client, "GET", "/page.html", "gzip");
    assert_eq!((coded.one("content-encoding"), decoded(&coded)), (Some("gzip"), prose(5000)));
    let plain = ask(&mut client, "GET", "/page.html", "identity");
    let (weak, strong) = (coded.one("etag").unwrap(), plain.one("etag").unwrap());
    assert_eq!(weak, format!("W/{strong}"));
    let mut again = |tag: &str| {
        let fields = format!("Host: a\r\nAccept-Encoding: gzip\r\nIf-None-Match: {tag}\r\n");
        client.send(format!("GET /page.html HTTP/1.1\r\n{fields}\r\n"));
        let answer = client.response("GET");
        assert_eq!(answer.status(), 304);
        (answer.one("etag").unwrap().to_owned(), answer.one("vary").map(str::to_owned))
    };
    assert_eq!(again(weak), (weak.to_owned(), Some("Accept-Encoding".to_owned())));
    assert_eq!(again(strong), (strong.to_owned(), None));
    let mut part = |fields: &str| {
        client.send(format!(
            "GET /page.html HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nRange: bytes=0-9\r\n{fields}\r\n"
        ));
        client.response("GET")
    };
    let of_page = part("");
    assert_eq!((of_page.status(), of_page.one("content-encoding")), (206, None));
    assert_eq!(of_page.body, prose(10));
    assert_eq!(part(&format!("If-Range: {weak}\r\n")).status(), 200, "what is compressed has no parts");
}

#[test]
fn curl_reads_it_over_http1_and_http2() {
    let origin = origin("text/html");
    let front_end = FrontEnd::new(&[origin.address], ON);
    for (path, bytes) in [("300000/chunked", 300_000), ("5000/length", 5000)] {
        let url = format!("http://{}/{path}", front_end.address(0));
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            let mut command = Command::new("curl");
            command.args(["-sS", "--max-time", "30", "--compressed", version]);
            let out = command.args(["-w", "%{stderr}%{size_download}", &url]).output().unwrap();
            assert!(out.status.success() && out.stdout == prose(bytes), "{version}");
            let loaded: usize = String::from_utf8(out.stderr).unwrap().parse().unwrap();
            assert!(loaded < bytes / 10, "{version}: {loaded}");
            let mut command = Command::new("curl");
            let out =
                command.args(["-sSI", "--max-time", "30", "--compressed", version, &url]).output().unwrap();
            let head = String::from_utf8(out.stdout).unwrap().to_ascii_lowercase();
            assert!(out.status.success() && head.contains("content-encoding: "), "{version}: {head}");
        }
    }
}

#[test]
fn metrics_log_and_policies_know_what_was_compressed() {
    let origin = origin("text/html");
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let rig = Rig::new(&[&origin], &format!("{ON}[access_log]\nfile = {log:?}\nformat = \"json\"\n"));
    let mut client = rig.client();
    let length = |answer: Message| answer.body.len() as f64;
    let bytes = [("/5000/length", "gzip"), ("/5000/chunked", "zstd"), ("/5000/length", "br")]
        .map(|(path, accepted)| length(ask(&mut client, "GET", path, accepted)));
    ask(&mut client, "HEAD", "/5000/length", "gzip");
    let metrics = rig.metrics_once(|m| m.sum("plimsoll_requests_total", "code=\"2xx\"") == 4.0);
    for coding in ["gzip", "zstd"] {
        let count = metrics.sum("plimsoll_compressed_responses_total", &format!("coding=\"{coding}\""));
        assert!((count - 1.0).abs() < 0.1, "{coding}");
    }
    assert!((metrics.get("plimsoll_compression_in_bytes_total") - 10_000.0).abs() < 0.1);
    assert!((metrics.get("plimsoll_compression_out_bytes_total") - bytes[0] - bytes[1]).abs() < 0.1);
    assert!(metrics.get("plimsoll_compression_under_way").abs() < 0.1);
    for path in ["/5000/length", "/5000/chunked"] {
        assert_eq!(rig.get(&format!("/why?target={path}")).json()["known_size_bytes"], 5000, "{path}");
    }
    rig.stop();
    let text = std::fs::read_to_string(&log).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let shown: Vec<_> = lines
        .map(|l| (l["bytes"].as_f64().unwrap(), l["coding"].clone(), l["original_bytes"].clone()))
        .collect();
    let none = || (serde_json::Value::Null, serde_json::Value::Null);
    let coded = |coding: &str| (coding.into(), 5000.into());
    let expected = [(bytes[0], coded("gzip")), (bytes[1], coded("zstd")), (5000.0, none()), (0.0, none())];
    assert_eq!(shown, expected.map(|(bytes, (coding, original))| (bytes, coding, original)));
    let trace = load(&[TraceInput::File(log)], &ReadOptions::default()).unwrap();
    let sizes: Vec<u64> = trace.open().unwrap().map(|record| record.unwrap().size_bytes).collect();
    assert!(
        sizes.iter().filter(|&&size| size == 5000).count() >= 3,
        "as a trace it has documents: {sizes:?}"
    );
}
