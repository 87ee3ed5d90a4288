//! Labs for the measurements, and clusters on them.

use plimsoll_lab::{CpuPlan, Lab, LabConfig, LabError};

use super::stop::Stop;
use crate::ExperimentError;
use crate::lab_cluster::{LabCluster, LabClusterConfig};

/// Builds a lab. With a plan, its nodes run on the CPUs that the plan gives them.
pub(super) fn lab(backends: usize, cpus: Option<&CpuPlan>, fill_checksums: bool) -> Result<Lab, Stop> {
    let config = LabConfig { backends, fill_checksums, cpus: cpus.cloned(), ..LabConfig::default() };
    Lab::build(&config).map_err(|error| Stop::not_here(&error))
}

/// Starts a cluster on a lab. If that fails, this machine counts as unable to measure here, unless the lab's
/// configuration was wrong.
pub(super) async fn start<'a>(lab: &'a Lab, config: &LabClusterConfig) -> Result<LabCluster<'a>, Stop> {
    LabCluster::start(lab, config).await.map_err(|error| match error {
        error @ ExperimentError::Lab(LabError::Invalid(_)) => Stop::Failed(error),
        other => Stop::not_here(&other),
    })
}
