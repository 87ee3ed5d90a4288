//! Servers and clients of one run, each on its node of the lab.

use std::time::{Duration, Instant};

use plimsoll_agent::load::{LoadConfig, LoadRole, PreparedLoad};
use plimsoll_lab::{Lab, Node};
use plimsoll_wire::Key;

use super::access::{ClientTally, PlannedAccess};
use super::choosing::{HowToChoose, failed, server_names};
use super::client_node::ClientNode;
use super::late::Lateness;
use super::server_node::{PreparedServer, ServerCounts};
use crate::ExperimentError;

/// Time after which clients start, so that all have begun to wait.
const AHEAD: Duration = Duration::from_millis(300);
/// How long answers are waited for after the last arrival.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where runs are made: the first nodes are servers, those after them clients; the front-end's node has the load index manager.
#[derive(Clone, Copy)]
pub(super) struct NodeCluster<'a> {
    pub(super) lab: &'a Lab,
    pub(super) servers: usize,
    pub(super) key: &'a Key,
}

/// By what servers are chosen, as a run is told.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ChosenBy {
    Policy { policy: String, discard_after_ns: u64 },
    Manager,
    Told,
}

impl NodeCluster<'_> {
    /// Makes the accesses of each client.
    pub(super) fn run(
        &self,
        by: &ChosenBy,
        plans: Vec<Vec<PlannedAccess>>,
        lateness: Option<Lateness>,
        seed: u64,
    ) -> Result<(ClientTally, ServerCounts), ExperimentError> {
        let prepared = (0..self.servers).map(|server| self.prepare(server)).collect::<Result<Vec<_>, _>>()?;
        let addresses = prepared.iter().map(PreparedServer::addresses).collect::<Result<Vec<_>, _>>();
        let addresses = addresses.map_err(failed("cannot tell the address of a server"))?;
        let manager = if *by == ChosenBy::Manager { Some(self.start_manager()?) } else { None };
        let how = match (by, &manager) {
            (ChosenBy::Policy { policy, discard_after_ns }, _) => {
                HowToChoose::Policy { policy: policy.clone(), discard_after_ns: *discard_after_ns }
            }
            (_, Some(manager)) => HowToChoose::Manager(manager.address()),
            _ => HowToChoose::Told,
        };
        let mut clients = Vec::new();
        for (number, plan) in plans.into_iter().enumerate() {
            let node = self.lab.node(Node::Backend(self.servers + number))?;
            let own_seed = seed.wrapping_mul(1000).wrapping_add(number as u64);
            let client = node.run(|| ClientNode::connect(&addresses, &how, self.key, own_seed))??;
            clients.push((client, plan));
        }
        let start = |(number, server): (usize, PreparedServer)| {
            let own_seed = seed.wrapping_mul(1000).wrapping_add(500 + number as u64);
            server.start(clients.len(), self.key, lateness, own_seed)
        };
        let servers = prepared.into_iter().enumerate().map(start).collect::<Result<Vec<_>, _>>();
        let servers = servers.map_err(failed("cannot start a server"))?;
        let tally = run_clients(clients);
        let mut counts = ServerCounts::default();
        for server in servers {
            let of = server.stop().map_err(failed("a server of the prototype"))?;
            counts.accesses += of.accesses;
            counts.inquiries += of.inquiries;
            counts.late += of.late;
        }
        if let Some(manager) = manager {
            manager.stop();
        }
        Ok((tally?, counts))
    }

    /// Opens a server's sockets in its node.
    pub(super) fn prepare(&self, server: usize) -> Result<PreparedServer, ExperimentError> {
        let node = self.lab.node(Node::Backend(server))?;
        node.run(|| PreparedServer::bind(node.address()))?.map_err(failed("cannot open a server's sockets"))
    }

    fn start_manager(&self) -> Result<plimsoll_agent::load::LoadService, ExperimentError> {
        let node = self.lab.node(Node::FrontEnd)?;
        let role = LoadRole::Index(server_names(self.servers));
        let config = LoadConfig::new((node.address(), 0).into(), self.key.clone(), role);
        let started = node.run(|| PreparedLoad::new(config)?.start())?;
        started.map_err(|error| ExperimentError::Failed(format!("the load index manager: {error}")))
    }
}

fn run_clients(clients: Vec<(ClientNode, Vec<PlannedAccess>)>) -> Result<ClientTally, ExperimentError> {
    let start = Instant::now() + AHEAD;
    let tallies: Vec<Result<ClientTally, ExperimentError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .into_iter()
            .map(|(client, plan)| scope.spawn(move || client.run(plan, start, PATIENCE)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut sum = ClientTally::default();
    for tally in tallies {
        sum.add(tally?);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use plimsoll_lab::LabConfig;
    use plimsoll_studies::fine_grain::Grain;

    use super::super::choosing::NOTHING_DISCARDED_NS;
    use super::super::late::PAPER;
    use super::super::workload::Sequence;
    use super::*;

    const ACCESSES: u64 = 60;

    /// Needs root.
    #[test]
    fn every_access_is_answered_and_every_poll_asks_as_many_as_it_is_told() {
        let lab = Lab::build(&LabConfig { backends: 5, ..LabConfig::default() }).unwrap();
        let key = Key::generate().unwrap();
        let cluster = NodeCluster { lab: &lab, servers: 3, key: &key };
        let plans = || Sequence::new(Grain::Fine, 60, 1).unwrap().stretched(0.5, 3).dealt(2, 1);
        let policy = |policy: &str| ChosenBy::Policy {
            policy: policy.to_owned(),
            discard_after_ns: NOTHING_DISCARDED_NS,
        };
        for (by, size) in [
            (policy("random"), 0),
            (policy("random_polling:size=2"), 2),
            (policy("random_polling:size=3"), 3),
            (ChosenBy::Manager, 0),
        ] {
            let (tally, counts) = cluster.run(&by, plans(), Some(PAPER), 1).unwrap();
            assert_eq!((tally.sent, tally.answered.len() as u64), (ACCESSES, ACCESSES), "{by:?}");
            assert_eq!(counts.accesses, ACCESSES, "{by:?}");
            assert_eq!(tally.inquiries, size * ACCESSES, "{by:?}");
            assert_eq!((tally.polls, tally.discarded), (if size > 0 { ACCESSES } else { 0 }, 0), "{by:?}");
        }
        // A server that is told gets all accesses.
        let told: Vec<_> = Sequence::new(Grain::Fine, 20, 1).unwrap().stretched(0.5, 1).told(2).collect();
        let (tally, counts) = cluster.run(&ChosenBy::Told, vec![told, Vec::new()], None, 1).unwrap();
        assert_eq!((tally.answered.len(), counts.accesses, counts.inquiries), (20, 20, 0));
    }
}
