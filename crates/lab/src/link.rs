//! The cables between nodes and switch.

use crate::conditions::Conditions;
use crate::error::LabError;
use crate::lab::Lab;
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
        self.lab.in_switch("ip", &["link", "set", &self.node.to_string(), "down"]).map(drop)
    }

    /// Puts the cable back. Addresses and routes are as before.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn up(&self) -> Result<(), LabError> {
        self.lab.in_switch("ip", &["link", "set", &self.node.to_string(), "up"]).map(drop)
    }

    /// Sets the conditions of the link.
    ///
    /// # Errors
    /// [`LabError::Unsupported`] when the kernel cannot delay frames, which other conditions than loss and rate need.
    pub fn set(&self, conditions: &Conditions) -> Result<(), LabError> {
        self.lab.set_conditions(self.node, conditions)
    }

    /// Makes the link perfect: no delay, no loss, as fast as the machine.
    ///
    /// # Errors
    /// When `tc` or `nft` fails.
    pub fn clear(&self) -> Result<(), LabError> {
        self.set(&Conditions::default())
    }
}
