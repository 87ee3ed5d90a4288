use plimsoll_config::TargetKey;

use super::super::placed::mark_placed;
use super::*;

fn run(head: &str, trusted: bool) -> Result<(RequestHead, String), RequestRefusal> {
    let context = RequestContext { trusted, ..RequestContext::plain() };
    let mut out = Vec::new();
    let head = rewrite(head.as_bytes(), &context, &mut out)?;
    Ok((head, String::from_utf8(out).unwrap()))
}

const OWN: &str = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\n";

#[test]
fn an_ordinary_request() {
    let (head, out) =
        run("GET /x?y HTTP/1.1\r\nHost: a\r\nUser-Agent: u\r\nReferer: r\r\n\r\n", false).unwrap();
    assert_eq!(out, format!("GET /x?y HTTP/1.1\r\nHost: a\r\nUser-Agent: u\r\nReferer: r\r\n{OWN}\r\n"));
    assert_eq!(head.target, TargetId::from_key(b"/x?y"));
    assert_eq!(head.line.of(out.as_bytes()), b"GET /x?y");
    assert_eq!(head.user_agent.of(out.as_bytes()), b"u");
    assert_eq!(head.referer.of(out.as_bytes()), b"r");
    assert!(head.keep_alive && head.is_safe && head.is_get && !head.is_head);
    assert_eq!(head.framing, Framing::None);
}

#[test]
fn fields_of_one_connection_stay_behind() {
    let (_, out) = run(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X-Secret\r\nX-Secret: 1\r\nTE: trailers\r\n\
         Keep-Alive: 5\r\nProxy-Connection: close\r\nUpgrade: h2c\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n",
        false,
    )
    .unwrap();
    assert_eq!(out, format!("GET / HTTP/1.1\r\nHost: a\r\n{OWN}\r\n"));
}

#[test]
fn a_trusted_proxy_is_believed() {
    let (_, out) = run(
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: https\r\n\
         X-Forwarded-Host: real\r\n\r\n",
        true,
    )
    .unwrap();
    assert!(out.contains("X-Forwarded-For: 1.1.1.1, 192.0.2.1\r\n"), "{out}");
    assert!(
        out.contains("X-Forwarded-Proto: https\r\n") && out.contains("X-Forwarded-Host: real\r\n"),
        "{out}"
    );
}

#[test]
fn what_looks_like_forwarding_is_believed_from_nobody_else() {
    let head = "GET / HTTP/1.1\r\nHost: a\r\nForwarded: for=6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\n\r\n";
    let (_, out) = run(head, false).unwrap();
    assert!(!out.contains("6.6.6.6"), "{out}");
    let (_, out) = run(head, true).unwrap();
    assert!(out.contains("Forwarded: for=6.6.6.6\r\n") && !out.contains("X_For"), "{out}");
    for name in
        ["X-Forwarded-Port", "X-Forwarded-Ssl", "x-forwarded-prefix", "X-Forwarded-Server", "X-Real-IP"]
    {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{name}: spoofed\r\n\r\n");
        let passed = |trusted| run(&head, trusted).unwrap().1.contains("spoofed");
        assert!(passed(true) && !passed(false), "{name}");
        let head = head.replacen('-', "_", 1);
        let passed = |trusted| run(&head, trusted).unwrap().1.contains("spoofed");
        assert!(!passed(true) && !passed(false), "{name} with an underscore");
    }
}

#[test]
fn bodies_are_framed_anew() {
    let (head, out) = run("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 007\r\n\r\n", false).unwrap();
    assert_eq!(head.framing, Framing::Length(7));
    assert!(out.ends_with("Content-Length: 7\r\n\r\n"), "{out}");
    let (head, out) = run("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n", false).unwrap();
    assert_eq!(head.framing, Framing::Chunked);
    assert!(out.ends_with("Transfer-Encoding: chunked\r\n\r\n"), "{out}");
    let (head, out) = run("POST / HTTP/1.1\r\nHost: a\r\n\r\n", false).unwrap();
    assert_eq!(head.framing, Framing::None);
    assert!(out.ends_with("Content-Length: 0\r\n\r\n"), "{out}");
    let nominated =
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: Content-Length, Host\r\nContent-Length: 3\r\n\r\n";
    let (_, out) = run(nominated, false).unwrap();
    assert!(out.contains("Host: a\r\n") && out.ends_with("Content-Length: 3\r\n\r\n"), "{out}");
}

#[test]
fn versions_and_keeping_the_connection() {
    let kept = |head: &str| run(head, false).unwrap().0.keep_alive;
    assert!(!kept("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    assert!(!kept("GET / HTTP/1.0\r\n\r\n"));
    assert!(kept("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
    let (_, out) = run("GET / HTTP/1.0\r\n\r\n", false).unwrap();
    assert!(out.starts_with("GET / HTTP/1.1\r\nHost: \r\n") && !out.contains("X-Forwarded-Host"), "{out}");
}

#[test]
fn absolute_form_names_the_host() {
    let (head, out) = run("GET http://a:80/x HTTP/1.1\r\nHost: A\r\n\r\n", false).unwrap();
    assert!(out.starts_with("GET /x HTTP/1.1\r\nHost: a:80\r\n"), "{out}");
    assert_eq!(head.target, TargetId::from_key(b"/x"));
    let (_, out) = run("GET http://a?q HTTP/1.1\r\nHost: a\r\n\r\n", false).unwrap();
    assert!(out.starts_with("GET /?q HTTP/1.1\r\n"), "{out}");
}

#[test]
fn max_forwards_is_counted_down() {
    let (_, out) = run("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 3\r\n\r\n", false).unwrap();
    assert!(out.contains("Max-Forwards: 2\r\n"), "{out}");
    assert_eq!(
        run("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n", false).unwrap_err().status,
        204
    );
}

#[test]
fn what_is_refused() {
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(60));
    for (status, lines) in [
        (400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        (
            400,
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
        ),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n"),
        (501, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"),
        (501, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n"),
        (501, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: , chunked\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked, chunked\r\n\r\n"),
        (400, "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
        (400, "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
        (400, "GET \u{e9} HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "GET /\u{e9}#a HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "GET http://a/\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n"),
        (505, "GET / HTTP/1.20\r\nHost: a\r\n\r\n"),
        (400, "GE(T / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
        (400, "GET /\r\n\r\n"),
        (417, "POST / HTTP/1.1\r\nHost: a\r\nExpect: a-miracle\r\n\r\n"),
        (501, "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n"),
        (501, "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (431, &many),
    ] {
        match run(lines, false) {
            Err(refusal) => assert_eq!(refusal.status, status, "{lines:?}: {refusal:?}"),
            Ok((_, out)) => panic!("{lines:?} was passed on as {out:?}"),
        }
    }
}

#[test]
fn what_a_back_end_may_read_as_it_came() {
    let plain = |fields: &str, trusted: bool| {
        let head = format!("GET /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let context = RequestContext {
            key: &TargetKey::Path,
            fields: 100,
            peer: b"10.0.0.9",
            trusted,
            ..RequestContext::plain()
        };
        rewrite(head.as_bytes(), &context, &mut Vec::new()).unwrap().is_plain
    };
    for good in [
        "",
        "Accept: */*\r\nCookie: a=b\r\n",
        "Connection: keep-alive\r\nKeep-Alive: 5\r\n",
        "Connection: close\r\n",
    ] {
        assert!(plain(good, false), "{good}");
    }
    for bad in [
        "Content-Length: 0\r\n",
        "Content-Length: 00\r\n",
        "Expect: 100-continue\r\n",
        "Upgrade: h2c\r\n",
        "TE: trailers\r\n",
        "Max-Forwards: 3\r\n",
        "X_Forwarded-For: 127.0.0.1\r\n",
        "Connection: x-secret\r\nX-Secret: 1\r\n",
    ] {
        assert!(!plain(bad, true), "{bad}");
    }
    assert!(plain("X-Forwarded-For: 10.1.1.1\r\n", true) && !plain("X-Forwarded-For: 10.1.1.1\r\n", false));
    let absolute = b"GET http://h/a HTTP/1.1\r\nHost: h\r\n\r\n";
    let context =
        RequestContext { key: &TargetKey::Path, fields: 100, peer: b"10.0.0.9", ..RequestContext::plain() };
    assert!(!rewrite(absolute, &context, &mut Vec::new()).unwrap().is_plain);
}

#[test]
fn a_request_is_marked_once() {
    let mark = |fields: &str| {
        let context = RequestContext {
            key: &TargetKey::Path,
            fields: 100,
            peer: b"10.0.0.9",
            ..RequestContext::plain()
        };
        let bytes = format!("GET /plimsoll-placed-by: HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let mut out = Vec::new();
        rewrite(bytes.as_bytes(), &context, &mut out).unwrap();
        mark_placed("b1", &mut out).then(|| String::from_utf8(out).unwrap())
    };
    let marked = mark("X: Plimsoll-Placed-By: no\r\n").unwrap();
    assert!(marked.ends_with("\r\nPlimsoll-Placed-By: b1\r\n\r\n"), "{marked}");
    let mut again = marked.into_bytes();
    assert!(!mark_placed("b2", &mut again));
    assert_eq!(mark("PLIMSOLL-placed-by: x\r\n"), None);
}

#[test]
fn what_was_written_anew_is_not_plain() {
    for (raw, line, plain) in [
        ("GET /\u{e9}?<a> HTTP/1.1", "GET /%C3%A9?%3Ca%3E", false),
        ("GET /%C3%A9 HTTP/1.3", "GET /%C3%A9", false),
        ("GET /%C3%A9 HTTP/1.1", "GET /%C3%A9", true),
    ] {
        let (head, out) = run(&format!("{raw}\r\nHost: a\r\n\r\n"), false).unwrap();
        assert!(out.starts_with(&format!("{line} HTTP/1.1\r\nHost: a\r\n")), "{out}");
        assert_eq!((head.line.end as usize, head.is_plain), (line.len(), plain), "{raw}");
    }
    let target =
        |line: &str| run(&format!("GET {line} HTTP/1.1\r\nHost: a\r\n\r\n"), false).unwrap().0.target;
    assert_eq!(target("/\u{e9}"), target("/%C3%A9"), "the same document");
}
