//! The configuration of a node.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_config::{AccessLog, Admin};
use plimsoll_datapath::tcp::QueueLimits;
use plimsoll_policy::PolicyChoice;
use plimsoll_wire::Key;
use plimsoll_wire::load::LoadGauge;

use super::super::config::{AgentError, CheckedLimits, ServeConfig, check_vips};

/// Another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClonePeer {
    /// Its name.
    pub name: String,
    /// Where it takes links; its links come from the same address.
    pub address: SocketAddr,
}

/// Where the loads come from by which a policy decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeLoads {
    /// What this node has assigned itself.
    Own,
    /// Other nodes are asked before a choice.
    Poll {
        /// Nodes that are asked for a policy that looks at loads and does not ask by itself: 1 to 8.
        size: u8,
        /// The longest wait for their answers.
        timeout: Duration,
        /// For so long after it was sent an inquiry is shared, until it is answered.
        max_age: Duration,
    },
    /// Other nodes announce theirs.
    Broadcast {
        /// Where announcements come in: an address of this node, or an IPv4 multicast group.
        hear: SocketAddr,
        /// Their mean distance, where they do not tell it themselves.
        interval: Duration,
    },
}

impl NodeLoads {
    /// Two nodes are asked, and waited for 10 ms: as by default in `[load_information]`.
    pub const POLL: Self =
        Self::Poll { size: 2, timeout: Duration::from_millis(10), max_age: Duration::from_millis(1) };
}

/// The configuration of a node.
#[derive(Debug, Clone)]
pub struct CloneConfig {
    /// Its name, also that of its packet program: 1 to 64 letters, digits, `-` and `_`.
    pub name: String,
    /// Where it takes links, and from where it opens them.
    pub listen: SocketAddr,
    /// The key that all nodes share.
    pub key: Key,
    /// The other nodes; 255 at most.
    pub peers: Vec<ClonePeer>,
    /// The network interface at which packets of clients and of other nodes arrive.
    pub interface: String,
    /// The addresses that clients connect to, at this node or at any other one.
    pub vips: Vec<SocketAddr>,
    /// What answers.
    pub serve: ServeConfig,
    /// Says which node answers a request; the same at all nodes. `uri_hash` by default.
    pub policy: PolicyChoice,
    /// Documents that are known to be smaller are answered by the node that accepted the client; 0 by default.
    pub min_bytes: u64,
    /// Bytes of content that an origin that accepted the client sends itself of a document that belongs to another node, whose
    /// clone sends the rest; 0 by default: the clone sends all. All nodes must have the same documents, with the same `ETag`.
    pub first_bytes: u64,
    /// Whether a clone keeps the connection as long as the next requests are its node's own; false by default. Not for answers
    /// that begin at the original, nor where clones are made ahead.
    pub keeps: bool,
    /// For how many pipelined requests to further nodes clones are made ahead; 0 by default.
    pub ahead: usize,
    /// Threads that serve, 1 to 256; as many as there are CPUs by default.
    pub threads: usize,
    /// Most connections at once, clones included; 10,000 by default, 50,000 at most.
    pub max_connections: usize,
    /// Most bytes under way on a connection that is cloned; 4 MiB by default.
    pub state_bytes: usize,
    /// Time for a client to send its next request; 60 s by default.
    pub idle_timeout: Duration,
    /// Longest time for which a client may take no byte of an answer; 30 s by default.
    pub write_timeout: Duration,
    /// Time that requests under way get when the node stops; 10 s by default.
    pub drain_timeout: Duration,
    /// How long a link may be silent before it counts as lost; 1.5 s by default.
    pub link_timeout: Duration,
    /// Counts the requests that are being answered here.
    pub gauge: LoadGauge,
    /// Where the policy's loads come from; [`NodeLoads::Own`] by default.
    pub loads: NodeLoads,
    /// The UDP port at which other nodes tell their loads, at the address of their links; 7401 by default.
    pub load_port: u16,
    /// How often nodes tell one another what a policy has seen that shares this; 1 s by default.
    pub share_period: Duration,
    /// How long what a node has told counts when nothing more is heard of it; 30 s by default.
    pub share_keep: Duration,
    /// The directory of the decision log; none by default.
    pub decision_log: Option<PathBuf>,
    /// The access log; none by default.
    pub access_log: Option<AccessLog>,
    /// Where metrics and the policy's state can be asked for; nowhere by default.
    pub admin: Option<Admin>,
}

const MOST_PEERS: usize = 255;

impl CloneConfig {
    /// The defaults for a node with these properties.
    #[must_use]
    pub fn new(name: impl Into<String>, listen: SocketAddr, key: Key, serve: ServeConfig) -> Self {
        Self {
            name: name.into(),
            listen,
            key,
            peers: Vec::new(),
            interface: String::new(),
            vips: Vec::new(),
            serve,
            policy: PolicyChoice::new(&plimsoll_policy::policies::uri_hash::SPEC),
            min_bytes: 0,
            first_bytes: 0,
            keeps: false,
            ahead: 0,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            max_connections: 10_000,
            state_bytes: 4 << 20,
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
            link_timeout: Duration::from_millis(1500),
            gauge: LoadGauge::new(),
            loads: NodeLoads::Own,
            load_port: 7401,
            share_period: Duration::from_secs(1),
            share_keep: Duration::from_secs(30),
            decision_log: None,
            access_log: None,
            admin: None,
        }
    }

    /// Bounds on what is queued on a connection that travels.
    pub(super) fn queue_limits(&self) -> QueueLimits {
        let limits = QueueLimits::default();
        QueueLimits { send_bytes: self.state_bytes.saturating_sub(limits.receive_bytes), ..limits }
    }

    pub(super) fn check(&self) -> Result<(), AgentError> {
        let wrong = |what: String| Err(AgentError::Config(what));
        if self.vips.is_empty() {
            return wrong("there is no address for clients; name one at least".to_owned());
        }
        check_vips(&self.vips, self.peers.iter().map(|peer| (peer.address.ip(), &*peer.name)))?;
        if self.peers.len() > MOST_PEERS {
            return wrong(format!("{} other nodes; {MOST_PEERS} at most", self.peers.len()));
        }
        for (number, peer) in self.peers.iter().enumerate() {
            if peer.name == self.name || self.peers[..number].iter().any(|other| other.name == peer.name) {
                return wrong(format!(
                    "two nodes are called {} (--name, --clone-peer): give each a name of its own",
                    peer.name
                ));
            }
            if peer.address.ip() == self.listen.ip() || peer.address.is_ipv4() != self.listen.is_ipv4() {
                return wrong(format!(
                    "--clone-peer {}={}: another address is needed, of the same family as {}",
                    peer.name,
                    peer.address,
                    self.listen.ip()
                ));
            }
        }
        self.check_told()?;
        let Self { max_connections, state_bytes, threads, link_timeout, .. } = *self;
        CheckedLimits { max_connections, state_bytes, threads, link_timeout }.check()
    }

    /// Checks what is exchanged and told.
    fn check_told(&self) -> Result<(), AgentError> {
        let wrong = |what: &str| Err(AgentError::Config(what.to_owned()));
        if let Some(Admin { address, token: None, .. }) = &self.admin
            && !address.ip().to_canonical().is_loopback()
        {
            return wrong("--admin: give --admin-token-file, or an address of loopback");
        }
        if self.load_port == 0 {
            return wrong("--clone-load-port: give 1 to 65535");
        }
        if self.share_period < Duration::from_millis(50) || self.share_keep < self.share_period {
            return wrong(
                "what nodes have seen is told every 0.05 s at most, and kept for a period at least",
            );
        }
        match self.loads {
            NodeLoads::Poll { size, .. } if !(1..=8).contains(&size) => wrong("1 to 8 nodes can be asked"),
            NodeLoads::Broadcast { hear, .. } if hear.ip().is_unspecified() || hear.port() == 0 => {
                wrong("--clone-hear: give an address of this node, or a multicast group, and a port")
            }
            NodeLoads::Broadcast { hear, .. } if hear.is_ipv6() && hear.ip().is_multicast() => {
                wrong("--clone-hear: give an IPv4 multicast group, or an address of this node")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> CloneConfig {
        let serve = ServeConfig::Copy("127.0.0.1:8080".parse().unwrap());
        let mut config = CloneConfig::new("a", "10.0.0.1:7400".parse().unwrap(), Key::new([1; 32]), serve);
        config.vips = vec!["10.0.0.9:80".parse().unwrap()];
        config.peers = vec![ClonePeer { name: "b".to_owned(), address: "10.0.0.2:7400".parse().unwrap() }];
        config
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(config().check().is_ok());
        let wrong = |change: fn(&mut CloneConfig)| {
            let mut config = config();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(wrong(|config| config.vips.clear()).contains("no address for clients"));
        for vip in ["127.0.0.1:80", "0.0.0.0:80", "[::1]:80", "224.0.0.1:80"] {
            let mut config = config();
            config.vips = vec![vip.parse().unwrap()];
            assert!(config.check().unwrap_err().to_string().contains("no packet from elsewhere"), "{vip}");
        }
        assert!(wrong(|config| config.name = "b".to_owned()).contains("two nodes are called b"));
        assert!(wrong(|config| config.peers[0].address = config.listen).contains("another address"));
        assert!(
            wrong(|config| config.vips[0] = "10.0.0.2:80".parse().unwrap())
                .contains("b is to be reached by it")
        );
        assert!(wrong(|config| config.threads = 0).contains("0 threads"));
        assert!(wrong(|config| config.max_connections = 0).contains("0 connections"));
        assert!(wrong(|config| config.state_bytes = 0).contains("0 bytes"));
        // A link is looked at several times within this, and no timer waits for nothing.
        assert!(wrong(|config| config.link_timeout = Duration::from_nanos(1)).contains("0.05 s"));
    }
}
