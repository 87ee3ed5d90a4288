//! Responses that are broken: the client sees that they are, and nobody else sees anything of them.

use super::common::strict::response;
use super::common::{End, FrontEnd};
use super::responses::{Script, Then, script, scripted};

/// What cannot be passed on at all.
const HEADS: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello!",
    "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: a\rContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 abc OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 a\0b\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "ICY 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "garbage",
    "\0\x01\x02\u{ff}\r\n\r\n",
    "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "",
    "HTTP/1.1 200 OK\r\nContent-Le",
    // Framing that is seen to be wrong before anything has gone out.
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloo\r\n0\r\n\r\n",
];

/// Responses that cannot be passed on as they are. With `true` the head is bad, so that nothing but 502 may be seen.
fn broken() -> Vec<(bool, Script)> {
    use Then::{Close, Keep, Reset};
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(300));
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "X: yyyyyyyyyyyyyyyyyyyy\r\n".repeat(20_000));
    let mut all = Vec::new();
    let heads = HEADS.iter().copied().chain([long.as_str(), &many, &endless]);
    for head in heads {
        all.push((true, script(&[head], Close)));
    }
    all.push((true, script(&["HTTP/1.1 200 OK\r\nContent-"], Reset)));
    all.push((true, script(&[""], Reset)));
    let begun = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello";
    for then in [Close, Reset] {
        all.push((false, script(&[begun], then)));
        all.push((false, script(&[begun, "hello"], then)));
        all.push((false, script(&[chunked], then)));
        all.push((false, script(&[chunked, "\r\n"], then)));
        all.push((false, script(&[chunked, "\r\n0\r\n"], then)));
        all.push((false, script(&[chunked, "\r\n0\r\nX: y\r\n"], then)));
    }
    all.push((false, script(&["HTTP/1.1 200 OK\r\n\r\nhello"], Reset)));
    for bad in
        ["X\r\n0\r\n\r\n", "\r\nzz\r\n", "\r\n0\r\nBad Name: x\r\n\r\n", "\r\n0\r\nContent-Length: 4\r\n\r\n"]
    {
        all.push((false, script(&[chunked, bad], Keep)));
    }
    all
}

#[test]
fn broken_responses_are_seen_to_be_broken() {
    let cases = broken();
    let bad_head: Vec<bool> = cases.iter().map(|(bad_head, _)| *bad_head).collect();
    let shown: Vec<String> = cases
        .iter()
        .map(|(_, s)| {
            s.pieces
                .iter()
                .map(|p| String::from_utf8_lossy(&p[..p.len().min(80)]).into_owned())
                .collect::<Vec<_>>()
                .join("|")
        })
        .collect();
    let origin = scripted(cases.into_iter().map(|(_, script)| script).collect());
    let front_end = FrontEnd::new(&[origin.address], "[limits]\nretries = 1\n");
    for (n, bad_head) in bad_head.iter().enumerate() {
        for version in ["1.1", "1.0"] {
            // POST, so that nothing is repeated.
            let text = format!(
                "POST /{n} HTTP/{version}\r\nHost: a\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"
            );
            let mut client = front_end.client();
            // In one piece: a second write would take the news of a reset away from the reading.
            client.send(format!("{text}GET /after HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
            let (answer, end) = client.rest();
            if *bad_head {
                let (first, _) = response(&answer, false, true).unwrap().unwrap();
                assert_eq!(first.status(), 502, "{n} {version}: {}", shown[n]);
            } else {
                // 502 where the end came before the head was read.
                let whole = response(&answer, false, false).ok().flatten().map(|(m, _)| m.status());
                let seen = whole == Some(502) || (whole.is_none() && end == End::Reset);
                assert!(seen, "{n} {version} {}: {end:?} {whole:?}", shown[n]);
            }
            assert!(!answer.windows(6).any(|w| w == b"poison"), "{n}: {}", shown[n]);
            // Whoever comes next gets its own answer.
            let next = front_end.client().get(&format!("/next-{n}"));
            assert_eq!(next.body, format!("GET /next-{n}\n").as_bytes(), "{n}: {}", shown[n]);
        }
    }
}
