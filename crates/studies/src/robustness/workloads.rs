//! The workloads of the stress matrix: synthetic ones, and what is made of them by changing requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_policy::{Rng, mix};
use plimsoll_report::TraceInfo;
use plimsoll_trace::{Record, RecordKind, TargetTable, Trace};

use super::cell::Half;
use crate::study_error::StudyError;
use crate::workload::{Workload, WorkloadError};

/// What is changed of a synthetic workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WorkloadChange {
    /// Nothing.
    None,
    /// This share of the requests asks for targets that nobody asks for again.
    Scan(f64),
    /// A target that nobody asked for before has this share of the middle third of the requests.
    FlashCrowd(f64),
    /// Popularity moves on to other targets this often in the run.
    Drift(u32),
    /// Every document is computed, in 1 to 64 ms of CPU time that differ by document, unless the back-end still has it.
    Computed,
}

/// A workload by its name.
#[derive(Debug, Clone, Copy)]
pub struct MatrixWorkload {
    /// Its name in cells.
    pub name: &'static str,
    /// Its half.
    pub half: Half,
    base: &'static str,
    settings: &'static [(&'static str, &'static str)],
    change: WorkloadChange,
}

const fn of(
    name: &'static str,
    half: Half,
    base: &'static str,
    settings: &'static [(&'static str, &'static str)],
    change: WorkloadChange,
) -> MatrixWorkload {
    MatrixWorkload { name, half, base, settings, change }
}

/// Every workload.
pub const WORKLOADS: &[MatrixWorkload] = &[
    of("rice", Half::Design, "rice", &[], WorkloadChange::None),
    of("hot", Half::Design, "hot", &[], WorkloadChange::None),
    of("ibm", Half::Design, "ibm", &[], WorkloadChange::None),
    of("scan", Half::Design, "rice", &[("generator", "irm")], WorkloadChange::Scan(0.2)),
    of("chess", Half::Design, "chess", &[], WorkloadChange::None),
    of("computed", Half::Design, "rice", &[("generator", "irm")], WorkloadChange::Computed),
    of("flash", Half::Design, "ibm", &[], WorkloadChange::FlashCrowd(0.3)),
    of("rice_pareto", Half::Judging, "rice", &[("generator", "double_pareto")], WorkloadChange::None),
    of("one_hot", Half::Judging, "hot", &[("hot_targets", "1"), ("hot_share", "0.2")], WorkloadChange::None),
    of("berkeley", Half::Judging, "berkeley", &[], WorkloadChange::None),
    of("drift", Half::Judging, "ibm", &[("generator", "stretched")], WorkloadChange::Drift(6)),
    of("worldcup", Half::Judging, "worldcup", &[("generator", "irm")], WorkloadChange::None),
    of("rice_scan", Half::Judging, "rice", &[("generator", "stretched")], WorkloadChange::Scan(0.1)),
    of("rice_flash", Half::Judging, "rice", &[("generator", "stretched")], WorkloadChange::FlashCrowd(0.5)),
    of("computed_ibm", Half::Judging, "ibm", &[], WorkloadChange::Computed),
    of("few", Half::Judging, "chess", &[("targets", "200"), ("total_mib", "20")], WorkloadChange::None),
];

/// Stream of the seed from which changes are drawn.
const STREAM: u64 = 0x6368_616E;
/// Size of a target that appears in a flash crowd.
const FLASH_BYTES: u64 = 32 << 10;

/// Real traces by name.
pub type Traces = BTreeMap<String, Arc<Workload>>;

/// The trace of this name, else the first `requests` requests of the workload of this name.
///
/// # Errors
/// When there is none, or it cannot be made.
pub fn find(traces: &Traces, name: &str, requests: u64, seed: u64) -> Result<Arc<Workload>, StudyError> {
    traces.get(name).map_or_else(|| make(name, requests, seed).map(Arc::new), |trace| Ok(Arc::clone(trace)))
}

/// The first `requests` requests of the synthetic workload of this name.
///
/// # Errors
/// When there is none, or it cannot be made.
pub fn make(name: &str, requests: u64, seed: u64) -> Result<Workload, StudyError> {
    let known = WORKLOADS.iter().find(|workload| workload.name == name);
    let workload = known.ok_or_else(|| StudyError::Workload(WorkloadError::Unknown(name.to_owned())))?;
    if workload.change == WorkloadChange::None {
        let made = Workload::synthesize_first(workload.base, workload.settings, seed, Some(requests))?;
        return Ok(Workload { name: name.to_owned(), ..made });
    }
    Ok(changed(workload, requests, seed)?)
}

fn changed(workload: &MatrixWorkload, requests: u64, seed: u64) -> Result<Workload, WorkloadError> {
    let made = plimsoll_synth::build(workload.base, workload.settings, seed)?;
    let mut table = TargetTable::new();
    let mut sizes = Vec::new();
    for target in 0..made.target_count() {
        add(&mut table, &mut sizes, &made.target_name(target), made.document_size_bytes(target));
    }
    let documents = made.target_count();
    let mut rng = Rng::new(seed, STREAM);
    let mut records = Vec::new();
    let flash = match workload.change {
        WorkloadChange::FlashCrowd(_) => Some(add(&mut table, &mut sizes, "/flash", FLASH_BYTES)),
        _ => None,
    };
    for (number, record) in made.records().take(usize::try_from(requests).unwrap_or(usize::MAX)).enumerate() {
        let number = number as u64;
        let target = match workload.change {
            WorkloadChange::Scan(share) if rng.unit() < share => {
                let size_bytes = sizes[rng.below(u64::from(documents)) as usize];
                add(&mut table, &mut sizes, &format!("/scan/{number}"), size_bytes)
            }
            WorkloadChange::FlashCrowd(share) => {
                let middle = (requests / 3..2 * requests / 3).contains(&number);
                flash.filter(|_| middle && rng.unit() < share).unwrap_or(record.target)
            }
            WorkloadChange::Drift(times) => {
                let step = number * u64::from(times) / requests.max(1);
                // Documents are numbered at random, so the next one is no likelier to be popular than any other.
                ((u64::from(record.target) + step * 7919) % u64::from(documents)) as u32
            }
            WorkloadChange::None | WorkloadChange::Scan(_) | WorkloadChange::Computed => record.target,
        };
        let (kind, service_ns) = match workload.change {
            WorkloadChange::Computed => (RecordKind::Dynamic, computing_ns(target, seed)),
            _ => (record.kind, record.service_ns),
        };
        records.push(Record { target, size_bytes: sizes[target as usize], kind, service_ns, ..record });
    }
    let info = TraceInfo { path: workload.name.to_owned(), sha256: None, lines_rejected: 0 };
    let trace = Trace::from_records(table, records)?;
    Ok(Workload::new(workload.name.to_owned(), info, trace))
}

/// 1 to 64 ms: as likely in each doubling, and evenly within it.
fn computing_ns(target: u32, seed: u64) -> u64 {
    let share = (mix(u64::from(target) ^ mix(seed ^ STREAM)) >> 11) as f64 / (1_u64 << 53) as f64;
    let doublings = (6.0 * share).floor();
    let within = 6.0 * share - doublings;
    (1_000_000_u64 << doublings as u32) + ((1_000_000_u64 << doublings as u32) as f64 * within) as u64
}

fn add(table: &mut TargetTable, sizes: &mut Vec<u64>, name: &str, size_bytes: u64) -> u32 {
    let target = table.intern(name.as_bytes()).unwrap_or_default();
    table.set_document_size(target, size_bytes);
    if target as usize == sizes.len() {
        sizes.push(size_bytes);
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_sim::SimRequest;
    use plimsoll_trace::TraceError;

    fn targets(name: &str, requests: u64) -> (Workload, Vec<u32>) {
        let workload = make(name, requests, 1).unwrap();
        let asked = workload.requests::<TraceError>().unwrap();
        let of = |r: Result<SimRequest, TraceError>| r.unwrap().target;
        let targets = asked.map(of).collect();
        (workload, targets)
    }

    #[test]
    fn every_workload_can_be_made() {
        for workload in WORKLOADS {
            let (made, asked) = targets(workload.name, 300);
            assert_eq!((asked.len(), made.name.as_str()), (300, workload.name));
        }
        assert!(make("no_such", 10, 1).unwrap_err().to_string().contains("no_such"));
    }

    #[test]
    fn a_flash_crowd_is_in_the_middle_and_a_scan_asks_once() {
        let (workload, asked) = targets("flash", 9_000);
        let crowd = workload.trace.targets.len() as u32 - 1;
        let share = |part: &[u32]| part.iter().filter(|&&t| t == crowd).count() as f64 / part.len() as f64;
        assert!((share(&asked[3_000..6_000]) - 0.3).abs() < 0.05);
        assert_eq!((share(&asked[..3_000]), share(&asked[6_000..])), (0.0, 0.0));
        let (workload, asked) = targets("scan", 5_000);
        let scanned =
            asked.iter().filter(|&&t| workload.trace.targets.name(t).starts_with(b"/scan/")).count();
        assert!((800..1_200).contains(&scanned), "{scanned}");
    }
}
