//! `plimsoll publish`: tells the directory of services what a server offers.

use std::net::SocketAddr;
use std::path::PathBuf;

use plimsoll_wire::ServiceKey;

use super::directory::{self, DirectoryArgs, ReplicaArgs};
use super::origin::StopSignals;
use crate::error::CliError;
use crate::log::LogArgs;
use crate::values;

/// Arguments of `publish`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
It publishes until SIGINT or SIGTERM; then it says goodbye, and front-ends send nothing new. It does not look after the
server: front-ends check its health.

Examples:
  plimsoll publish photo-album --address 10.0.0.21:8080 --key directory.key
  plimsoll publish image-store/0 image-store/1 --address 10.0.0.22:8080 --key directory.key --method 'GET /image'
  plimsoll publish photo-album --address 10.0.0.21:8080 --key directory.key --etcd http://10.0.0.5:2379")]
pub(crate) struct Args {
    /// What the server offers: the name of a service, and which partition of its data (0 if none is given)
    #[arg(value_name = "SERVICE[/PARTITION]", required = true, value_parser = directory::partition)]
    partitions: Vec<ServiceKey>,

    /// Address and port at which others reach the server
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = values::address)]
    address: SocketAddr,

    /// File with the key that all nodes share: 64 hexadecimal digits, not readable by others
    #[arg(long, value_name = "FILE")]
    key: PathBuf,

    /// Name of this node, which no other one has: letters, digits, -, _ and .; by default MACHINE-PORT- and four letters that
    /// follow from what is published
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Address and port at which an agent beside the server takes handoffs
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = values::address)]
    agent: Option<SocketAddr>,

    #[command(flatten)]
    replica: ReplicaArgs,

    #[command(flatten)]
    directory: DirectoryArgs,

    #[command(flatten)]
    log: LogArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    args.log.start();
    let offers = args.replica.offers(&args.partitions, args.address, args.agent, None)?;
    let node = directory::node_name(args.name.as_deref(), &offers)?;
    let settings = args.directory.settings(&args.key, Some(node.clone()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Failed(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let mut signals = StopSignals::new()?;
        let published = directory::take_part(settings, &offers)?;
        for offer in &offers {
            tracing::info!("publishing {} at {} as {node}", offer.key, offer.address);
        }
        signals.next().await;
        tokio::select! {
            () = published.leave() => {}
            () = signals.next() => {}
        }
        Ok(())
    })
}
