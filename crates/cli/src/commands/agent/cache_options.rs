//! Options of cooperative caching.

use std::net::SocketAddr;

use plimsoll_agent::daemon::CachePeer;

use super::names::agent_name;
use crate::values;

/// Arguments of `agent`.
#[derive(clap::Args, Debug)]
pub(super) struct CacheArgs {
    /// Another node from whose memory documents are fetched: its name, and where it takes links for that
    #[arg(long = "cache-peer", value_name = "NAME=ADDRESS:PORT", requires = "cache_listen", value_parser = cache_peer)]
    pub(super) cache_peers: Vec<CachePeer>,

    /// Address and port at which other nodes fetch documents from this one's memory
    #[arg(long, value_name = "ADDRESS:PORT", requires_all = ["cache_peers", "serve"], value_parser = values::address)]
    pub(super) cache_listen: Option<SocketAddr>,

    /// How the node is found that has a document, the same at all nodes: by a hash of its name, or by what nodes tell
    #[arg(long, value_name = "HOW", default_value = "hash", value_parser = ["hash", "hints"], requires = "cache_listen")]
    pub(super) cache_locate: String,

    /// Keep no copy of what another node has sent
    #[arg(long, requires = "cache_listen")]
    pub(super) cache_no_copies: bool,

    /// Time for another node to send a document, in seconds; then it is read from the disk
    #[arg(long, value_name = "S", default_value = "1", value_parser = values::positive, requires = "cache_listen")]
    pub(super) cache_timeout: f64,

    /// Do not ask other nodes for larger documents; 8 MiB at most
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = plimsoll_policy::units::size, requires = "cache_listen")]
    pub(super) cache_document_size: u64,
}

fn cache_peer(text: &str) -> Result<CachePeer, String> {
    let wrong = "give a name, an IP address and a port, such as n2=10.0.0.22:7410";
    let (name, address) = text.split_once('=').ok_or(wrong)?;
    let address: SocketAddr = address.parse().map_err(|_| wrong)?;
    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
    Ok(CachePeer { name: agent_name(name)?, address })
}
