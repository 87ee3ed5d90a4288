//! `plimsoll services`: what the directory of services has.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_directory::{DirectoryView, DropReason, Replica, ServiceDirectory, TransportSettings};
use plimsoll_report::{Align, Table};
use plimsoll_wire::ServiceKey;

use super::directory::{self, DirectoryArgs};
use crate::error::CliError;
use crate::log::LogArgs;
use crate::{output, values};

/// Nodes are heard several times within this.
const LEAST_WAIT: Duration = Duration::from_secs(3);

/// Arguments of `services`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
With multicast it listens for 3 s, in which a node is heard about four times, however long its own time to live is.

Example:
  plimsoll services --key directory.key
  plimsoll services --key directory.key --json --etcd http://10.0.0.5:2379")]
pub(crate) struct Args {
    /// Only this partition
    #[arg(value_name = "SERVICE[/PARTITION]", value_parser = directory::partition)]
    partition: Option<ServiceKey>,

    /// File with the key that all nodes share
    #[arg(long, value_name = "FILE")]
    key: PathBuf,

    /// How long to listen, in seconds; by default the time to live, and 3 at least
    #[arg(long, value_name = "S", value_parser = values::positive)]
    wait: Option<f64>,

    /// One line of JSON for each replica
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    directory: DirectoryArgs,

    #[command(flatten)]
    log: LogArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    args.log.start();
    let settings = args.directory.settings(&args.key, None)?;
    let wait = match args.wait.map(Duration::try_from_secs_f64) {
        Some(Ok(wait)) => wait,
        Some(Err(error)) => return Err(CliError::Usage(format!("--wait: {error}"))),
        None => settings.ttl.max(LEAST_WAIT),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Failed(format!("cannot start: {error}")))?;
    let mut view = runtime.block_on(listen(settings, wait))?;
    let others = args.partition.as_ref().map(|key| keep_only(&mut view, key));
    match (args.json, view.replicas.is_empty()) {
        // No line for no replica.
        (true, true) => Ok(()),
        (true, false) => output::print(&json(&view)),
        (false, _) => output::print(&table(&view, args.partition.as_ref().zip(others.as_ref()))),
    }
}

/// Hears what there is, for this long at most.
async fn listen(
    settings: plimsoll_directory::DirectorySettings,
    wait: Duration,
) -> Result<DirectoryView, CliError> {
    let is_etcd = matches!(settings.transport, TransportSettings::Etcd(_));
    let directory = directory::take_part(settings, &[])?;
    let mut seen = directory.subscribe();
    // Where nodes tell of themselves, it is never complete.
    let complete = tokio::time::timeout(wait, seen.wait_for(|view| view.is_complete)).await;
    drop(complete);
    let view = DirectoryView::clone(&directory.view());
    // A network in which nobody publishes is none that is away: the log says what may be wrong.
    let is_away = is_etcd || directory.counts().accepted() > 0;
    if let (Some(why), false) = (view.away.as_ref().filter(|_| is_away), view.is_complete) {
        return Err(CliError::Failed(format!("the directory of services is away: {why}")));
    }
    tell_dropped(&directory);
    Ok(view)
}

/// A key or clock that is wrong looks like an empty directory.
fn tell_dropped(directory: &ServiceDirectory) {
    for reason in DropReason::ALL {
        let count = directory.counts().dropped(reason);
        let why = match reason {
            _ if count == 0 => continue,
            DropReason::Forged => ": their nodes have another key",
            DropReason::Stale => {
                ": another process has their node's name, their clocks differ from this one, or they were sent before"
            }
            _ => "",
        };
        tracing::warn!("{count} announcements were dropped as {reason}{why}");
    }
}

fn json(view: &DirectoryView) -> String {
    let line = |replica: &Replica| {
        let Replica { node, offer } = replica;
        let line = serde_json::json!({
            "service": offer.key.service,
            "partition": offer.key.partition,
            "node": node,
            "address": offer.address.to_string(),
            "weight": f64::from(offer.weight_steps) / 256.0,
            "load_inquiry": offer.inquiry.map(|at| at.to_string()),
            "agent": offer.agent.map(|at| at.to_string()),
            "methods": offer.methods,
        });
        format!("{line}\n")
    };
    view.replicas.iter().map(|replica| line(replica)).collect()
}

/// Leaves the replicas of this partition, and returns the partitions of the others.
fn keep_only(view: &mut DirectoryView, key: &ServiceKey) -> BTreeSet<String> {
    let others = view.replicas.iter().filter(|replica| replica.offer.key != *key);
    let others = others.map(|replica| replica.offer.key.to_string()).collect();
    view.replicas.retain(|replica| replica.offer.key == *key);
    others
}

/// That nothing is there, where only this partition is asked for and these others are there.
fn nothing(asked: Option<(&ServiceKey, &BTreeSet<String>)>) -> String {
    match asked {
        Some((key, others)) if !others.is_empty() => {
            let others: Vec<&str> = others.iter().map(String::as_str).collect();
            format!("no replica of {key} is published; there are: {}", others.join(", "))
        }
        _ => "no services are published".to_owned(),
    }
}

fn table(view: &DirectoryView, asked: Option<(&ServiceKey, &BTreeSet<String>)>) -> String {
    if view.replicas.is_empty() {
        return nothing(asked);
    }
    let mut table = Table::new([
        ("service", Align::Left),
        ("node", Align::Left),
        ("address", Align::Left),
        ("weight", Align::Right),
        ("load inquiry", Align::Left),
        ("methods", Align::Left),
    ]);
    for replica in &view.replicas {
        let Replica { node, offer } = &**replica;
        table.row([
            offer.key.to_string(),
            node.clone(),
            offer.address.to_string(),
            (f64::from(offer.weight_steps) / 256.0).to_string(),
            offer.inquiry.map_or_else(String::new, |at| at.to_string()),
            offer.methods.join(", "),
        ]);
    }
    table.to_text_within(output::width())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_directory::ServiceOffer;

    use super::*;

    #[test]
    fn a_partition_that_is_not_there_is_told_with_those_that_are() {
        let key = |text: &str| text.parse::<ServiceKey>().unwrap();
        let offer = |text: &str| ServiceOffer::new(key(text), "10.0.0.1:80".parse().unwrap());
        let replica = |text: &str| Arc::new(Replica { node: "n".to_owned(), offer: offer(text) });
        let all = ["b/1", "a/0", "b/1"].map(replica);
        let shown = |asked: &str, replicas: &[Arc<Replica>]| {
            let mut view = DirectoryView { replicas: replicas.to_vec(), away: None, is_complete: true };
            let (asked, others) = (key(asked), keep_only(&mut view, &key(asked)));
            table(&view, Some((&asked, &others)))
        };
        assert_eq!(shown("nosuch", &all), "no replica of nosuch/0 is published; there are: a/0, b/1");
        assert_eq!(shown("nosuch", &[]), "no services are published");
        let one = shown("a", &all);
        assert!(one.contains("a/0") && !one.contains("b/1"), "{one}");
    }
}
