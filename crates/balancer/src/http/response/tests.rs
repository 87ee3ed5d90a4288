use super::*;

fn context() -> ResponseContext<'static> {
    ResponseContext {
        edits: &[],
        more: &[],
        fields: 100,
        to_head: false,
        upgrade: None,
        client: HttpVersion::Http11,
        keep_client: true,
        compression: None,
        date: b"now",
    }
}

fn run(head: &str, context: &ResponseContext<'_>) -> Result<(ResponseHead, String), BadResponse> {
    let mut out = Vec::new();
    let head = rewrite(head.as_bytes(), context, &mut out)?;
    Ok((head, String::from_utf8(out).unwrap()))
}

#[test]
fn framing_by_status_method_and_fields() {
    let framing =
        |head: &str, to_head| run(head, &ResponseContext { to_head, ..context() }).unwrap().0.framing;
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(framing(ok, false), Framing::Length(5));
    assert_eq!(framing(ok, true), Framing::None);
    assert_eq!(framing("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false), Framing::None);
    assert_eq!(framing("HTTP/1.1 204 No Content\r\n\r\n", false), Framing::None);
    assert_eq!(framing("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", false), Framing::Chunked);
    assert_eq!(framing("HTTP/1.1 200 OK\r\n\r\n", false), Framing::UntilClose);
    assert_eq!(framing("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false), Framing::None);
}

#[test]
fn what_the_back_end_tells_of_its_cache_is_kept_and_passed_on() {
    let text = "HTTP/1.1 200 OK\r\nAge: 7\r\nX-Cache: MISS\r\nContent-Length: 0\r\n\r\n";
    let (head, out) = run(text, &context()).unwrap();
    assert!(head.hit == Some(false) && out.contains("X-Cache: MISS\r\n") && out.contains("Age: 7\r\n"));
    assert_eq!(run("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", &context()).unwrap().0.hit, None);
}

#[test]
fn what_the_client_gets() {
    let (head, out) = run(
        "HTTP/1.1 200 OK\r\nServer: s\r\nKeep-Alive: 5\r\nConnection: x-hop\r\nX-Hop: 1\r\nContent-Length: 5\r\n\r\n",
        &context(),
    )
    .unwrap();
    assert_eq!(out, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 5\r\nDate: now\r\n\r\n");
    assert!(head.keep_backend && head.keep_client);
    let (head, out) = run("HTTP/1.0 200 \r\nDate: d\r\n\r\n", &context()).unwrap();
    assert_eq!(out, "HTTP/1.1 200 \r\nDate: d\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert!(!head.keep_backend && head.chunked_out);
    let old = ResponseContext { client: HttpVersion::Http10, ..context() };
    let (head, out) = run("HTTP/1.1 200 OK\r\nDate: d\r\nTransfer-Encoding: chunked\r\n\r\n", &old).unwrap();
    assert_eq!(out, "HTTP/1.1 200 OK\r\nDate: d\r\nConnection: close\r\n\r\n");
    assert!(!head.keep_client && !head.chunked_out);
    let (_, out) = run("HTTP/1.1 100 Continue\r\n\r\n", &context()).unwrap();
    assert_eq!(out, "HTTP/1.1 100 Continue\r\n\r\n");
    let (_, out) = run("HTTP/1.1 304 N\r\nDate: d\r\nContent-Length: 9\r\n\r\n", &context()).unwrap();
    assert_eq!(out, "HTTP/1.1 304 N\r\nDate: d\r\nContent-Length: 9\r\n\r\n");
}

#[test]
fn what_is_coded_says_so() {
    let text =
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n[compression]\n";
    let config = plimsoll_config::Config::parse(text, "test.toml").unwrap().compression.unwrap();
    let of = |coding, to_head, fields: &str| {
        let compression =
            Some(ResponseCompression { config: &config, coding, has_room: &|| true, request: b"" });
        let context = ResponseContext { compression, to_head, ..context() };
        let begin = "HTTP/1.1 200 OK\r\nDate: d\r\nContent-Type: text/css\r\n";
        let (head, out) = run(&format!("{begin}{fields}\r\n"), &context).unwrap();
        (head.coding, out.strip_prefix(begin).unwrap().to_owned())
    };
    let gzip = Some(ContentCoding::Gzip);
    let fields = "Content-Length: 5000\r\nETag: \"a\"\r\nAccept-Ranges: bytes\r\n";
    let coded = "ETag: W/\"a\"\r\nVary: Accept-Encoding\r\nContent-Encoding: gzip\r\n";
    assert_eq!(of(gzip, false, fields), (gzip, format!("{coded}Transfer-Encoding: chunked\r\n\r\n")));
    assert_eq!(of(gzip, true, fields), (gzip, format!("{coded}\r\n")), "to HEAD the same");
    let plain =
        "ETag: \"a\"\r\nAccept-Ranges: bytes\r\nVary: Accept-Encoding\r\nContent-Length: 5000\r\n\r\n";
    assert_eq!(of(None, false, fields), (None, plain.to_owned()));
    let (_, out) = of(gzip, false, "Vary: cookie, accept-encoding\r\nETag: W/\"a\"\r\n");
    assert!(out.matches("ary:").count() == 1 && out.contains("ETag: W/\"a\"\r\n"), "{out}");
    assert_eq!(of(gzip, false, "Content-Length: 5\r\n"), (None, "Content-Length: 5\r\n\r\n".to_owned()));
}

#[test]
fn only_the_protocol_that_was_asked_for() {
    let context = ResponseContext { upgrade: Some("websocket"), ..context() };
    let of = |told: &str| {
        let head = format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n{told}\r\n");
        run(&head, &context).map(|(_, out)| out)
    };
    assert!(of("Upgrade: WebSocket\r\n").unwrap().contains("Upgrade: WebSocket\r\n"));
    for told in ["Upgrade: h2c\r\n", "Upgrade: websocket, h2c\r\n", ""] {
        assert!(of(told).is_err(), "{told}");
    }
}

#[test]
fn what_is_not_passed_on() {
    for bad in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5,\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity, chunked\r\n\r\n",
        "HTTP/1.1 101 Switching\r\n\r\n",
        "HTTP/1.1 099 X\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\n A: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "hello\r\n\r\n",
    ] {
        assert!(run(bad, &context()).is_err(), "{bad:?}");
    }
}

#[test]
fn what_can_be_read_in_one_way_only() {
    let of = |head: &str| {
        let (head, out) = run(head, &context()).unwrap();
        (out, head.framing, head.keep_backend)
    };
    let ok = |fields: &str| format!("HTTP/1.1 200 OK\r\nDate: d\r\n{fields}\r\n");
    let five = ok("Content-Length: 5\r\n");
    for fields in ["Content-Length: 5, 5\r\n", "Content-Length: 5\r\nContent-Length: 5\r\n"] {
        assert_eq!(of(&ok(fields)), (five.clone(), Framing::Length(5), true), "{fields}");
    }
    assert_eq!(
        of("HTTP/1.1 200 OK\nDate: d\nContent-Length: 5\n\n"),
        (five.clone(), Framing::Length(5), true)
    );
    assert_eq!(
        of("HTTP/1.3 200 OK\r\nDate: d\r\nContent-Length: 5\r\n\r\n"),
        (five, Framing::Length(5), true)
    );
    let folded = "A: b\r\n c\x01\r\nContent-Length: 5\r\n";
    assert_eq!(of(&ok(folded)), (ok("A: b   c\r\nContent-Length: 5\r\n"), Framing::Length(5), true));
    let (out, framing, _) = of(&ok("Transfer-Encoding: identity\r\nContent-Length: 5\r\n"));
    assert_eq!((out, framing), (ok("Content-Length: 5\r\n"), Framing::Length(5)));
    let chunked = ok("Transfer-Encoding: chunked\r\n");
    let doubtful = [
        ok("Content-Length: 9\r\nTransfer-Encoding: chunked\r\n"),
        ok("Transfer-Encoding: chunked\r\nContent-Length: 9\r\n"),
        chunked.replace("HTTP/1.1", "HTTP/1.0").replace("\r\n\r\n", "\r\nConnection: keep-alive\r\n\r\n"),
    ];
    for head in doubtful {
        assert_eq!(of(&head), (chunked.clone(), Framing::Chunked, false), "{head}");
    }
    for status in [600, 999] {
        let (head, out) =
            run(&format!("HTTP/1.1 {status} X\r\nDate: d\r\nContent-Length: 0\r\n\r\n"), &context()).unwrap();
        assert!(head.status == status && out.starts_with(&format!("HTTP/1.1 {status} X\r\n")));
    }
}
