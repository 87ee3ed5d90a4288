//! Routes requests to their handlers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::header::{HeaderValue, VARY};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;

use super::{backends, decisions, flows, metrics, passed, policy, refused, tables, why};
use crate::backend_pool::BackendPool;
use crate::mechanism::registry::MechanismSystems;
use crate::shared::FrontEndShared;
use plimsoll_observe::guard;
use plimsoll_observe::metrics_format::MetricsFormat;
use plimsoll_observe::reply::{Refused, Reply, of, text};
use plimsoll_observe::serving::RESPONSE_TIME;

/// Bytes of a request's body.
const BODY_BYTES: usize = 64 << 10;

const PATHS: &str = "\
Plimsoll admin API

GET  /metrics                  metrics for Prometheus
GET  /healthz                  200 while the process serves
GET  /readyz                   200 while at least one back-end takes requests
GET  /backends                 every back-end: health, weight, load, answers
GET  /backends/NAME            one of them
PUT  /backends/NAME/weight     {\"weight\": 0.5}
POST /backends/NAME/drain      takes nothing new, finishes what it has
POST /backends/NAME/undrain    takes requests again
GET  /policy                   the policy, its parameters and its state in numbers
GET  /policy/tables            what else there is to see of it, such as boundaries
GET  /why?target=/path         what the policy holds about a target
GET  /why?host=HOST&path=/path which route, pool and back-ends such a request has
GET  /refusals                 what was refused, why, and what to change
GET  /flows                    connections that back-ends have
GET  /passed?after=0           requests that the switch has seen since, and starts to keep them
GET  /decisions                the state of the decision log
POST /decisions/flush          writes what the decision log has gathered
";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route<'a> {
    Index,
    Metrics,
    Healthz,
    Readyz,
    Backends,
    Backend(&'a str),
    Weight(&'a str),
    Drain(&'a str, bool),
    Policy,
    Tables,
    Why,
    Refusals,
    Flows,
    Passed,
    Decisions,
    Flush,
}

impl<'a> Route<'a> {
    pub(super) fn of(path: &'a str) -> Option<Self> {
        Some(match path {
            "/" => Self::Index,
            "/metrics" => Self::Metrics,
            "/healthz" => Self::Healthz,
            "/readyz" => Self::Readyz,
            "/backends" => Self::Backends,
            "/policy" => Self::Policy,
            "/policy/tables" => Self::Tables,
            "/why" => Self::Why,
            "/refusals" => Self::Refusals,
            "/flows" => Self::Flows,
            "/passed" => Self::Passed,
            "/decisions" => Self::Decisions,
            "/decisions/flush" => Self::Flush,
            _ => {
                let rest = path.strip_prefix("/backends/")?;
                // The name of a back-end may be the path of its socket.
                let is_name = |name: &str| !name.contains('/') || name.starts_with("unix:/");
                match rest.rsplit_once('/') {
                    Some((name, "weight")) if is_name(name) => Self::Weight(name),
                    Some((name, "drain")) if is_name(name) => Self::Drain(name, true),
                    Some((name, "undrain")) if is_name(name) => Self::Drain(name, false),
                    _ if is_name(rest) => Self::Backend(rest),
                    _ => return None,
                }
            }
        })
    }

    fn allow(self) -> &'static str {
        match self {
            Self::Weight(_) => "PUT",
            Self::Drain(..) | Self::Flush => "POST",
            _ => "GET, HEAD",
        }
    }

    /// Whether anyone may ask: it answers only yes or no.
    fn is_open(self) -> bool {
        matches!(self, Self::Healthz | Self::Readyz)
    }
}

/// Answers a request that came in at `local`, within [`RESPONSE_TIME`].
pub(super) async fn answer(
    shared: &Arc<FrontEndShared>,
    systems: &Arc<MechanismSystems>,
    local: SocketAddr,
    request: Request<Incoming>,
) -> Reply {
    match tokio::time::timeout(RESPONSE_TIME, respond(shared, systems, local, request)).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(refused)) => refused.reply(),
        Err(_) => Refused::new(
            StatusCode::REQUEST_TIMEOUT,
            "the request took too long",
            "send its body at once; if there was none, the disk of the decision log does not keep up",
        )
        .reply(),
    }
}

async fn respond(
    shared: &Arc<FrontEndShared>,
    systems: &Arc<MechanismSystems>,
    local: SocketAddr,
    request: Request<Incoming>,
) -> Result<Reply, Refused> {
    let (parts, body) = request.into_parts();
    let route = Route::of(parts.uri.path());
    if !route.is_some_and(Route::is_open) {
        let config = shared.config.load_full();
        guard::check(config.admin.as_ref(), local, &parts)?;
    }
    let Some(route) = route else {
        return Err(Refused::new(StatusCode::NOT_FOUND, "there is no such path", "GET / lists the paths"));
    };
    let allow = route.allow();
    if !allow.split(", ").any(|method| parts.method.as_str() == method) {
        return Err(Refused::method(allow));
    }
    match route {
        Route::Weight(name) => backends::set_weight(shared, name, &read(body).await?),
        Route::Drain(name, drained) => backends::set_drained(shared, name, drained),
        Route::Flush => decisions::flush(Arc::clone(shared)).await,
        Route::Decisions => decisions::state(Arc::clone(shared)).await,
        Route::Metrics => {
            let format = MetricsFormat::wanted(&parts.headers);
            let encoded = format.of(metrics::encode(shared, systems));
            let mut reply = of(StatusCode::OK, format.media_type(), encoded);
            reply.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
            Ok(reply)
        }
        Route::Flows => flows::answer(shared, systems, parts.uri.query()),
        Route::Passed => passed::answer(systems, parts.uri.query()),
        route => look(shared, route, &parts),
    }
}

/// Answers requests that change nothing, at once.
fn look(shared: &FrontEndShared, route: Route<'_>, parts: &Parts) -> Result<Reply, Refused> {
    debug_assert!(matches!(parts.method, Method::GET | Method::HEAD));
    match route {
        Route::Index => Ok(text(StatusCode::OK, PATHS)),
        Route::Healthz => Ok(text(StatusCode::OK, "ok\n")),
        Route::Readyz => Ok(ready(shared)),
        Route::Backends => Ok(backends::list(shared)),
        Route::Backend(name) => backends::one(shared, name),
        Route::Policy => policy::state(shared, parts.uri.query()),
        Route::Tables => tables::all(shared, parts.uri.query()),
        Route::Why => why::answer(shared, parts.uri.query()),
        Route::Refusals => Ok(refused::list(shared)),
        // Answered before.
        Route::Metrics
        | Route::Weight(_)
        | Route::Drain(..)
        | Route::Flows
        | Route::Passed
        | Route::Decisions
        | Route::Flush => Err(Refused::method("GET")),
    }
}

fn ready(shared: &FrontEndShared) -> Reply {
    let not = |why: &str| text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n"));
    if shared.stopping.load(Ordering::Relaxed) {
        return not("the front-end is stopping");
    }
    let is_bare = |pool: &Arc<BackendPool>| {
        pool.dispatch.parts().iter().all(|part| part.inspect(|i| i.view.eligible()) == 0)
    };
    if shared.pools().iter().all(is_bare) {
        not("no back-end takes requests")
    } else {
        text(StatusCode::OK, "ready\n")
    }
}

async fn read(body: Incoming) -> Result<bytes::Bytes, Refused> {
    let whole = Limited::new(body, BODY_BYTES).collect().await;
    whole.map(http_body_util::Collected::to_bytes).map_err(|_| {
        Refused::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body is too large, or was cut off",
            format!("send at most {BODY_BYTES} bytes"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        assert_eq!(Route::of("/backends/a%20b/weight"), Some(Route::Weight("a%20b")));
        assert_eq!(Route::of("/backends/127.0.0.1:80"), Some(Route::Backend("127.0.0.1:80")));
        assert_eq!(Route::of("/backends/a/undrain"), Some(Route::Drain("a", false)));
        assert_eq!(Route::of("/backends/unix:/a/b.sock"), Some(Route::Backend("unix:/a/b.sock")));
        assert_eq!(Route::of("/backends/unix:/a/b/drain"), Some(Route::Drain("unix:/a/b", true)));
        assert_eq!(Route::of("/backends/unix:%2Fa/weight"), Some(Route::Weight("unix:%2Fa")));
        for unknown in ["", "/metrics/", "/backends/a/weight/", "/backends/a/b", "*"] {
            assert_eq!(Route::of(unknown), None, "{unknown}");
        }
        for line in PATHS.lines().skip(2) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let path = words[1].split('?').next().unwrap();
            assert!(Route::of(path).unwrap().allow().contains(words[0]), "{line}");
        }
    }
}
