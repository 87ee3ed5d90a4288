//! Answers by an HTTP server at another address: copies requests to it and responses from it, unchanged.
//! Parses responses only to find their end.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::{Buf as _, BytesMut};
use http::StatusCode;
use rustix::net::sockopt;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::super::client::ClientConnection;
use super::super::head::Outline;
use super::answer::{AfterAnswer, Answer};
use super::framing::{Chunks, Followed, Length, MalformedResponse, Response, response};
use super::origin;

const CONNECT: Duration = Duration::from_secs(2);
const READ_BYTES: usize = 64 * 1024;
/// The most interim responses to one request.
const MOST_INTERIM: usize = 16;

/// A client's way to the server.
#[derive(Debug)]
pub(in super::super) struct Copy {
    address: SocketAddr,
    server: Option<Server>,
}

/// A connection to the server.
#[derive(Debug)]
struct Server {
    stream: TcpStream,
    /// Bytes from it that are not yet used.
    input: BytesMut,
}

/// What failed between server and client.
enum CopyFailure {
    /// The server; nothing of its response has reached the client.
    Before,
    /// The server, within its response.
    Within,
    /// The client.
    Client,
}

impl Copy {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, server: None }
    }

    async fn connect(&self) -> io::Result<Server> {
        let stream = timeout(CONNECT, TcpStream::connect(self.address)).await??;
        stream.set_nodelay(true)?;
        Ok(Server { stream, input: BytesMut::new() })
    }

    /// Copies the request at the start of the client's input, and its response.
    pub(super) async fn answer(&mut self, client: &mut ClientConnection, outline: Outline) -> Answer {
        let request = client.input.split_to(outline.bytes.min(client.input.len())).freeze();
        let kept = self.server.take();
        let was_kept = kept.is_some();
        let mut passing = Passing { answer: Answer::NONE, outline };
        let mut server = match kept {
            Some(server) => server,
            None => match self.connect().await {
                Ok(server) => server,
                Err(error) => return self.unreachable(client, &error).await,
            },
        };
        let mut passed = passing.pass(&mut server, client, &request).await;
        if was_kept && matches!(passed, Err(CopyFailure::Before)) {
            // The server has closed the idle connection, as it may; requests without a body are sent again.
            server = match self.connect().await {
                Ok(server) => server,
                Err(error) => return self.unreachable(client, &error).await,
            };
            passed = passing.pass(&mut server, client, &request).await;
        }
        match passed {
            Ok(Some(keep)) => {
                if keep {
                    self.server = Some(server);
                }
                passing.answer
            }
            Ok(None) => {
                self.server = Some(server);
                Answer { status: 101, ..self.pass_all(client).await }
            }
            Err(CopyFailure::Before) => {
                self.unreachable(client, &io::ErrorKind::ConnectionReset.into()).await
            }
            Err(CopyFailure::Within | CopyFailure::Client) => {
                Answer { then: AfterAnswer::Abort, ..passing.answer }
            }
        }
    }

    async fn unreachable(&self, client: &mut ClientConnection, error: &io::Error) -> Answer {
        tracing::warn!(%error, address = %self.address, "the server did not answer");
        origin::answer_short(client, StatusCode::BAD_GATEWAY).await
    }

    /// Copies everything in both directions until both have ended.
    pub(super) async fn pass_all(&mut self, client: &mut ClientConnection) -> Answer {
        let server = match self.server.take() {
            Some(server) => Ok(server),
            None => self.connect().await,
        };
        let mut server = match server {
            Ok(server) => server,
            Err(error) => return self.unreachable(client, &error).await,
        };
        let began_bytes = client.written_bytes;
        let copied = async {
            // Long silence is allowed, but a vanished peer must be noticed.
            sockopt::set_socket_keepalive(&client.stream, true)?;
            let first = server.input.split().freeze();
            client.write(&first, b"").await?;
            let input = client.input.split().freeze();
            server.stream.write_all(&input).await?;
            copy_bidirectional(&mut client.stream, &mut server.stream).await
        };
        let copied = copied.await;
        let (complete, more_bytes) = copied.map_or((false, 0), |(_, to_client)| (true, to_client));
        let content_bytes = client.written_bytes - began_bytes + more_bytes;
        let then = if complete { AfterAnswer::Close } else { AfterAnswer::Abort };
        Answer { status: 0, complete, content_bytes, first_byte_at: None, then }
    }
}

/// A request on its way.
struct Passing {
    answer: Answer,
    outline: Outline,
}

impl Passing {
    /// Passes request and response. Returns whether the server's connection can be kept; `None` after a
    /// change of protocol.
    async fn pass(
        &mut self,
        server: &mut Server,
        client: &mut ClientConnection,
        request: &[u8],
    ) -> Result<Option<bool>, CopyFailure> {
        let limit = client.limit();
        let sent = timeout(limit, server.stream.write_all(request)).await;
        if !matches!(sent, Ok(Ok(()))) {
            return Err(CopyFailure::Before);
        }
        for _ in 0..=MOST_INTERIM {
            let head = self.head(server, limit).await?;
            self.answer.status = head.status;
            let bytes = server.input.split_to(head.bytes).freeze();
            // Content that has already come goes with it.
            let interim = head.status < 200;
            if interim {
                self.answer.first_byte_at.get_or_insert_with(Instant::now);
                client.write(&bytes, b"").await.map_err(|_| CopyFailure::Client)?;
                if head.status == 101 {
                    return Ok(None);
                }
                continue;
            }
            self.content(server, client, &head, &bytes).await?;
            self.answer.complete = true;
            let keep = head.keep_alive && server.input.is_empty();
            self.answer.then =
                if keep && self.outline.keep_alive { AfterAnswer::KeepAlive } else { AfterAnswer::Close };
            return Ok(Some(keep));
        }
        Err(CopyFailure::Within)
    }

    /// The next head that the server sends, at the start of its input.
    async fn head(&self, server: &mut Server, limit: Duration) -> Result<Response, CopyFailure> {
        let failure =
            || if self.answer.first_byte_at.is_some() { CopyFailure::Within } else { CopyFailure::Before };
        loop {
            if !server.input.is_empty() {
                match response(&server.input, self.outline.is_head) {
                    Ok(Some(head)) => return Ok(head),
                    Ok(None) => {}
                    Err(MalformedResponse) => return Err(failure()),
                }
            }
            if server.read(limit).await.map_err(|_| failure())? == 0 {
                return Err(failure());
            }
        }
    }

    /// Passes a head and the content that belongs to it.
    async fn content(
        &mut self,
        server: &mut Server,
        client: &mut ClientConnection,
        head: &Response,
        head_bytes: &[u8],
    ) -> Result<(), CopyFailure> {
        let limit = client.limit();
        let mut rest = Rest { length: head.length, chunks: Chunks::default() };
        let mut head_bytes = head_bytes;
        loop {
            let followed = rest.follow(&server.input).map_err(|MalformedResponse| CopyFailure::Within)?;
            // Before the client takes it, which may last.
            self.answer.first_byte_at.get_or_insert_with(Instant::now);
            let written = client.write(head_bytes, &server.input[..followed.bytes]).await;
            written.map_err(|_| CopyFailure::Client)?;
            self.answer.content_bytes += followed.content_bytes;
            server.input.advance(followed.bytes);
            head_bytes = b"";
            if followed.done {
                return Ok(());
            }
            let count = server.read(limit).await.map_err(|_| CopyFailure::Within)?;
            if count == 0 {
                return if head.length == Length::UntilClose { Ok(()) } else { Err(CopyFailure::Within) };
            }
        }
    }
}

impl Server {
    async fn read(&mut self, limit: Duration) -> io::Result<usize> {
        self.input.reserve(READ_BYTES);
        timeout(limit, self.stream.read_buf(&mut self.input)).await?
    }
}

/// The rest of a response.
struct Rest {
    length: Length,
    chunks: Chunks,
}

impl Rest {
    fn follow(&mut self, input: &[u8]) -> Result<Followed, MalformedResponse> {
        match &mut self.length {
            Length::Chunked => self.chunks.follow(input),
            Length::UntilClose => {
                Ok(Followed { bytes: input.len(), content_bytes: input.len() as u64, done: false })
            }
            Length::Known(left_bytes) => {
                let here = (input.len() as u64).min(*left_bytes);
                *left_bytes -= here;
                let bytes = usize::try_from(here).unwrap_or(usize::MAX);
                Ok(Followed { bytes, content_bytes: here, done: *left_bytes == 0 })
            }
        }
    }
}
