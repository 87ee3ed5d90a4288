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

use super::outcome::{Cached, Failure, Outcome};
use super::request::Req;

/// A client with at most one connection at a time.
pub(super) struct Client {
    target: SocketAddr,
    keep_alive: bool,
    open: Option<Open>,
}

/// A connection and the task that drives it, which ends with this.
struct Open {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Client {
    pub(super) fn new(target: SocketAddr, keep_alive: bool) -> Self {
        Self { target, keep_alive, open: None }
    }

    /// Sends a request and reads the response, until `deadline` at most. Times are left to the caller.
    pub(super) async fn exchange(&mut self, request: &Req, deadline: Instant) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.failure = match timeout_at(deadline, self.attempt(request, &mut outcome)).await {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure),
            Err(_) => Some(Failure::Timeout),
        };
        if outcome.failure.is_some() || !self.keep_alive {
            self.open = None;
        }
        outcome
    }

    async fn attempt(&mut self, request: &Req, outcome: &mut Outcome) -> Result<(), Failure> {
        let message = request.to_http(self.target, self.keep_alive).ok_or(Failure::Unusable)?;
        let response = self.send(message, outcome).await?;
        let status = response.status().as_u16();
        outcome.status = Some(status);
        let header = |name: &str| response.headers().get(name);
        outcome.cached = header("x-cache").and_then(|value| Cached::parse(value.as_bytes()));
        outcome.backend = header("x-backend").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let expect = if status == 200 { request.expect } else { super::Expect::Anything };
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Failure::Truncated)?;
            let Some(data) = frame.data_ref() else { continue };
            if !expect.allows(outcome.bytes, data) {
                return Err(Failure::WrongBody);
            }
            outcome.bytes += data.len() as u64;
        }
        if expect.ends_at(outcome.bytes) { Ok(()) } else { Err(Failure::WrongBody) }
    }

    /// The head of the response. A request of which nothing was sent, because the kept connection had ended meanwhile,
    /// goes over a new one; no other is sent twice.
    async fn send(
        &mut self,
        mut message: Request<Full<Bytes>>,
        outcome: &mut Outcome,
    ) -> Result<Response<Incoming>, Failure> {
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
        open.sender.ready().await.map_err(|_| Failure::Closed)?;
        open.sender.send_request(message).await.map_err(|error| classify(&error))
    }
}

async fn connect(target: SocketAddr) -> Result<Open, Failure> {
    let stream = TcpStream::connect(target).await.map_err(|_| Failure::Connect)?;
    stream.set_nodelay(true).map_err(|_| Failure::Connect)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| Failure::Connect)?;
    let driver = tokio::spawn(async move {
        // Whoever waits for a response is told of a failure.
        drop(connection.await);
    });
    Ok(Open { sender, driver })
}

fn classify(error: &hyper::Error) -> Failure {
    if error.is_parse() { Failure::Malformed } else { Failure::Closed }
}

/// `now + time`, or what is as good as never.
pub(super) fn after(now: Instant, time: Duration) -> Instant {
    now.checked_add(time).unwrap_or(now + Duration::from_secs(86_400 * 365))
}
