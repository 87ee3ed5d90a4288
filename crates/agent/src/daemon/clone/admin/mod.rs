//! The admin API of a node: bounded in connections, bytes and time, on a thread of its own.

mod metrics;
mod why;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderValue, VARY};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use plimsoll_observe::guard;
use plimsoll_observe::metrics_format::MetricsFormat;
use plimsoll_observe::reply::{Refused, Reply, json, json_line, of, text};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_local;

use super::shared::CloneShared;

/// Connections at once; further ones wait.
const CONNECTIONS: usize = 64;
/// How long a request's head may take.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// How long a connection lasts; then it ends with the response that is under way.
const CONNECTION_TIME: Duration = Duration::from_secs(60);
/// How long the response may take then.
const RESPONSE_TIME: Duration = Duration::from_secs(10);
/// How long is waited when the system has no connection to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const PATHS: &str = "\
Plimsoll, admin API of a node of Socket Cloning

GET  /metrics                  metrics for Prometheus
GET  /healthz                  200 while the process serves
GET  /readyz                   200 while the node takes connections
GET  /nodes                    every node: whether it can be asked for clones, loads
GET  /policy                   the policy and its state in numbers
GET  /policy/tables            what else there is to see of it, such as boundaries
GET  /why?target=/path         what the policy holds about a target
GET  /decisions                the state of the decision log
POST /decisions/flush          writes what the decision log has gathered
";

/// Serves until it is dropped.
pub(super) async fn serve(shared: &Arc<CloneShared>, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => drop(spawn_local(connection(Arc::clone(shared), stream, place))),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to the admin API");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(shared: Arc<CloneShared>, stream: TcpStream, _place: OwnedSemaphorePermit) {
    let Ok(local) = stream.local_addr() else { return };
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move {
            let answered = answer(&shared, local, request).await;
            Ok::<_, Infallible>(answered.unwrap_or_else(|refused| refused.reply()))
        }
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

async fn answer(
    shared: &Arc<CloneShared>,
    local: SocketAddr,
    request: Request<Incoming>,
) -> Result<Reply, Refused> {
    let (parts, _body) = request.into_parts();
    let path = parts.uri.path();
    if !matches!(path, "/healthz" | "/readyz") {
        guard::check(shared.config.admin.as_ref(), local, &parts)?;
    }
    let allow = if path == "/decisions/flush" { "POST" } else { "GET, HEAD" };
    if !allow.split(", ").any(|method| parts.method.as_str() == method) {
        return Err(Refused::method(allow));
    }
    match path {
        "/" => Ok(text(StatusCode::OK, PATHS)),
        "/healthz" => Ok(text(StatusCode::OK, "ok\n")),
        "/readyz" if shared.is_stopping() => {
            Ok(text(StatusCode::SERVICE_UNAVAILABLE, "not ready: the node is stopping\n"))
        }
        "/readyz" => Ok(text(StatusCode::OK, "ready\n")),
        "/metrics" => {
            let format = MetricsFormat::wanted(&parts.headers);
            let mut reply = of(StatusCode::OK, format.media_type(), format.of(metrics::encode(shared)));
            reply.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
            Ok(reply)
        }
        "/nodes" => Ok(json(StatusCode::OK, &why::nodes(shared))),
        "/policy" => Ok(json(StatusCode::OK, &why::policy(shared))),
        "/policy/tables" => Ok(json_line(StatusCode::OK, &why::tables(shared))),
        "/why" => Ok(json(StatusCode::OK, &why::of_target(shared, parts.uri.query())?)),
        "/decisions" => Ok(json(StatusCode::OK, &why::decisions(shared))),
        "/decisions/flush" => {
            // The directory may be on a slow disk.
            let of = Arc::clone(shared);
            let synced = tokio::task::spawn_blocking(move || of.mapping.sync_log()).await;
            if synced.unwrap_or(false) {
                return Ok(json(StatusCode::OK, &why::decisions(shared)));
            }
            let remedy = "start the agent with --decision-log DIR";
            Err(Refused::new(StatusCode::CONFLICT, "there is no decision log", remedy))
        }
        _ => Err(Refused::new(StatusCode::NOT_FOUND, "there is no such path", "GET / lists the paths")),
    }
}
