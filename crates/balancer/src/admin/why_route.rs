//! `/why` by host and path: which route takes such a request, and where it leads.

use std::sync::Arc;

use http::StatusCode;
use plimsoll_config::{DEFAULT_POOL, RouteConfig};
use plimsoll_observe::reply::{Refused, Reply, json};
use serde::Serialize;

use crate::backend_pool::BackendPool;
use crate::http::host;
use crate::shared::FrontEndShared;

/// A route, as it is configured.
#[derive(Serialize)]
pub(super) struct ShownRoute {
    /// Its place in the file, from 0.
    index: u32,
    name: Option<String>,
    host: String,
    path: String,
    header: Vec<String>,
}

impl ShownRoute {
    fn of(index: u32, route: &RouteConfig) -> Self {
        let field = |f: &plimsoll_config::RouteHeader| match &f.value {
            Some(value) => format!("{}: {value}", f.name),
            None => f.name.clone(),
        };
        Self {
            index,
            name: route.name.as_deref().map(str::to_owned),
            host: route.host.to_string(),
            path: route.path.clone(),
            header: route.header.iter().map(field).collect(),
        }
    }

    fn in_words(&self) -> String {
        let name = self.name.as_deref().map_or_else(String::new, |name| format!(" `{name}`"));
        let host = if self.host == "any" { "any host".to_owned() } else { format!("host {}", self.host) };
        format!("route[{}]{name} ({host}, path {})", self.index, self.path)
    }
}

/// What becomes of a request.
pub(super) enum AskedRequest<'a> {
    /// The front-end itself answers it, which this says.
    Answered(Reply),
    /// It goes to a pool.
    Passed {
        pool: Arc<BackendPool>,
        host: &'a [u8],
        path_query: &'a [u8],
        route: Option<ShownRoute>,
        /// Why it goes there, in words.
        led: String,
    },
}

#[derive(Serialize)]
struct ShownAnswer {
    status: u16,
    route: Option<ShownRoute>,
    explanation: String,
}

/// What becomes of a request without fields; `query` is `HOST&path=PATH`, in which PATH is the rest, with its own query.
pub(super) fn asked<'a>(shared: &FrontEndShared, query: &'a str) -> Result<AskedRequest<'a>, Refused> {
    let refused = |error: String| {
        let remedy = "ask GET /why?host=www.example.com&path=/path?query";
        Refused::new(StatusCode::BAD_REQUEST, error, remedy)
    };
    let Some((host, path_query)) = query.split_once("&path=").filter(|(_, path)| path.starts_with('/'))
    else {
        return Err(refused("the query does not say which path".to_owned()));
    };
    if !host::is_valid(host.as_bytes()) {
        return Err(refused(format!("`{host}` is no host")));
    }
    let (host, path_query) = (host.as_bytes(), path_query.as_bytes());
    let Some(routing) = shared.routing.load_full() else {
        let led = "There are no routes, so it goes to the only pool. ".to_owned();
        return Ok(AskedRequest::Passed {
            pool: Arc::clone(&shared.first),
            host,
            path_query,
            route: None,
            led,
        });
    };
    let (index, routed) = match routing.find(host, path_query, &[]) {
        Ok(found) => found,
        Err(refusal) => {
            let explanation = format!("It is refused with {}: {}.", refusal.status, refusal.why);
            let shown = ShownAnswer { status: refusal.status, route: None, explanation };
            return Ok(AskedRequest::Answered(json(StatusCode::OK, &shown)));
        }
    };
    let config = routing.config_of(index);
    let route = config.map(|route| ShownRoute::of(index, route));
    let by = route.as_ref().map_or_else(
        || "No route takes it, so that `unmatched` counts".to_owned(),
        |route| format!("It is taken by {}", route.in_words()),
    );
    let own = match (routed.answer, config.and_then(|route| route.redirect.as_ref().map(|to| (route, to)))) {
        (Some(refusal), _) => {
            Some((refusal.status, format!("{by}: the front-end itself answers with {}.", refusal.status)))
        }
        (None, Some((route, to))) => {
            let status = route.redirect_status;
            Some((status, format!("{by}: the front-end sends the client to `{to}` with {status}.")))
        }
        (None, None) => None,
    };
    if let Some((status, explanation)) = own {
        let shown = ShownAnswer { status, route, explanation };
        return Ok(AskedRequest::Answered(json(StatusCode::OK, &shown)));
    }
    let Some(pool) = shared.in_pool(routed.pool, Arc::clone) else {
        return Err(refused("a reload has just removed its pool".to_owned()));
    };
    let name = if pool.number == shared.first.number { DEFAULT_POOL } else { pool.name() };
    let led =
        format!("{by}, and goes to the pool `{name}`; with other fields, another route might take it. ");
    Ok(AskedRequest::Passed { pool, host, path_query, route, led })
}
