//! Serves an admin API: HTTP/1, bounded in connections, bytes and time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::reply::Reply;

/// Connections at once; further ones wait.
const CONNECTIONS: usize = 64;
/// How long a request's head may take.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// How long a connection lasts; then it ends with the response that is under way.
const CONNECTION_TIME: Duration = Duration::from_secs(60);
/// How long a response may take: what is under way when a connection's time is over is waited for this long.
pub const RESPONSE_TIME: Duration = Duration::from_secs(10);
/// How long is waited when the system has no connection to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A connection that was accepted, and its place among those that are served at once.
#[derive(Debug)]
pub struct AdminConnection {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

/// Accepts connections until it is dropped; `spawn` has each one [served](AdminConnection::serve) by a task of its own.
pub async fn accept(listener: &TcpListener, spawn: impl Fn(AdminConnection)) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => spawn(AdminConnection { stream, _place: place }),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to the admin API");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

impl AdminConnection {
    /// Answers its requests by `answer`, which gets the address at which they came in.
    pub async fn serve<F: Future<Output = Reply>>(self, answer: impl Fn(SocketAddr, Request<Incoming>) -> F) {
        let Self { stream, _place } = self;
        let Ok(local) = stream.local_addr() else { return };
        let service = service_fn(|request| {
            let reply = answer(local, request);
            async move { Ok::<_, Infallible>(reply.await) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            // The reason why a client's connection ended does not matter.
            _ = connection.as_mut() => {}
            () = tokio::time::sleep(CONNECTION_TIME) => {
                connection.as_mut().graceful_shutdown();
                drop(tokio::time::timeout(RESPONSE_TIME, connection).await);
            }
        }
    }
}
