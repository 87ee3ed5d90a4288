//! Records at an interface.

use std::time::Duration;

use plimsoll_datapath::tap::{PacketTap, TapConfig};
use plimsoll_sniffer::{Ends, Exchanges, SeenExchange, Segment};

use super::collected::{Collected, RecordedRequest};
use super::ending::{Losses, RecordEnd};
use super::options::Args;
use crate::error::CliError;

/// The most connections that are followed at a time.
pub(super) const MOST_CONNECTIONS: usize = 100_000;
/// How long packets are waited for, and so how late an end may be noticed.
const WAIT: Duration = Duration::from_millis(100);

/// The tap. Takes CAP_NET_RAW.
pub(super) fn open(args: &Args, interface: &str) -> Result<PacketTap, CliError> {
    let (interface, ports) = (interface.to_owned(), args.ports.clone());
    let config = TapConfig { interface, ports, copy_bytes: args.copy_bytes };
    let tap = PacketTap::open(&config).map_err(|error| CliError::Failed(error.to_string()))?;
    eprintln!("Recording what passes at {}.", config.interface);
    Ok(tap)
}

pub(super) fn record(
    args: &Args,
    mut tap: PacketTap,
    ending: &RecordEnd,
    collected: &mut Collected,
) -> Result<Losses, CliError> {
    let failed = |error: plimsoll_datapath::DatapathError| CliError::Failed(error.to_string());
    let mut exchanges = Exchanges::new(MOST_CONNECTIONS);
    let mut seen = 0_u64;
    loop {
        let (is_last, before) = (ending.has_come(), seen);
        let read = tap.read(WAIT, &mut |found| {
            seen += 1;
            let from_client = args.ports.contains(&found.destination.port());
            let (client, server) = match from_client {
                true => (found.source, found.destination),
                false => (found.destination, found.source),
            };
            let segment = Segment {
                at_ns: found.at_ns,
                from_client,
                syn: found.syn,
                end: found.end,
                seq: found.seq,
                ack: found.ack,
                data_bytes: found.data_bytes,
                data: found.data,
            };
            exchanges.take(Ends { client, server }, &segment, &mut |exchange| take(collected, &exchange));
        });
        read.map_err(failed)?;
        // What passed before the end is read, too, as long as it does not come faster than it is read.
        let is_drained = seen == before || ending.is_overdue();
        if collected.is_full() || (is_last && is_drained) {
            break;
        }
    }
    exchanges.close(&mut |exchange| take(collected, &exchange));
    let statistics = tap.statistics().map_err(failed)?;
    Ok(Losses {
        packets: statistics.seen,
        lost: statistics.lost,
        refused: exchanges.refused(),
        connections: Some(exchanges.connections()),
    })
}

fn take(collected: &mut Collected, exchange: &SeenExchange) {
    collected.take(&RecordedRequest {
        at_ns: exchange.at_ns,
        client: exchange.ends.client.ip(),
        method: &exchange.method,
        target: &exchange.target,
        http11: exchange.http11,
        status: exchange.status,
        size_bytes: exchange.size_bytes,
        unread: exchange.unread,
        first_byte_ns: exchange.first_byte_ns,
    });
}
