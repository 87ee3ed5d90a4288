//! The cable between a node and the switch, with what is in it.

use std::fs;

use crate::commands;
use crate::conditions::Conditions;
use crate::emulator::chance::mix;
use crate::error::LabError;
use crate::link_forwarder::{DirectionSetup, LinkForwarder};
use crate::link_statistics::LinkStatistics;
use crate::node::Node;
use crate::node_handle::{NodeHandle, enter};
use crate::splice;

/// The cable of one node. Of two things of one kind, the first is of the frames that the node sends.
#[derive(Debug, Default)]
pub(crate) struct Cable {
    conditions: [Conditions; 2],
    forwarder: Option<LinkForwarder>,
    /// Which of its ends limits the rate: `eth0`, and the port of the switch.
    limited: [bool; 2],
}

/// Where a cable is.
#[derive(Clone, Copy)]
pub(crate) struct CablePlace<'a> {
    pub(crate) node: NodeHandle<'a>,
    pub(crate) switch: NodeHandle<'a>,
    pub(crate) seed: u64,
    /// The CPUs of the thread that forwards.
    pub(crate) cpus: Option<&'a [usize]>,
}

impl Cable {
    pub(crate) fn conditions(&self) -> [Conditions; 2] {
        self.conditions
    }

    /// The interface whose other end is the node's `eth0`.
    pub(crate) fn port(&self, node: Node) -> String {
        if self.forwarder.is_some() { splice::wire(node) } else { node.to_string() }
    }

    /// Puts these conditions in force, which somebody has checked.
    pub(crate) fn set(&mut self, place: CablePlace<'_>, conditions: [Conditions; 2]) -> Result<(), LabError> {
        let need_emulator = conditions.iter().any(Conditions::need_emulator);
        if need_emulator != self.forwarder.is_some() {
            // The queue of the port would go with it, or stay at the wrong place.
            self.limit(place, [None, None])?;
        }
        match &self.forwarder {
            Some(forwarder) if need_emulator => forwarder.set(conditions)?,
            Some(_) => self.take_out(place)?,
            None if need_emulator => self.put_in(place, conditions)?,
            None => {}
        }
        self.limit(place, conditions.each_ref().map(Conditions::rate_queue))?;
        self.conditions = conditions;
        Ok(())
    }

    fn put_in(&mut self, place: CablePlace<'_>, conditions: [Conditions; 2]) -> Result<(), LabError> {
        let node = place.node.node();
        let setup = |direction: usize, from| {
            let seed = mix(place.seed ^ mix(place_number(node) * 2 + direction as u64));
            DirectionSetup { from, conditions: conditions[direction], seed }
        };
        let forwarder = LinkForwarder::start(place.cpus.map(<[usize]>::to_vec), || {
            let [from_node, to_node] = splice::insert(place.switch, node)?;
            Ok([setup(0, from_node), setup(1, to_node)])
        })?;
        self.forwarder = Some(forwarder);
        Ok(())
    }

    /// Frames that are held leave at once.
    fn take_out(&mut self, place: CablePlace<'_>) -> Result<(), LabError> {
        self.forwarder = None;
        splice::remove(place.switch, place.node.node())
    }

    /// Limits the rate at both ends by these queues of `tc`, or not.
    fn limit(&mut self, place: CablePlace<'_>, queues: [Option<String>; 2]) -> Result<(), LabError> {
        let ends = [(place.node, "eth0".to_owned()), (place.switch, place.node.node().to_string())];
        for (index, ((owner, interface), queue)) in ends.into_iter().zip(queues).enumerate() {
            let (verb, words) = match queue {
                Some(queue) => ("replace", format!("root {queue}")),
                None if self.limited[index] => ("del", "root".to_owned()),
                None => continue,
            };
            let mut command = enter(owner.pid(), "tc");
            command.args(["qdisc", verb, "dev", &interface]).args(words.split(' '));
            commands::run(&mut command, "").map_err(unsupported)?;
            self.limited[index] = verb == "replace";
        }
        Ok(())
    }

    /// What was counted; `None` without an emulator.
    pub(crate) fn statistics(&self, place: CablePlace<'_>) -> Result<Option<LinkStatistics>, LabError> {
        let Some(forwarder) = &self.forwarder else { return Ok(None) };
        let [mut from_node, mut to_node] = forwarder.statistics()?;
        let [inner, port] = splice::taps(place.node.node()).map(|tap| missed(place.switch, &tap));
        (from_node.missed, to_node.missed) = (inner?, port?);
        Ok(Some(LinkStatistics { from_node, to_node }))
    }
}

/// Frames that the kernel dropped in front of a TAP interface.
fn missed(switch: NodeHandle<'_>, tap: &str) -> Result<u64, LabError> {
    let file = switch.root().join(format!("sys/class/net/{tap}/statistics/tx_dropped"));
    let text =
        fs::read_to_string(&file).map_err(|e| LabError::system(format!("read {}", file.display()), e))?;
    text.trim().parse().map_err(|_| LabError::Invalid(format!("{} is no number: {text}", file.display())))
}

/// A number that no other node has.
fn place_number(node: Node) -> u64 {
    match node {
        Node::Switch => 0,
        Node::FrontEnd => 1,
        Node::Client => 2,
        Node::Backend(number) => 3 + number as u64,
    }
}

/// Explains the kernel's error when it lacks the queue.
fn unsupported(error: LabError) -> LabError {
    match error {
        LabError::Command { printed, .. } if printed.contains("qdisc kind is unknown") => {
            LabError::Unsupported {
                what: "limiting the rate of a link".to_owned(),
                why: "the kernel lacks sch_tbf".to_owned(),
            }
        }
        other => other,
    }
}
