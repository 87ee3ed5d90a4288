//! The pool that a query names.

use std::sync::Arc;

use http::StatusCode;
use plimsoll_observe::reply::Refused;

use crate::backend_pool::BackendPool;
use crate::shared::FrontEndShared;

/// The pool that a query begins with, `pool=NAME`, and the rest of the query; the first one where it names none.
pub(super) fn of_query<'q>(
    shared: &FrontEndShared,
    query: Option<&'q str>,
) -> Result<(Arc<BackendPool>, Option<&'q str>), Refused> {
    let Some(rest) = query.and_then(|query| query.strip_prefix("pool=")) else {
        return Ok((Arc::clone(&shared.first), query));
    };
    let (name, rest) = rest.split_once('&').map_or((rest, None), |(name, rest)| (name, Some(rest)));
    let pools = shared.pools();
    let found = pools.iter().find(|pool| pool.name() == name).cloned();
    found.map(|pool| (pool, rest)).ok_or_else(|| {
        let names: Vec<&str> = pools.iter().map(|pool| pool.name()).take(20).collect();
        let error = format!("no pool is called `{name}`");
        Refused::new(StatusCode::NOT_FOUND, error, format!("among the pools are {}", names.join(", ")))
    })
}
