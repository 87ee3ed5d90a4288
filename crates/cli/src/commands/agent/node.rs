//! The options by which a node of Socket Cloning exchanges loads, and tells of itself.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_agent::daemon::{CloneConfig, NodeLoads};
use plimsoll_config::{AccessLog, AccessLogFormat, Admin, admin_token};
use plimsoll_datapath::privileges::{FileAccess, FileNeed};

use crate::error::CliError;
use crate::values;

/// Where the loads come from by which a node's policy decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum NodeLoadsFrom {
    /// What this node has given to others and to itself
    Own,
    /// Other nodes are asked before a choice
    Poll,
    /// Other nodes announce theirs
    Broadcast,
}

/// The form of an access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LineFormat {
    /// As Apache and nginx write it
    Combined,
    /// An object for each request
    Json,
}

/// Options of a node.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Nodes of Socket Cloning")]
pub(crate) struct NodeArgs {
    /// Where the loads come from by which --clone-policy decides; nodes tell theirs by --load-listen, and --load-announce
    #[arg(long, value_enum, value_name = "FROM", default_value = "own", requires = "clone_peers")]
    clone_loads: NodeLoadsFrom,

    /// The UDP port at which other nodes tell their loads
    #[arg(long, value_name = "PORT", default_value_t = 7401, value_parser = clap::value_parser!(u16).range(1..))]
    #[arg(requires = "clone_peers")]
    clone_load_port: u16,

    /// Where announcements of other nodes come in, with --clone-loads broadcast: an address of this node, or an IPv4 multicast group
    #[arg(long, value_name = "ADDRESS:PORT", requires = "clone_peers", value_parser = values::address)]
    clone_hear: Option<SocketAddr>,

    /// Log every input of the policy, with each decision, in this directory, for `plimsoll replay`
    #[arg(long, value_name = "DIR", requires = "clone_peers")]
    decision_log: Option<PathBuf>,

    /// Write a line for each request to this file, or with - to the standard output
    #[arg(long, value_name = "FILE", requires = "clone_peers")]
    access_log: Option<PathBuf>,

    /// The form of its lines
    #[arg(long, value_enum, value_name = "FORM", default_value = "combined", requires = "access_log")]
    access_log_format: LineFormat,

    /// Serve metrics and the policy's state here; without a token, at an address of loopback
    #[arg(long, value_name = "ADDRESS:PORT", requires = "clone_peers", value_parser = values::address)]
    admin: Option<SocketAddr>,

    /// File with the token that each request to --admin must carry
    #[arg(long, value_name = "FILE", requires = "admin")]
    admin_token_file: Option<PathBuf>,
}

impl NodeArgs {
    /// Whether other nodes need this one's load.
    pub(super) fn needs_load(&self) -> bool {
        self.clone_loads != NodeLoadsFrom::Own
    }

    /// Files that the node needs once it runs.
    pub(super) fn needs(&self) -> Vec<FileNeed> {
        let log =
            self.decision_log.as_ref().map(|path| FileNeed::new(path, FileAccess::Fill, "the decision log"));
        let access = self.access_log.as_ref().filter(|path| path.as_path() != Path::new("-"));
        let access = access.map(|path| FileNeed::new(path, FileAccess::Append, "the access log"));
        log.into_iter().chain(access).collect()
    }

    /// Enters them.
    pub(super) fn apply(&self, config: &mut CloneConfig, interval: Duration) -> Result<(), CliError> {
        config.loads = match (self.clone_loads, self.clone_hear) {
            (NodeLoadsFrom::Own, None) => NodeLoads::Own,
            (NodeLoadsFrom::Poll, None) => NodeLoads::POLL,
            (NodeLoadsFrom::Broadcast, Some(hear)) => NodeLoads::Broadcast { hear, interval },
            (NodeLoadsFrom::Broadcast, None) => {
                let what = "--clone-loads broadcast: give --clone-hear, where announcements come in";
                return Err(CliError::Usage(what.to_owned()));
            }
            (_, Some(_)) => {
                return Err(CliError::Usage("--clone-hear: only with --clone-loads broadcast".to_owned()));
            }
        };
        config.load_port = self.clone_load_port;
        config.decision_log.clone_from(&self.decision_log);
        config.access_log = self.access_log.as_ref().map(|path| AccessLog {
            file: (path.as_path() != Path::new("-")).then(|| path.clone()),
            format: match self.access_log_format {
                LineFormat::Combined => AccessLogFormat::Combined,
                LineFormat::Json => AccessLogFormat::Json,
            },
        });
        let token = self.admin_token_file.as_deref().map(admin_token).transpose();
        let token = token.map_err(|error| CliError::Failed(format!("--admin-token-file: {error}")))?;
        config.admin = self.admin.map(|address| Admin { address, token, is_unasked: false });
        Ok(())
    }
}
