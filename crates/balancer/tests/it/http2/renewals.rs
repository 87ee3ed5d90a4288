//! Reloads and new certificates while streams and WebSockets are open.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use h2::client::SendRequest;
use plimsoll_testkit::{IssuedFiles, TestAuthority};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Builder, ask, read, request, run, send, send_piece};
use crate::common::FrontEnd;
use crate::common::origin::{Conn, Origin};

const RELOADS: usize = 50;
const CERTIFICATES: usize = 20;
const STREAMS: usize = 8;
const SOCKETS: usize = 4;
/// Where TLS is spoken.
const SECURE: usize = 2;

/// An origin that answers with the body that it gets, and after a change of protocol with every byte in upper case.
fn origin() -> Origin {
    Origin::scripted(|conn: &mut Conn| {
        while let Some(request) = conn.request() {
            if request.one("upgrade").is_none() {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.body.len());
                conn.write(&[head.as_bytes(), &request.body].concat());
                continue;
            }
            conn.write(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
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

async fn secured(authority: &TestAuthority, at: SocketAddr, protocol: &str) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.file()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(at).await.unwrap();
    let name = ServerName::try_from("site.example").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

async fn by_http2(stream: TlsStream<TcpStream>) -> SendRequest<Bytes> {
    let (client, connection) = Builder::new().handshake(stream).await.unwrap();
    tokio::task::spawn_local(async move { drop(connection.await) });
    client
}

async fn web_socket(mut stream: TlsStream<TcpStream>) -> TlsStream<TcpStream> {
    let upgrade = "GET /chat HTTP/1.1\r\nHost: site.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", head.escape_ascii());
    stream
}

/// What is in force after so many reloads: policies, limits and back-ends differ from each to the next.
fn text(origins: &[Origin], site: &IssuedFiles, n: usize) -> String {
    let policy = ["lard_r", "round_robin", "least_connections"][n % 3];
    let backends: String = origins
        .iter()
        .take(if n.is_multiple_of(2) { 2 } else { 1 })
        .map(|origin| format!("[[backend]]\naddress = \"{}\"\nweight = {}\n", origin.address, 1 + n % 4))
        .collect();
    format!(
        "{backends}[[listener]]\naddress = \"127.0.0.2:0\"\ntls = true\n[[certificate]]\nchain = {:?}\nkey = {:?}\n\
         [policy]\nname = \"{policy}\"\n[limits]\nretries = {}\n",
        site.chain,
        site.key,
        n % 5
    )
}

#[test]
fn reloads_and_new_certificates_lose_no_stream_and_no_web_socket() {
    let (authority, origins) = (TestAuthority::new(), [origin(), origin()]);
    let mut site = authority.issue("site", &["site.example"]);
    let front_end = FrontEnd::from_text(&text(&origins, &site, 0));
    let at = front_end.address(SECURE);
    run(async {
        let client = by_http2(secured(&authority, at, "h2").await).await;
        let (mut streams, mut sockets) = (Vec::new(), Vec::new());
        for n in 0..STREAMS {
            streams.push(send(&client, request("POST", &format!("/{n}")), false).await);
        }
        for _ in 0..SOCKETS {
            sockets.push(web_socket(secured(&authority, at, "http/1.1").await).await);
        }
        let mut expected = Vec::new();
        for n in 1..=RELOADS {
            // Spread evenly over the reloads.
            if n * CERTIFICATES / RELOADS != (n - 1) * CERTIFICATES / RELOADS {
                site = authority.issue("site", &["site.example"]);
            }
            front_end.reload(&text(&origins, &site, n));
            // Small and large pieces, so that some of it passes at once.
            let piece = vec![b'a' + n as u8; if n % 3 == 0 { 50_000 } else { 10 }];
            for (_, body) in &mut streams {
                send_piece(body, Bytes::from(piece.clone())).await;
            }
            expected.extend_from_slice(&piece);
            for socket in &mut sockets {
                let (word, mut heard) = (format!("word{n:03}"), [0; 7]);
                socket.write_all(word.as_bytes()).await.unwrap();
                socket.read_exact(&mut heard).await.unwrap();
                assert_eq!(heard, *word.to_ascii_uppercase().as_bytes());
            }
            assert_eq!(ask(&client, request("GET", "/beside")).await.unwrap().status, 200);
            // A new client gets the new certificate.
            let fresh = secured(&authority, at, "h2").await;
            let shown = fresh.get_ref().1.peer_certificates().unwrap()[0].clone();
            assert_eq!(shown, CertificateDer::from_pem_file(&site.chain).unwrap());
            assert_eq!(ask(&by_http2(fresh).await, request("GET", "/new")).await.unwrap().status, 200);
        }
        for (answer, mut body) in streams {
            body.send_data(Bytes::new(), true).unwrap();
            let answer = read(answer.await.unwrap()).await.unwrap();
            assert_eq!((answer.status, answer.body == expected), (http::StatusCode::OK, true));
        }
    });
}
