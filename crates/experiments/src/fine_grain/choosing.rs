//! How a client of the prototype comes to a server: by a policy in the core, by the load index manager, or as it is told.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use plimsoll_policy::{AdmissionControl, BuildContext, Cluster, Core, PolicyChoice};
use plimsoll_wire::load::{IndexClient, LoadKeys};
use plimsoll_wire::{Key, random};

use crate::ExperimentError;

/// How servers are chosen.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum HowToChoose {
    /// By this policy, such as `random_polling:size=3`. Polls end after this time, whatever is unanswered.
    Policy { policy: String, discard_after_ns: u64 },
    /// By the load index manager at this address.
    Manager(SocketAddr),
    /// As each access says.
    Told,
}

/// Polls from which nothing is discarded end after this time: an inquiry that was lost has to end, too.
pub(super) const NOTHING_DISCARDED_NS: u64 = 2_000_000_000;

/// What chooses.
pub(super) enum Chooser {
    Core(Box<Core>),
    Manager(Box<IndexClient>, UdpSocket),
    Told,
}

/// Names of the servers, for the load index manager.
pub(super) fn server_names(servers: usize) -> Vec<String> {
    (0..servers).map(|server| format!("s{server}")).collect()
}

/// Accesses that a client has at a time at most.
const MOST_ACCESSES: usize = 100_000;

impl Chooser {
    /// Opens its socket, if it has one, in the network of the calling thread.
    pub(super) fn new(
        how: &HowToChoose,
        servers: usize,
        key: &Key,
        seed: u64,
    ) -> Result<Self, ExperimentError> {
        match how {
            HowToChoose::Told => Ok(Self::Told),
            HowToChoose::Policy { policy, .. } => {
                let choice: PolicyChoice = policy
                    .parse()
                    .map_err(|error| ExperimentError::Failed(format!("the policy `{policy}`: {error}")))?;
                let context = BuildContext { seed, ..BuildContext::default() };
                let policy = choice.build(&context)?;
                let core = Core::new(policy, Cluster::new(servers), AdmissionControl::UNLIMITED);
                Ok(Self::Core(core.into()))
            }
            HowToChoose::Manager(address) => {
                let open = || -> io::Result<_> {
                    let socket = UdpSocket::bind("0.0.0.0:0")?;
                    socket.connect(address)?;
                    socket.set_nonblocking(true)?;
                    Ok((socket, random()?))
                };
                let (socket, client) = open().map_err(failed("cannot reach the load index manager"))?;
                let names = server_names(servers);
                Ok(Self::Manager(
                    IndexClient::new(LoadKeys::new(key), client, &names, MOST_ACCESSES).into(),
                    socket,
                ))
            }
        }
    }
}

/// An error of the system, with what was tried.
pub(super) fn failed(what: &str) -> impl Fn(io::Error) -> ExperimentError {
    move |error| ExperimentError::Failed(format!("{what}: {error}"))
}
