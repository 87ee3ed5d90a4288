//! What somebody asks who wants advice.

use plimsoll_policy::params::ParamSet;
use plimsoll_sim::hardware::{HardwareSpec, NVME};
use plimsoll_sim::models::lard;
use serde::Serialize;

use crate::spec::values::CacheSize;

/// What the cluster is to carry.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetLoad {
    /// So many times the log's own peak.
    Times(f64),
    /// So many requests per second.
    Rate(f64),
}

/// See the module's documentation.
#[derive(Debug, Clone)]
pub struct AdviseQuestion {
    /// Hardware of the back-ends.
    pub hardware: &'static HardwareSpec,
    /// Costs of the model `lard` that win over those of the hardware.
    pub costs: ParamSet,
    /// Memory for documents of each back-end; `None` has it found out.
    pub memory: Option<CacheSize>,
    /// Number of back-ends; `None` has it found out.
    pub backends: Option<usize>,
    /// What is to be carried.
    pub load: TargetLoad,
    /// The longest 99th percentile of response times at the peak, in seconds.
    pub p99_s: f64,
    /// What the network of each back-end can send, in bits per second.
    pub network_bits_per_s: f64,
    /// Whether the log was read without queries, so that targets are paths.
    pub strips_query: bool,
    /// Seed of every random choice.
    pub seed: u64,
    /// A longer log is represented by so many neighbouring requests of it.
    pub most_requests: u64,
}

/// The longest 99th percentile where nobody says another one, in seconds.
pub const USUAL_P99_S: f64 = 0.25;
/// The network of a back-end where nobody says another one: 10 Gbit/s Ethernet.
pub const USUAL_NETWORK_BITS_PER_S: f64 = 1e10;
/// The requests that are simulated of a longer log.
pub const USUAL_MOST_REQUESTS: u64 = 1_000_000;
/// Requests per second at the peak below which there is nothing to distribute.
pub(super) const LEAST_RPS: f64 = 0.001;
/// And above which no cluster of this size serves them.
pub(super) const MOST_RPS: f64 = 10_000_000.0;

impl Default for AdviseQuestion {
    /// The log's own peak on hardware of today.
    fn default() -> Self {
        Self {
            hardware: &NVME,
            costs: ParamSet::defaults(lard::SPEC.params),
            memory: None,
            backends: None,
            load: TargetLoad::Times(1.0),
            p99_s: USUAL_P99_S,
            network_bits_per_s: USUAL_NETWORK_BITS_PER_S,
            strips_query: false,
            seed: 1,
            most_requests: USUAL_MOST_REQUESTS,
        }
    }
}
