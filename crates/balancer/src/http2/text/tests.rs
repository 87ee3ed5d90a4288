use super::*;

fn request(build: impl FnOnce(request::Builder) -> request::Builder) -> request::Parts {
    build(Request::builder()).body(()).unwrap().into_parts().0
}

fn written(head: &request::Parts, ends: bool) -> Result<(String, TextFraming), &'static str> {
    let mut out = Vec::new();
    let framing = write_request(head, ends, &mut out)?;
    Ok((String::from_utf8(out).unwrap(), framing))
}

#[test]
fn requests_as_http_1_1_writes_them() {
    let head =
        request(|r| r.uri("https://a.example:8443/b?c").header("x-a", "1").header("host", "a.example:8443"));
    let text = "GET /b?c HTTP/1.1\r\nHost: a.example:8443\r\nx-a: 1\r\n\r\n";
    assert_eq!(written(&head, true), Ok((text.to_owned(), TextFraming::None)));
    let head = request(|r| r.method("POST").uri("http://a/").header("cookie", "a=b").header("cookie", "c=d"));
    let text = "POST / HTTP/1.1\r\nHost: a\r\nCookie: a=b; c=d\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(written(&head, false), Ok((text.to_owned(), TextFraming::Chunked)));
    let head = request(|r| r.method("PUT").uri("http://a/").header("content-length", "3"));
    assert_eq!(written(&head, false).unwrap().1, TextFraming::Plain);
    let head = request(|r| r.method("CONNECT").uri("a:443"));
    assert!(written(&head, true).unwrap().0.starts_with("CONNECT a:443 HTTP/1.1\r\n"));
}

#[test]
fn what_belongs_to_a_connection_is_refused() {
    for name in ["connection", "transfer-encoding", "keep-alive", "upgrade", "proxy-connection"] {
        let head = request(|r| r.uri("http://a/").header(name, "x"));
        assert!(written(&head, true).is_err(), "{name}");
        let head = Response::builder().header(name, "x").body(()).unwrap().into_parts().0;
        assert!(write_response(&head, (true, false), &mut Vec::new()).is_err(), "{name}");
    }
    // Two hosts, of which the front-end refuses one.
    let (text, _) = written(&request(|r| r.uri("http://a/").header("host", "b")), true).unwrap();
    assert!(text.contains("Host: a\r\n") && text.contains("host: b\r\n"), "{text}");
}

#[test]
fn a_change_of_protocol() {
    let mut head = request(|r| r.method("CONNECT").uri("https://a/chat").header("sec-websocket-key", "mine"));
    head.extensions.insert(Protocol::from_static("websocket"));
    let (text, framing) = written(&head, false).unwrap();
    assert_eq!(framing, TextFraming::Tunnel);
    assert!(
        text.starts_with("GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"),
        "{text}"
    );
    assert!(!text.contains("mine"), "{text}");
    for bad in ["", "a b", "a\u{e9}"] {
        head.extensions.insert(Protocol::from(bad));
        assert!(written(&head, false).is_err(), "{bad}");
    }
    let text = b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let read = read_request(&Bytes::from_static(text), "http").unwrap();
    assert_eq!((read.head.method(), read.framing), (&Method::CONNECT, TextFraming::Tunnel));
    let key = read.head.extensions().get::<WebSocketKey>().unwrap();
    // The example of RFC 6455, section 1.3.
    assert_eq!(key.accept(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[test]
fn requests_read_back() {
    let text =
        b"POST /b?c HTTP/1.1\r\nHost: a.example\r\nX-A: 1\r\nConnection: close\r\nContent-Length: 12\r\n\r\n";
    let ReadHead { head, framing, length } = read_request(&Bytes::from_static(text), "https").unwrap();
    assert_eq!((head.method(), head.uri()), (&Method::POST, &Uri::from_static("https://a.example/b?c")));
    assert_eq!(
        (framing, length, &head.headers()["x-a"]),
        (TextFraming::Plain, 12, &HeaderValue::from_static("1"))
    );
    assert_eq!(head.headers()["te"], "trailers");
    assert!(!head.headers().contains_key("connection") && !head.headers().contains_key("host"));
}

#[test]
fn responses_there_and_back() {
    let read = |text: &'static str, to_head| read_response(&text.into(), to_head).unwrap();
    let chunked = read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n", false);
    assert_eq!((chunked.framing, chunked.head.headers().len()), (TextFraming::Chunked, 1));
    let told = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n";
    assert_eq!((read(told, false).framing, read(told, false).length), (TextFraming::Plain, 7));
    assert_eq!(read(told, true).framing, TextFraming::None);
    assert_eq!(read("HTTP/1.1 304 X\r\nContent-Length: 7\r\n\r\n", false).framing, TextFraming::None);
    assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false).framing, TextFraming::None);
    assert!(read_response(&Bytes::from_static(b"HTTP/1.1 200 OK\r\nA: b\r\n"), false).is_none());
    let write = |response: http::response::Builder, ends| {
        let mut out = Vec::new();
        let framing = write_response(&response.body(()).unwrap().into_parts().0, ends, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), framing)
    };
    let (text, framing) = write(Response::builder(), (true, false));
    assert_eq!((&text[..], framing), ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", TextFraming::None));
    let (text, framing) = write(Response::builder().header("a", "b"), (false, false));
    assert_eq!(
        (&text[..], framing),
        ("HTTP/1.1 200 OK\r\na: b\r\nTransfer-Encoding: chunked\r\n\r\n", TextFraming::Chunked)
    );
    let (text, _) = write(Response::builder().header("content-length", "9"), (true, true));
    assert_eq!(text, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n");
    let (text, _) = write(Response::builder().status(103), (true, true));
    assert_eq!(text, "HTTP/1.1 103 Early Hints\r\n\r\n");
}

#[test]
fn an_end_of_a_call_has_no_length() {
    let read = |fields: &str| {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n");
        read_response(&text.into(), false).unwrap().head.headers().contains_key(CONTENT_LENGTH)
    };
    assert_eq!((read("grpc-status: 5\r\n"), read("x: 5\r\n")), (false, true));
}

#[test]
fn a_long_head_is_not_kept_for_a_field() {
    let value = |fields: usize| {
        let text = Bytes::from(format!(
            "HTTP/1.1 200 OK\r\nx: value\r\n{}\r\n",
            format!("a: {}\r\n", "b".repeat(30)).repeat(fields)
        ));
        let memory = text.as_ptr_range();
        let head = read_response(&text, false).unwrap().head;
        let value = &head.headers()["x"];
        assert_eq!(value, "value");
        memory.contains(&value.as_bytes().as_ptr())
    };
    assert_eq!((value(10), value(120)), (true, false));
}

#[test]
fn trailers_there_and_back() {
    let read = |text: &'static str| read_trailers(&text.into());
    let fields = read("Grpc-Status: 0\r\nX-A: b\r\n\r\n").unwrap();
    let mut out = Vec::new();
    write_trailers(&fields, &mut out).unwrap();
    assert_eq!(out, b"grpc-status: 0\r\nx-a: b\r\n");
    assert!(read("\r\n").unwrap().is_empty() && read("no field\r\n\r\n").is_none());
}
