//! One connection of a client: it sends a request and reads its response to the end.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::outcome::{CacheStatus, RequestFailure, RequestSample};
use super::request::Req;

/// A client with at most one connection at a time.
pub(super) struct LoadClient {
    target: SocketAddr,
    keep_alive: bool,
    open: Option<OpenConnection>,
}

/// A connection and its driver task, which is aborted when this is dropped.
struct OpenConnection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl LoadClient {
    pub(super) fn new(target: SocketAddr, keep_alive: bool) -> Self {
        Self { target, keep_alive, open: None }
    }

    /// Sends a request and reads the response, until `deadline` at most. The caller fills in the times.
    pub(super) async fn exchange(&mut self, request: &Req, deadline: Instant) -> RequestSample {
        let mut outcome = RequestSample::default();
        outcome.failure = match timeout_at(deadline, self.attempt(request, &mut outcome)).await {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure),
            Err(_) => Some(RequestFailure::Timeout),
        };
        if outcome.failure.is_some() || !self.keep_alive {
            self.open = None;
        }
        outcome
    }

    async fn attempt(&mut self, request: &Req, outcome: &mut RequestSample) -> Result<(), RequestFailure> {
        let message = request.to_http(self.target, self.keep_alive).ok_or(RequestFailure::Unusable)?;
        let response = self.send(message, outcome).await?;
        let status = response.status().as_u16();
        outcome.status = Some(status);
        let header = |name: &str| response.headers().get(name);
        outcome.cached = header("x-cache").and_then(|value| CacheStatus::parse(value.as_bytes()));
        outcome.backend = header("x-backend").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let expect = if status == 200 { request.expect } else { super::Expect::Anything };
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| RequestFailure::Truncated)?;
            let Some(data) = frame.data_ref() else { continue };
            if !expect.allows(outcome.bytes, data) {
                return Err(RequestFailure::WrongBody);
            }
            outcome.bytes += data.len() as u64;
        }
        if expect.ends_at(outcome.bytes) { Ok(()) } else { Err(RequestFailure::WrongBody) }
    }

    /// Sends a request and returns the head of the response. A request of which nothing was sent, because the
    /// kept connection had ended, goes over a new one; no other is sent twice.
    async fn send(
        &mut self,
        mut message: Request<Full<Bytes>>,
        outcome: &mut RequestSample,
    ) -> Result<Response<Incoming>, RequestFailure> {
        if let Some(open) = &mut self.open {
            if open.sender.ready().await.is_ok() {
                match open.sender.try_send_request(message).await {
                    Ok(response) => return Ok(response),
                    Err(mut error) => match error.take_message() {
                        Some(unsent) => message = unsent,
                        None => return Err(classify(error.error())),
                    },
                }
            }
            // It ended while it was idle.
            outcome.reconnected = true;
        }
        // The old connection is closed before there is a new one.
        self.open = None;
        let open = self.open.insert(connect(self.target).await?);
        open.sender.ready().await.map_err(|_| RequestFailure::Closed)?;
        open.sender.send_request(message).await.map_err(|error| classify(&error))
    }
}

async fn connect(target: SocketAddr) -> Result<OpenConnection, RequestFailure> {
    let stream = TcpStream::connect(target).await.map_err(|_| RequestFailure::Connect)?;
    stream.set_nodelay(true).map_err(|_| RequestFailure::Connect)?;
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|_| RequestFailure::Connect)?;
    let driver = tokio::spawn(async move {
        // The caller that waits for a response gets the error.
        drop(connection.await);
    });
    Ok(OpenConnection { sender, driver })
}

fn classify(error: &hyper::Error) -> RequestFailure {
    if error.is_parse() { RequestFailure::Malformed } else { RequestFailure::Closed }
}

/// `now + time`, or far in the future on overflow.
pub(super) fn after(now: Instant, time: Duration) -> Instant {
    now.checked_add(time).unwrap_or(now + Duration::from_secs(86_400 * 365))
}
