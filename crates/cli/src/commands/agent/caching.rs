//! Cooperative caching: documents come from other nodes' memory instead of from the disk.

use plimsoll_agent::daemon::{CacheLocation, CacheNode, CacheNodeConfig, PreparedCacheNode, ServeConfig};

use super::load::seconds;
use super::options::{Args, key};
use crate::error::CliError;

/// Listens for other nodes, if that is asked for, and has the origin ask them.
pub(super) fn prepare(args: &Args, serve: &mut ServeConfig) -> Result<Option<PreparedCacheNode>, CliError> {
    let cache = &args.caching;
    let Some(listen) = cache.cache_listen else { return Ok(None) };
    let ServeConfig::Origin(origin) = serve else {
        return Err(CliError::Usage(
            "--cache-listen: only an origin has a memory; give --serve origin:…".into(),
        ));
    };
    let mut config = CacheNodeConfig::new(&args.name, listen, key(args)?);
    config.peers.clone_from(&cache.cache_peers);
    if cache.cache_locate == "hints" {
        config.location = CacheLocation::Hints;
    }
    config.replicate = !cache.cache_no_copies;
    config.fetch_timeout = seconds("--cache-timeout", cache.cache_timeout)?;
    config.document_bytes = usize::try_from(cache.cache_document_size).unwrap_or(usize::MAX);
    config.link_timeout = seconds("--link-timeout", args.link_timeout)?;
    let prepared = PreparedCacheNode::new(config)?;
    origin.peers = Some(prepared.memory());
    Ok(Some(prepared))
}

/// Stops it, and adds its counts to those that are printed.
pub(super) fn stop(node: Option<CacheNode>, json: &mut serde_json::Value) {
    if let Some(node) = node {
        let counts = node.stop().named().into_iter().map(|(name, count)| (name.to_owned(), count.into()));
        json["caching"] = serde_json::Value::Object(counts.collect());
    }
}
