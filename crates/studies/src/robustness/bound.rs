//! What no policy can exceed in a cell: perfect balance, with the misses of all memories as one.
//!
//! One memory as large as all of them serves the workload; what it misses is read once. CPU time and disk time are spread evenly over
//! all back-ends, at the speeds that they have, and nothing ever waits for anything but what it needs itself. The memory evicts by
//! Greedy-Dual-Size or by least recent use, whichever needs less disk time. So it is a bound for policies on such memories: one that
//! knew the future could evict better.

use plimsoll_cache::{Cache, find};
use plimsoll_policy::Kind;
use plimsoll_policy::params::{ParamSet, Params as _};
use plimsoll_sim::SimRequest;
use plimsoll_sim::models::lard::LardModelParams;
use plimsoll_trace::TraceError;

use super::cell::{ClusterShape, Load, MatrixCell};
use crate::workload::Workload;

/// What requests need: sums over the measured part.
#[derive(Debug, Clone, Copy, Default)]
struct Needs {
    requests: u64,
    cpu_s: f64,
    disk_s: f64,
    /// Of each request alone.
    response_s: f64,
    slowdown: f64,
}

/// The bound of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bound {
    /// Requests per second.
    pub(super) throughput_rps: f64,
    /// Mean slowdown.
    pub(super) slowdown: f64,
}

/// The bound of this cell, on back-ends with these parameters.
pub(super) fn bound(
    cell: &MatrixCell,
    workload: &Workload,
    params: &ParamSet,
) -> Result<Option<Bound>, TraceError> {
    let params = LardModelParams::of(params);
    let memory_bytes = (cell.memory * workload.working_set_bytes() as f64) as u64;
    let mut best: Option<Needs> = None;
    for name in ["gds", "lru"] {
        let Ok(spec) = find(name) else { continue };
        let needs = needs(cell, workload, &params, (spec.build)(memory_bytes, None))?;
        if best.is_none_or(|best| needs.disk_s + needs.cpu_s < best.disk_s + best.cpu_s) {
            best = Some(needs);
        }
    }
    Ok(best.filter(|needs| needs.requests > 0).map(|needs| {
        let backends = effective_backends(cell);
        let count = needs.requests as f64;
        let busiest_s = needs.cpu_s.max(needs.disk_s / f64::from(params.disks)) / backends;
        let alone_s = match cell.load {
            Load::Closed { under_way } => {
                needs.response_s / (under_way * cell.backends as f64).round().max(1.0)
            }
            _ => 0.0,
        };
        Bound { throughput_rps: count / busiest_s.max(alone_s).max(1e-12), slowdown: needs.slowdown / count }
    }))
}

fn needs(
    cell: &MatrixCell,
    workload: &Workload,
    params: &LardModelParams,
    mut memory: Box<dyn Cache>,
) -> Result<Needs, TraceError> {
    let mut evicted = Vec::new();
    let mut needs = Needs::default();
    let warm_up = cell.requests * 2 / 5;
    for (number, request) in workload.requests::<TraceError>()?.take(cell.requests as usize).enumerate() {
        let request = request?;
        let document_bytes = workload.targets.size_bytes[request.target as usize].max(request.size_bytes);
        let hit = request.size_bytes == 0
            || memory.request(u64::from(request.target), document_bytes, &mut evicted);
        evicted.clear();
        if number as u64 >= warm_up {
            needs.add(&request, document_bytes, hit, params);
        }
    }
    Ok(needs)
}

impl Needs {
    fn add(&mut self, request: &SimRequest, document_bytes: u64, hit: bool, params: &LardModelParams) {
        let sent = request.size_bytes as f64 / 512.0 * params.transmit_per_512_bytes_us;
        let ends_s = (params.connect_us + params.teardown_us) / params.cpu_speed / 1e6;
        let alone_s = ends_s + sent / params.cpu_speed / 1e6;
        let computes = request.kind == Kind::Dynamic;
        let (mut cpu_s, mut disk_s) = (alone_s, 0.0);
        if !hit && computes {
            cpu_s += request.service.as_secs_f64();
        } else if !hit {
            let blocks = document_bytes.div_ceil(params.block_bytes).max(1) as f64;
            let transfer = document_bytes as f64 / 4096.0 * params.disk_transfer_per_4096_bytes_us;
            disk_s = (params.disk_latency_us + (blocks - 1.0) * params.disk_seek_us + transfer) / 1e6;
        }
        // Blocks are sent while the next ones are read.
        let response_s = if disk_s > 0.0 { cpu_s.max(disk_s + ends_s) } else { cpu_s };
        self.requests += 1;
        self.cpu_s += cpu_s;
        self.disk_s += disk_s;
        self.response_s += response_s;
        self.slowdown += response_s / alone_s;
    }
}

/// Back-ends of full speed that do as much as those of the cell, in the measured part: the last three fifths.
fn effective_backends(cell: &MatrixCell) -> f64 {
    let all = cell.backends as f64;
    match cell.cluster {
        ClusterShape::Equal | ClusterShape::TwoMemories | ClusterShape::Grows => all,
        ClusterShape::TwoSpeeds => all - (cell.backends / 2) as f64 / 2.0,
        ClusterShape::OneSlows => all - 0.75,
        // It is away from a third to half of the run, of which a tenth of the run is measured.
        ClusterShape::OneReturns => all - 1.0 / 6.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robustness::{known_hard, workloads};
    use plimsoll_policy::params::ParamSet;

    #[test]
    fn all_in_memory_leaves_the_cpu_and_the_rest_follows() {
        let params = ParamSet::defaults(LardModelParams::SPECS);
        let mut cell = known_hard(4_000, 1).swap_remove(1);
        let workload = workloads::make(&cell.workload, cell.requests, cell.seed).unwrap();
        cell.memory = 4.0;
        let ample = bound(&cell, &workload, &params).unwrap().unwrap();
        cell.memory = 1e-6;
        let scarce = bound(&cell, &workload, &params).unwrap().unwrap();
        assert!(scarce.throughput_rps < ample.throughput_rps && scarce.slowdown > ample.slowdown);
        cell.load = Load::Closed { under_way: 1.0 };
        let few = bound(&cell, &workload, &params).unwrap().unwrap();
        assert!(few.throughput_rps < scarce.throughput_rps);
        cell.cluster = ClusterShape::TwoSpeeds;
        cell.load = Load::Closed { under_way: 60.0 };
        let slow = bound(&cell, &workload, &params).unwrap().unwrap();
        assert!((slow.throughput_rps / scarce.throughput_rps - 0.75).abs() < 1e-9);
    }
}
