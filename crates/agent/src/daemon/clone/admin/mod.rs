//! The admin API of a node: bounded in connections, bytes and time, on a thread of its own.

mod metrics;
mod why;

use std::net::SocketAddr;
use std::sync::Arc;

use http::header::{HeaderValue, VARY};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use plimsoll_observe::guard;
use plimsoll_observe::metrics_format::MetricsFormat;
use plimsoll_observe::reply::{Refused, Reply, json, json_line, of, text};
use plimsoll_observe::serving;
use tokio::net::TcpListener;
use tokio::task::spawn_local;

use super::shared::CloneShared;

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
    let spawn = |connection: serving::AdminConnection| {
        let shared = Arc::clone(shared);
        drop(spawn_local(connection.serve(move |local, request| {
            let shared = Arc::clone(&shared);
            async move { answer(&shared, local, request).await.unwrap_or_else(|refused| refused.reply()) }
        })));
    };
    serving::accept(&listener, spawn).await;
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
