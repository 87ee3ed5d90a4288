//! The links of nodes to the switch.

use std::sync::MutexGuard;

use crate::cable::{Cable, CablePlace};
use crate::conditions::Conditions;
use crate::error::LabError;
use crate::lab::{Lab, SwitchState};
use crate::link_statistics::LinkStatistics;
use crate::node::Node;

/// The link of one node to the switch.
#[derive(Debug, Clone, Copy)]
pub struct NodeLink<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) node: Node,
}

impl Lab {
    /// The link of a node to the switch.
    ///
    /// # Errors
    /// When there is no such node, or it is the switch.
    pub fn link(&self, node: Node) -> Result<NodeLink<'_>, LabError> {
        self.linked(node).map(|node| NodeLink { lab: self, node })
    }
}

impl NodeLink<'_> {
    /// Pulls the cable: the node's interface has no carrier, and no frame passes.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn down(&self) -> Result<(), LabError> {
        self.lab.in_switch("ip", &["link", "set", &self.port(), "down"]).map(drop)
    }

    /// Puts the cable back. Addresses and routes are as before.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn up(&self) -> Result<(), LabError> {
        self.lab.in_switch("ip", &["link", "set", &self.port(), "up"]).map(drop)
    }

    /// Sets the conditions of the link, each way.
    ///
    /// # Errors
    /// See [`NodeLink::set_each`].
    pub fn set(&self, conditions: &Conditions) -> Result<(), LabError> {
        self.set_each(conditions, conditions)
    }

    /// Sets the conditions of the frames that the node sends, and of those to it. Frames that are held already leave when
    /// they were due, at once if neither has a condition left that holds frames.
    ///
    /// # Errors
    /// [`LabError::Invalid`] when conditions make no sense, [`LabError::Unsupported`] when the kernel lacks what they need.
    pub fn set_each(&self, from_node: &Conditions, to_node: &Conditions) -> Result<(), LabError> {
        from_node.check()?;
        to_node.check()?;
        let place = self.place()?;
        let mut state = self.lab.lock();
        self.cable(&mut state).set(place, [*from_node, *to_node])
    }

    /// The conditions of the frames that the node sends, and of those to it.
    #[must_use]
    pub fn conditions(&self) -> [Conditions; 2] {
        self.lab.lock().cables.get(&self.node).map_or_else(Default::default, Cable::conditions)
    }

    /// What became of the frames. `None` while the link has no condition but a rate, or none: then nothing is counted. Counts
    /// begin anew when the first other condition is set.
    ///
    /// # Errors
    /// When the link's thread has ended.
    pub fn statistics(&self) -> Result<Option<LinkStatistics>, LabError> {
        let place = self.place()?;
        let state = self.lab.lock();
        state.cables.get(&self.node).map_or(Ok(None), |cable| cable.statistics(place))
    }

    /// Makes the link perfect: no delay, no loss, as fast as the machine.
    ///
    /// # Errors
    /// When `ip` or `tc` fails.
    pub fn clear(&self) -> Result<(), LabError> {
        self.set(&Conditions::default())
    }

    fn port(&self) -> String {
        self.lab.lock().cables.get(&self.node).map_or_else(|| self.node.to_string(), |c| c.port(self.node))
    }

    fn cable<'a>(&self, state: &'a mut MutexGuard<'_, SwitchState>) -> &'a mut Cable {
        state.cables.entry(self.node).or_default()
    }

    fn place(&self) -> Result<CablePlace<'_>, LabError> {
        let config = self.lab.config();
        Ok(CablePlace {
            node: self.lab.node(self.node)?,
            switch: self.lab.node(Node::Switch)?,
            seed: config.seed,
            cpus: config.cpus.as_ref().map(|plan| plan.of(Node::Switch)),
        })
    }
}
