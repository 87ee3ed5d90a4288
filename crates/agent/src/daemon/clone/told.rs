//! What a node exchanges and tells beside its links: loads of nodes, the access log, the admin API.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{MissedTickBehavior, interval};

use super::super::config::AgentError;
use super::super::setup::listen;
use super::super::spawn::spawn_with_runtime;
use super::access::NodeAccessLog;
use super::asks::{AsksNodes, PollAsked};
use super::config::{CloneConfig, NodeLoads};
use super::shared::CloneShared;
use super::{admin, announced, polls};

/// How often lines of the access log are handed over, and it is looked whether the node has ended.
const SWEEP: Duration = Duration::from_millis(250);

/// Sockets for the loads of other nodes.
enum LoadSockets {
    None,
    Poll(UdpSocket),
    /// For inquiries, and for announcements.
    Broadcast(UdpSocket, UdpSocket),
}

/// What is bound before privileges are given away.
pub(super) struct PreparedTold {
    loads: LoadSockets,
    admin: Option<TcpListener>,
}

/// What threads of it need, once there is what they share.
pub(super) struct BegunTold {
    loads: LoadSockets,
    asked: Option<UnboundedReceiver<PollAsked>>,
    admin: Option<TcpListener>,
    /// Where the admin API listens.
    pub(super) admin_address: Option<SocketAddr>,
    writer: Option<JoinHandle<()>>,
}

fn bound(address: SocketAddr) -> Result<UdpSocket, AgentError> {
    let bound = UdpSocket::bind(address).and_then(|socket| {
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    bound.map_err(|error| AgentError::Listen { address, error })
}

/// Where announcements come in: many nodes of a machine may hear a group.
fn hearing(config: &CloneConfig, hear: SocketAddr) -> Result<UdpSocket, AgentError> {
    let socket = bound(hear)?;
    if let (IpAddr::V4(group), IpAddr::V4(own)) = (hear.ip(), config.listen.ip())
        && group.is_multicast()
    {
        let joined = socket.join_multicast_v4(&group, &own);
        joined.map_err(|error| AgentError::Listen { address: hear, error })?;
    }
    Ok(socket)
}

impl PreparedTold {
    /// Binds what is configured.
    ///
    /// # Errors
    /// When an address cannot be listened on.
    pub(super) fn new(config: &CloneConfig) -> Result<Self, AgentError> {
        let any = SocketAddr::new(config.listen.ip(), 0);
        let loads = match config.loads {
            NodeLoads::Own => LoadSockets::None,
            NodeLoads::Poll { .. } => LoadSockets::Poll(bound(any)?),
            NodeLoads::Broadcast { hear, .. } => LoadSockets::Broadcast(bound(any)?, hearing(config, hear)?),
        };
        let admin = config.admin.as_ref().map(|admin| {
            listen(admin.address).map_err(|error| AgentError::Listen { address: admin.address, error })
        });
        Ok(Self { loads, admin: admin.transpose()? })
    }

    /// Opens the access log, whose thread begins. Returns what the node shares, and what its other threads need.
    ///
    /// # Errors
    /// When the log cannot be opened.
    pub(super) fn begin(
        self,
        config: &CloneConfig,
    ) -> Result<((AsksNodes, Option<NodeAccessLog>), BegunTold), AgentError> {
        let Self { loads, admin } = self;
        let access_log = config.access_log.as_ref().map(NodeAccessLog::open).transpose();
        let access_log = access_log.map_err(AgentError::AccessLog)?;
        let (asks, asked) = match &loads {
            LoadSockets::Poll(_) => {
                let (asks, asked) = AsksNodes::new();
                (asks, Some(asked))
            }
            LoadSockets::None | LoadSockets::Broadcast(..) => (AsksNodes::default(), None),
        };
        let (access_log, writer) = access_log.unzip();
        let admin_address = admin.as_ref().and_then(|listener| listener.local_addr().ok());
        Ok(((asks, access_log), BegunTold { loads, asked, admin, admin_address, writer }))
    }
}

impl BegunTold {
    /// Starts the threads, which end once the node has.
    ///
    /// # Errors
    /// When the system provides no threads.
    pub(super) fn start(self, shared: &Arc<CloneShared>) -> Result<Vec<JoinHandle<()>>, AgentError> {
        let mut threads = Vec::new();
        let name = || "clone-loads".to_owned();
        match (self.loads, self.asked) {
            (LoadSockets::Poll(socket), Some(asked)) => {
                let shared = Arc::clone(shared);
                threads.push(spawn_with_runtime(name(), || polls::run(shared, socket, asked))?);
            }
            (LoadSockets::Broadcast(asking, hear), _) => {
                let shared = Arc::clone(shared);
                threads.push(spawn_with_runtime(name(), || announced::run(shared, asking, hear))?);
            }
            _ => {}
        }
        if self.admin.is_some() || shared.access_log.is_some() {
            let shared = Arc::clone(shared);
            let admin = self.admin;
            threads.push(spawn_with_runtime("clone-admin".to_owned(), || tell(shared, admin))?);
        }
        // Ends with its last sender, which the node shares.
        drop(self.writer);
        Ok(threads)
    }
}

async fn tell(shared: Arc<CloneShared>, listener: Option<TcpListener>) {
    let sweep = async {
        let mut sweep = interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !shared.has_ended() {
            sweep.tick().await;
            if let Some(log) = &shared.access_log {
                log.hand_over_all();
            }
        }
    };
    let serve = async {
        match listener.map(tokio::net::TcpListener::from_std) {
            Some(Ok(listener)) => admin::serve(&shared, listener).await,
            Some(Err(error)) => log_failure(&error),
            None => {}
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = sweep => {}
        () = serve => {}
    }
}

fn log_failure(error: &io::Error) {
    tracing::error!(%error, "the admin API cannot be served");
}
