//! The least that a front-end for HTTP/2 under TLS can do with the crates that ours is made of (`h2`, `rustls`, `tokio`): it asks a back-end by
//! HTTP/1.1 on a kept connection, waits for the whole answer, and sends it on. It checks, bounds, times and counts nothing.
//! `bare_http2 PORT CHAIN KEY BACKEND...` listens at that port, with this certificate, until it is killed. `benches/proxy/http2.py` measures it.
#![allow(clippy::unwrap_used, reason = "a measurement, not a service")]

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};
use h2::RecvStream;
use h2::server::SendResponse;
use http::{Request, Response};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;

/// Back-ends, and connections to them that are free.
struct Backends {
    addresses: Vec<String>,
    turn: Cell<usize>,
    free: RefCell<Vec<TcpStream>>,
}

impl Backends {
    async fn connection(&self) -> io::Result<TcpStream> {
        if let Some(free) = self.free.borrow_mut().pop() {
            return Ok(free);
        }
        let turn = self.turn.replace(self.turn.get() + 1);
        let stream = TcpStream::connect(&self.addresses[turn % self.addresses.len()]).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// The content of the answer to GET of this path.
    async fn get(&self, path: &str) -> io::Result<Bytes> {
        let mut stream = self.connection().await?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n").as_bytes()).await?;
        let mut input = BytesMut::with_capacity(8192);
        let (head_bytes, content_bytes) = loop {
            if stream.read_buf(&mut input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Some(end) = memchr::memmem::find(&input, b"\r\n\r\n") else { continue };
            let head = std::str::from_utf8(&input[..end]).map_err(io::Error::other)?;
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
            break (end + 4, length.ok_or(io::ErrorKind::InvalidData)?);
        };
        input.advance(head_bytes);
        input.reserve(usize::saturating_sub(content_bytes, input.len()));
        while input.len() < content_bytes {
            if stream.read_buf(&mut input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.free.borrow_mut().push(stream);
        Ok(input.freeze())
    }
}

async fn answer(backends: Rc<Backends>, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    let content = backends.get(request.uri().path()).await.unwrap();
    let head = Response::builder().header("content-length", content.len()).body(()).unwrap();
    // A client that has gone is no error.
    if let Ok(mut stream) = respond.send_response(head, false) {
        let _ = stream.send_data(content, true);
    }
}

async fn converse(backends: Rc<Backends>, acceptor: TlsAcceptor, stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        spawn_local(answer(Rc::clone(&backends), request, respond));
    }
}

async fn serve(port: u16, chain: &str, key: &str, addresses: Vec<String>) -> io::Result<()> {
    let chain = CertificateDer::pem_file_iter(chain).and_then(Iterator::collect);
    let key = PrivateKeyDer::from_pem_file(key).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(io::Error::other)?.with_no_client_auth();
    let mut config =
        config.with_single_cert(chain.map_err(io::Error::other)?, key).map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let backends = Rc::new(Backends { addresses, turn: Cell::default(), free: RefCell::default() });
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        spawn_local(converse(Rc::clone(&backends), acceptor.clone(), stream));
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, chain, key, backends @ ..] = &arguments[..] else {
        eprintln!("bare_http2 PORT CHAIN KEY BACKEND...");
        std::process::exit(2);
    };
    let port = port.parse().map_err(io::Error::other)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, serve(port, chain, key, backends.to_vec()))
}
