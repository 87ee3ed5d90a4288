//! The configuration of an agent, and its errors.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_datapath::DatapathError;
use plimsoll_wire::Key;
use plimsoll_wire::load::LoadGauge;
use plimsoll_wire::session::HandshakeError;

use plimsoll_origin::{OriginConfig, OriginError};

/// A front-end that may open links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontEnd {
    /// The name by which it introduces itself.
    pub name: String,
    /// Where it comes from.
    pub address: IpAddr,
}

/// What answers requests on connections taken over.
#[derive(Debug, Clone)]
pub enum ServeConfig {
    /// The origin.
    Origin(Box<OriginConfig>),
    /// An HTTP server at this address, to which requests and responses are copied.
    Copy(SocketAddr),
    /// A server with the accept shim, which listens on this Unix socket.
    Shim(PathBuf),
}

/// The configuration of an agent.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Its name, which front-ends are told; also that of its packet programs: 1 to 64 letters, digits, `-` and `_`.
    pub name: String,
    /// Where it listens for links.
    pub listen: SocketAddr,
    /// The key that it shares with the front-ends.
    pub key: Key,
    /// Who may open links; a name may come several times, with several addresses.
    pub front_ends: Vec<FrontEnd>,
    /// The network interface at which packets for the virtual addresses arrive.
    pub interface: String,
    /// The virtual addresses that clients connect to.
    pub vips: Vec<SocketAddr>,
    /// What answers.
    pub serve: ServeConfig,
    /// Where the origin listens besides, so that front-ends can check and proxy; nowhere by default. Only with
    /// [`ServeConfig::Origin`].
    pub origin_listen: Option<SocketAddr>,
    /// Threads that serve; 1 to 256. As many as there are CPUs by default.
    pub threads: usize,
    /// Most connections that it has at once; 10,000 by default, 50,000 at most.
    pub max_connections: usize,
    /// Most handoffs that may be unanswered on a link; 256 by default.
    pub window: u32,
    /// Most bytes under way on a connection that is taken or given back; 4 MiB by default, 1 to 11 MiB.
    pub state_bytes: usize,
    /// Time for a client to send its next request; 60 s by default.
    pub idle_timeout: Duration,
    /// Longest time for which a client may take no byte of a response, and the server behind the agent send none; 30 s by
    /// default.
    pub write_timeout: Duration,
    /// Time that requests under way get when the agent stops; 10 s by default.
    pub drain_timeout: Duration,
    /// How long a link may be silent before it counts as lost; 1.5 s by default.
    pub link_timeout: Duration,
    /// How long a front-end whose link was silent has to open another. Then clients that acknowledge nothing are reset. 1.25 s
    /// by default.
    pub lost_grace: Duration,
    /// Counts the requests that are being answered here; a gauge of its own by default.
    pub gauge: LoadGauge,
}

/// Leases that the packet programs have room for: those of connections, and those of closed ones for some time.
pub(super) const LEASES: u32 = 262_144;
const MOST_CONNECTIONS: usize = 50_000;
const STATE_BYTES: std::ops::RangeInclusive<usize> = 1 << 20..=11 << 20;
/// Most threads that serve.
pub(super) const MOST_THREADS: usize = 256;
/// Shorter time-outs expire while the other side merely waits for a CPU.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(50);

impl AgentConfig {
    /// The defaults for an agent with these properties.
    #[must_use]
    pub fn new(name: impl Into<String>, listen: SocketAddr, key: Key, serve: ServeConfig) -> Self {
        Self {
            name: name.into(),
            listen,
            key,
            front_ends: Vec::new(),
            interface: String::new(),
            vips: Vec::new(),
            serve,
            origin_listen: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            max_connections: 10_000,
            window: 256,
            state_bytes: 4 << 20,
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
            link_timeout: Duration::from_millis(1500),
            lost_grace: Duration::from_millis(1250),
            gauge: LoadGauge::new(),
        }
    }

    pub(super) fn check(&self) -> Result<(), AgentError> {
        let wrong = |what: String| Err(AgentError::Config(what));
        if self.front_ends.is_empty() {
            return wrong("no front-end may open links; name one at least".to_owned());
        }
        if self.vips.is_empty() {
            return wrong("there is no virtual address; name one at least".to_owned());
        }
        let front_ends = self.front_ends.iter().map(|front_end| (front_end.address, &*front_end.name));
        let own = [Some(self.listen), self.origin_listen].into_iter().flatten();
        check_vips(&self.vips, front_ends.chain(own.map(|own| (own.ip(), "this agent"))))?;
        let Self { max_connections, state_bytes, threads, link_timeout, .. } = *self;
        CheckedLimits { max_connections, state_bytes, threads, link_timeout }.check()?;
        if self.window == 0 {
            return wrong("a window of no handoffs lets none come".to_owned());
        }
        if self.origin_listen.is_some() && !matches!(self.serve, ServeConfig::Origin(_)) {
            return wrong(
                "--origin-listen: only an origin listens there; give --serve origin:…, or leave --origin-listen out".to_owned(),
            );
        }
        Ok(())
    }
}

/// Checks addresses for clients: none may be one by which somebody of `others` is reached. This machine takes packets for it as its own, and
/// an agent's guard drops what is sent from it outside a client's connection.
pub(super) fn check_vips<'a>(
    vips: &[SocketAddr],
    mut others: impl Iterator<Item = (IpAddr, &'a str)>,
) -> Result<(), AgentError> {
    let is_nowhere = |vip: &&SocketAddr| {
        let ip = vip.ip().to_canonical();
        ip.is_loopback() || ip.is_unspecified() || ip.is_multicast()
    };
    if let Some(vip) = vips.iter().find(is_nowhere) {
        let what = format!("{} cannot be an address for clients: no packet from elsewhere has it", vip.ip());
        return Err(AgentError::Config(what));
    }
    let is_vip = |ip: &IpAddr| vips.iter().any(|vip| vip.ip().to_canonical() == ip.to_canonical());
    match others.find(|(ip, _)| is_vip(ip)) {
        Some((ip, who)) => Err(AgentError::Config(format!(
            "{ip} cannot be an address for clients here: {who} is to be reached by it"
        ))),
        None => Ok(()),
    }
}

/// Numbers of agents, and of nodes of Socket Cloning, that have bounds.
pub(super) struct CheckedLimits {
    pub(super) max_connections: usize,
    pub(super) state_bytes: usize,
    pub(super) threads: usize,
    pub(super) link_timeout: Duration,
}

impl CheckedLimits {
    pub(super) fn check(&self) -> Result<(), AgentError> {
        let wrong = |what: String| Err(AgentError::Config(what));
        if !(1..=MOST_CONNECTIONS).contains(&self.max_connections) {
            return wrong(format!(
                "{} connections cannot be the most; give 1 to {MOST_CONNECTIONS}",
                self.max_connections
            ));
        }
        if !STATE_BYTES.contains(&self.state_bytes) {
            return wrong(format!(
                "{} bytes cannot be the most of a state; give {} to {}",
                self.state_bytes,
                STATE_BYTES.start(),
                STATE_BYTES.end()
            ));
        }
        if !(1..=MOST_THREADS).contains(&self.threads) {
            return wrong(format!("there cannot be {} threads; give 1 to {MOST_THREADS}", self.threads));
        }
        if self.link_timeout < SHORTEST_TIMEOUT {
            return wrong(format!(
                "a link cannot be lost after {:?}; give 0.05 s at least",
                self.link_timeout
            ));
        }
        Ok(())
    }
}

/// Why an agent does not start or stop.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// The address for links cannot be listened on.
    #[error("cannot listen on {address}: {error}; give an address of this machine and a port that is free")]
    Listen {
        /// The address as it was given.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// The decision log cannot be opened.
    #[error("cannot open the decision log in {}: {error}; give a directory that can be written", directory.display())]
    DecisionLog {
        /// Where it was to be.
        directory: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The access log cannot be opened.
    #[error("cannot open the access log: {0}")]
    AccessLog(io::Error),
    /// The kernel refused a request.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    /// Connections cannot be restored.
    #[error(
        "cannot prepare to restore connections: {0}; the agent needs CAP_NET_ADMIN and CAP_BPF: run it as root, or grant them"
    )]
    Repair(io::Error),
    /// The origin's configuration is invalid.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// The name cannot be sent.
    #[error(transparent)]
    Name(#[from] HandshakeError),
    /// The system provides no thread, timer or random number.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine would take packets of the front-end for its own, or send nothing from where its links are.
    #[test]
    fn addresses_of_the_machines_are_none_for_clients() {
        let serve = ServeConfig::Copy("127.0.0.1:8080".parse().unwrap());
        let mut config = AgentConfig::new("a", "10.0.0.21:7400".parse().unwrap(), Key::new([1; 32]), serve);
        config.front_ends = vec![FrontEnd { name: "f".to_owned(), address: [10, 0, 0, 11].into() }];
        let checked = |config: &AgentConfig, vip: &str| {
            let vips = vec!["10.0.0.10:80".parse().unwrap(), vip.parse().unwrap()];
            AgentConfig { vips, ..config.clone() }.check().map_err(|error| error.to_string())
        };
        assert_eq!(checked(&config, "10.0.0.9:80"), Ok(()));
        config.origin_listen = Some("10.0.0.22:8080".parse().unwrap());
        let checked = |vip: &str| checked(&config, vip);
        assert!(checked("10.0.0.11:80").unwrap_err().contains("f is to be reached by it"));
        assert!(checked("10.0.0.21:81").unwrap_err().contains("this agent is to be reached by it"));
        assert!(checked("10.0.0.22:81").unwrap_err().contains("this agent is to be reached by it"));
        assert!(checked("[::ffff:10.0.0.11]:80").unwrap_err().contains("f is to be reached by it"));
        assert!(checked("127.0.0.1:80").unwrap_err().contains("no packet from elsewhere"));
    }
}
