//! The configuration of a node that fetches documents from others.

use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_wire::Key;
use plimsoll_wire::caching::MOST_DOCUMENT_BYTES;

use super::super::config::AgentError;

/// Another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachePeer {
    /// Its name.
    pub name: String,
    /// Where it takes links; its links come from the same address.
    pub address: SocketAddr,
}

/// How the node is found that has a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheLocation {
    /// Each document has a home, by a hash of its name. The home reads it from its disk if need be.
    #[default]
    Hash,
    /// Nodes tell each other what they have in memory. What they say may be out of date.
    Hints,
}

/// The configuration of a node.
#[derive(Debug, Clone)]
pub struct CacheNodeConfig {
    /// Its name.
    pub name: String,
    /// Where it takes links, and from where it opens them.
    pub listen: SocketAddr,
    /// The key that all nodes share.
    pub key: Key,
    /// The other nodes; 63 at most.
    pub peers: Vec<CachePeer>,
    /// How the node is found that has a document; the same at all nodes.
    pub location: CacheLocation,
    /// Whether this node keeps a copy of what it fetches; true by default.
    pub replicate: bool,
    /// Time for another node to send a document; then it is read from the disk. 1 s by default.
    pub fetch_timeout: Duration,
    /// Larger documents are not asked for; 1 MiB by default, 8 MiB at most.
    pub document_bytes: usize,
    /// How long a link may be silent before it counts as lost; 1.5 s by default.
    pub link_timeout: Duration,
}

const MOST_PEERS: usize = 63;
const SHORTEST: Duration = Duration::from_millis(50);

impl CacheNodeConfig {
    /// The defaults for a node with these properties.
    #[must_use]
    pub fn new(name: impl Into<String>, listen: SocketAddr, key: Key) -> Self {
        Self {
            name: name.into(),
            listen,
            key,
            peers: Vec::new(),
            location: CacheLocation::Hash,
            replicate: true,
            fetch_timeout: Duration::from_secs(1),
            document_bytes: 1 << 20,
            link_timeout: Duration::from_millis(1500),
        }
    }

    pub(super) fn check(&self) -> Result<(), AgentError> {
        let wrong = |what: String| Err(AgentError::Config(what));
        if !(1..=MOST_PEERS).contains(&self.peers.len()) {
            return wrong(format!(
                "{} other nodes to fetch documents from; give 1 to {MOST_PEERS}",
                self.peers.len()
            ));
        }
        for (number, peer) in self.peers.iter().enumerate() {
            if peer.name == self.name || self.peers[..number].iter().any(|other| other.name == peer.name) {
                return wrong(format!(
                    "two nodes are called {} (--name, --cache-peer): give each a name of its own",
                    peer.name
                ));
            }
            if peer.address.is_ipv4() != self.listen.is_ipv4() {
                return wrong(format!(
                    "--cache-peer {}={}: give an address of the same family as {}",
                    peer.name, peer.address, self.listen
                ));
            }
        }
        if !(1..=MOST_DOCUMENT_BYTES).contains(&self.document_bytes) {
            return wrong(format!(
                "documents of {} bytes cannot be fetched; give 1 to {MOST_DOCUMENT_BYTES} (--cache-document-size)",
                self.document_bytes
            ));
        }
        for (what, time) in [("fetching", self.fetch_timeout), ("silence", self.link_timeout)] {
            if time < SHORTEST {
                return wrong(format!("{time:?} is too short for {what}; give at least 0.05 s"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused() {
        let good = || {
            let mut config = CacheNodeConfig::new("a", "10.0.0.1:7410".parse().unwrap(), Key::new([1; 32]));
            config.peers = vec![CachePeer { name: "b".into(), address: "10.0.0.2:7410".parse().unwrap() }];
            config
        };
        assert!(good().check().is_ok());
        let wrong = |change: fn(&mut CacheNodeConfig)| {
            let mut config = good();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(wrong(|config| config.peers.clear()).contains("give 1 to 63"));
        assert!(wrong(|config| config.name = "b".into()).contains("two nodes are called b"));
        assert!(wrong(|config| config.listen = "[::1]:1".parse().unwrap()).contains("same family"));
        assert!(wrong(|config| config.document_bytes = 0).contains("0 bytes"));
        assert!(wrong(|config| config.document_bytes = MOST_DOCUMENT_BYTES + 1).contains("8388608"));
        assert!(wrong(|config| config.fetch_timeout = Duration::ZERO).contains("fetching"));
        assert!(wrong(|config| config.link_timeout = Duration::ZERO).contains("silence"));
    }
}
