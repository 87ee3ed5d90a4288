//! What an agent publishes of itself.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use plimsoll_directory::{DirectorySettings, ServiceOffer};
use plimsoll_wire::ServiceKey;

use super::super::directory::{self, DirectoryArgs, ReplicaArgs};
use super::super::origin::StopSignals;
use crate::error::CliError;
use crate::values;

/// What the agent tells the directory of services.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Directory of services")]
pub(crate) struct PublishArgs {
    /// Publish what is served here: the name of a service, and which partition of its data (0 if none is given); may be repeated
    #[arg(long = "publish", value_name = "SERVICE[/PARTITION]", value_parser = directory::partition)]
    partitions: Vec<ServiceKey>,

    /// Address and port at which front-ends proxy to what is served; by default that of --origin-listen
    #[arg(long, value_name = "ADDRESS:PORT", requires = "partitions", value_parser = values::address)]
    publish_address: Option<SocketAddr>,

    /// Name of this node, which no other one has; by default MACHINE-PORT- and four letters that follow from what is published
    #[arg(long, value_name = "NAME", requires = "partitions")]
    publish_name: Option<String>,

    /// File with the key of the directory; by default that of --key
    #[arg(long, value_name = "FILE", requires = "partitions")]
    directory_key: Option<PathBuf>,

    #[command(flatten)]
    replica: ReplicaArgs,

    #[command(flatten)]
    directory: DirectoryArgs,
}

impl PublishArgs {
    /// What to publish of an agent, if anything, whose origin, takeover of connections and load are `at` these addresses; what is
    /// given overrules them, and `key`.
    pub(super) fn published(&self, at: ServedAt, key: &Path) -> Result<Option<PublishedReplicas>, CliError> {
        if self.partitions.is_empty() {
            return Ok(None);
        }
        let Some(address) = self.publish_address.or(at.origin) else {
            return Err(CliError::Usage(
                "--publish: give --publish-address, where front-ends proxy to what is served".to_owned(),
            ));
        };
        let offers = self.replica.offers(&self.partitions, address, at.listen, at.load)?;
        let node = directory::node_name(self.publish_name.as_deref(), &offers)?;
        let settings = self.directory.settings(self.directory_key.as_deref().unwrap_or(key), Some(node))?;
        Ok(Some((settings, offers)))
    }
}

/// Where an agent serves what.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServedAt {
    /// Front-ends hand connections over.
    pub(super) listen: Option<SocketAddr>,
    /// Its origin answers.
    pub(super) origin: Option<SocketAddr>,
    /// It tells its load.
    pub(super) load: Option<SocketAddr>,
}

/// A node's settings and what it offers.
pub(super) type PublishedReplicas = (DirectorySettings, Vec<ServiceOffer>);

/// Publishes what there is to publish, until a signal comes.
pub(super) fn take_part_until(
    published: Option<PublishedReplicas>,
    runtime: &tokio::runtime::Runtime,
    signals: &mut StopSignals,
) -> Result<(), CliError> {
    runtime.block_on(async {
        let directory = match published {
            Some((settings, offers)) => Some(directory::take_part(settings, &offers)?),
            None => None,
        };
        signals.next().await;
        // First nothing new comes, then what is there ends.
        if let Some(directory) = directory {
            directory.leave().await;
        }
        Ok(())
    })
}
