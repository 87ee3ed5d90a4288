//! One system in one cell, live.

use plimsoll_testbed::load::LoadSummary;
use plimsoll_testbed::trial::{self, Trial, TrialConfig, TrialError};

use super::cells::CompareCell;
use super::peer::RunningPeer;
use super::systems::{ComparedChooser, ComparedSystem};
use crate::ExperimentError;
use crate::loopback;

/// How long one system is measured, and with what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompareTimes {
    /// Warm-up before a measurement, in seconds.
    pub warmup_s: f64,
    /// Length of a measurement in seconds.
    pub measured_s: f64,
    /// Disks and CPUs are emulated so many times as fast as in the LARD paper.
    pub speed: f64,
    /// Seed of contents, requests and policies.
    pub seed: u64,
}

/// What a system did in a cell.
#[derive(Debug, Clone)]
pub struct MeasuredSystem {
    /// The system.
    pub system: ComparedSystem,
    /// What was measured.
    pub trial: Trial,
}

fn config(cell: &CompareCell, policy: &str, times: &CompareTimes) -> TrialConfig {
    TrialConfig {
        cache_bytes: cell.cache_bytes,
        connections: cell.connections(),
        warmup_s: times.warmup_s,
        measured_s: times.measured_s,
        ..loopback::config(policy, cell.backends, times.seed, times.speed)
    }
}

/// Measures a system in a cell: fresh origins with empty memories, then the system before them, then clients. `progress` hears once a second
/// what was measured so far.
///
/// # Errors
/// When origins or system do not start, or answer nothing.
pub async fn measure_system(
    cell: &CompareCell,
    system: &ComparedSystem,
    times: &CompareTimes,
    progress: impl FnMut(&LoadSummary),
) -> Result<MeasuredSystem, ExperimentError> {
    loopback::allow_sockets(cell.connections())?;
    let workload = loopback::requests(cell.workload, times.seed)?;
    let trial = match system.chooser {
        ComparedChooser::Policy(policy) => {
            trial::run(&config(cell, policy, times), &workload, progress).await?
        }
        ComparedChooser::Peer(program, lines) => {
            let directory = tempfile::tempdir().map_err(|error| {
                ExperimentError::Failed(format!(
                    "cannot make a temporary directory for {}: {error}",
                    program.name()
                ))
            })?;
            let start = |origins: &[std::net::SocketAddr]| {
                let peer = RunningPeer::start(program, lines, origins, directory.path());
                let peer = peer.map_err(|error| TrialError::FrontEnd(error.to_string()))?;
                Ok((Some(peer.address), peer))
            };
            // Its own front-end stands by, without requests.
            trial::run_through(&config(cell, "round_robin", times), &workload, start, progress).await?
        }
    };
    if trial.summary.succeeded == 0 {
        return Err(ExperimentError::Failed(format!(
            "no request was answered by {} in cell {}: {}",
            system.name, cell.number, trial.summary
        )));
    }
    Ok(MeasuredSystem { system: *system, trial })
}
