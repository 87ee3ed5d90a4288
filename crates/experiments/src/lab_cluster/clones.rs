//! What nodes of Socket Cloning say at their end.

use std::fs;
use std::time::Duration;

use plimsoll_lab::{NodeHandle, Process};

use crate::ExperimentError;

/// How long a node may take to end.
const ENDING: Duration = Duration::from_secs(10);

/// Sums over all nodes, from their start to their end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CloneCounts {
    /// Requests of clients.
    pub requests: u64,
    /// Those of them that a clone at another node has answered to the end.
    pub by_clones: u64,
}

impl CloneCounts {
    /// Ends a node, and adds what it has counted.
    pub(super) fn add(&mut self, node: NodeHandle<'_>, process: Process) -> Result<(), ExperimentError> {
        let status = process.stop_within(ENDING)?;
        let said = node.root().join("run/said");
        let text = fs::read_to_string(&said).unwrap_or_default();
        let counts: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let (Some(requests), Some(by_clones)) =
            (counts["requests"].as_u64(), counts["clone_answers"].as_u64())
        else {
            let how = status.map_or_else(|| "it did not end".to_owned(), |status| status.to_string());
            return Err(ExperimentError::Failed(format!("{}: no counts at its end: {how}", node.node())));
        };
        self.requests += requests;
        self.by_clones += by_clones;
        Ok(())
    }
}
