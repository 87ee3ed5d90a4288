//! Changes of protocol: WebSocket over HTTP/1.1 (RFC 6455) and HTTP/2 (RFC 8441).

use bytes::Bytes;
use h2::ext::Protocol;
use http::{Method, Request, StatusCode};

use super::{ask, connect, run, send};
use crate::common::FrontEnd;
use crate::common::origin::{Conn, Origin};

/// An origin that changes to a protocol in which every byte comes back, in upper case.
fn shouting() -> Origin {
    Origin::scripted(|conn: &mut Conn| {
        while let Some(request) = conn.request() {
            if request.one("upgrade") != Some("websocket") || request.target() == "/no" {
                conn.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
                continue;
            }
            assert_eq!(request.one("connection"), Some("Upgrade"));
            assert!(request.one("sec-websocket-key").is_some());
            let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
            conn.write(
                format!(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{accept}\r\n\r\nHI "
                )
                .as_bytes(),
            );
            let mut seen = conn.text().len();
            while conn.read() > 0 {
                let text = conn.text();
                conn.write(text[seen..].to_ascii_uppercase().as_bytes());
                seen = text.len();
            }
            return;
        }
    })
}

fn upgrade(path: &str, protocol: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: {protocol}\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

#[test]
fn a_websocket_over_http_1_1() {
    let origin = shouting();
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    client.send(upgrade("/no", "websocket"));
    assert_eq!(client.response("GET").status(), 403);
    client.send(upgrade("/chat", "WebSocket".to_ascii_lowercase().as_str()));
    let answer = client.any_response("GET");
    assert_eq!((answer.status(), answer.one("upgrade")), (101, Some("websocket")));
    assert_eq!(answer.one("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    client.read_until("HI ");
    for word in ["one ", "two ", "three "] {
        client.send(word);
        client.read_until(&word.to_ascii_uppercase());
    }
    client.finish();
    assert!(client.rest().0.ends_with(b"ONE TWO THREE "));
}

#[test]
fn what_is_not_configured_is_no_change_of_protocol() {
    let origin = shouting();
    let front_end = FrontEnd::new(&[origin.address], "[limits]\nupgrades = []\n");
    let mut client = front_end.client();
    client.send(upgrade("/chat", "websocket"));
    assert_eq!(client.response("GET").status(), 403);
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    for protocol in ["h2c", "foo", "websocket, h2c"] {
        client.send(upgrade("/chat", protocol));
        assert_eq!(client.response("GET").status(), 403, "{protocol}");
    }
    // Whoever did not ask gets no such answer.
    let eager =
        Origin::answering(|_| b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n".into());
    let front_end = FrontEnd::new(&[eager.address], "");
    let mut client = front_end.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response("GET").status(), 502);
}

fn websocket(path: &str) -> Request<()> {
    let mut request =
        Request::builder().method(Method::CONNECT).uri(format!("http://a{path}")).body(()).unwrap();
    request.extensions_mut().insert(Protocol::from_static("websocket"));
    request.headers_mut().insert("sec-websocket-version", "13".parse().unwrap());
    request
}

/// Talks over a WebSocket on a stream of HTTP/2.
async fn talk(front_end: &FrontEnd) {
    let client = connect(front_end.address(0)).await;
    // Its settings have come with the first answer.
    assert_eq!(ask(&client, super::request("GET", "/")).await.unwrap().status, 403);
    assert!(client.is_extended_connect_protocol_enabled());
    let (answer, mut stream) = send(&client, websocket("/chat"), false).await;
    let answer = answer.await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(!answer.headers().contains_key("sec-websocket-accept"));
    let (mut body, mut heard) = (answer.into_body(), Vec::new());
    for word in ["one ", "two ", "three "] {
        stream.send_data(Bytes::from(word), false).unwrap();
        while !heard.ends_with(word.to_ascii_uppercase().as_bytes()) {
            let piece = body.data().await.unwrap().unwrap();
            body.flow_control().release_capacity(piece.len()).unwrap();
            heard.extend_from_slice(&piece);
        }
    }
    stream.send_data(Bytes::new(), true).unwrap();
    while let Some(piece) = body.data().await {
        assert!(piece.unwrap().is_empty());
    }
    assert_eq!(heard, b"HI ONE TWO THREE ");
    // What follows an answer that changes nothing is no request.
    let (answer, mut stream) = send(&client, websocket("/no"), false).await;
    stream.send_data(Bytes::from("GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"), true).unwrap();
    assert_eq!(answer.await.unwrap().status(), StatusCode::FORBIDDEN);
}

#[test]
fn a_websocket_over_http_2() {
    let origin = shouting();
    let front_end = FrontEnd::new(&[origin.address], "");
    run(talk(&front_end));
    assert!(!origin.take_lines().iter().any(|line| line.contains("smuggled")));
    // With another front-end between, to which HTTP/2 is spoken.
    let outer =
        FrontEnd::from_text(&format!("[[backend]]\naddress = \"{}\"\nhttp2 = true\n", front_end.address(0)));
    run(talk(&outer));
    let mut client = outer.client();
    client.send(upgrade("/chat", "websocket"));
    let answer = client.any_response("GET");
    assert_eq!(answer.one("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    client.send("end");
    client.read_until("END");
    assert!(!origin.take_lines().iter().any(|line| line.contains("smuggled")));
}
