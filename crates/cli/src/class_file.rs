//! Class files of commands that read traces.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use plimsoll_classes::{ClassTable, ContentClass, FILE_BYTES_MOST};
use plimsoll_config::class_costs;
use plimsoll_report::format;
use plimsoll_sim::{TimeDistribution, TimeShape};
use plimsoll_studies::{Workload, WorkloadClasses};

use crate::error::CliError;

/// Reads a class file; what is odd about it goes to standard error.
///
/// # Errors
/// When it cannot be read, or is no class file: all errors, with their lines.
pub(crate) fn read(path: &Path) -> Result<ClassTable, CliError> {
    let shown = path.display();
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MOST as u64 + 1).read_to_string(&mut text))
        .map_err(|error| CliError::Failed(format!("cannot read the class file {shown}: {error}")))?;
    let read = ClassTable::read(&text).map_err(|errors| {
        let lines: Vec<String> = errors.errors().iter().map(|error| format!("{shown}: {error}")).collect();
        CliError::Failed(lines.join("\n"))
    })?;
    for warning in &read.warnings {
        eprintln!("plimsoll: warning: {shown}: {warning}");
    }
    Ok(read.table)
}

/// Gives the requests of a workload the classes of the table, by the names of their targets. Says where many have none.
pub(crate) fn classify(workload: &mut Workload, table: &ClassTable, path: &Path) {
    let targets = &workload.trace.targets;
    let (mut without, mut all) = (0, 0);
    let class = |id| {
        let class = class_of(table, targets.name(id));
        all += targets.requests(id);
        without += if class == 0 { targets.requests(id) } else { 0 };
        class
    };
    let of_target = (0..targets.len() as u32).map(class).collect();
    let service = table.classes().iter().map(demand).collect();
    workload.classes = Some(WorkloadClasses { of_target, costs: class_costs(table), service });
    if without > 0 {
        let share = 100.0 * without as f64 / all as f64;
        eprintln!(
            "plimsoll: warning: {} of {} requests ({share:.1} %) have no class in {}; the policy csld learns what they cost, target by target",
            format::count(without),
            format::count(all),
            path.display()
        );
    }
}

/// How long a back-end works on a request of this class: as its mean and deviation say, lognormally; `None` for a class without costs.
fn demand(class: &ContentClass) -> Option<TimeDistribution> {
    let mean_s = class.cpu_s + class.disk_s;
    let cv = class.deviation_s / mean_s;
    let shape = match cv >= TimeShape::LEAST_CV {
        true => TimeShape::Lognormal { cv: cv.min(TimeShape::MOST_CV) },
        false => TimeShape::Deterministic,
    };
    (mean_s > 0.0).then_some(TimeDistribution { mean_ns: mean_s * 1e9, shape })
}

/// The class of a target. Traces do not keep methods: one that is posted to is found by a pattern that asks for it.
fn class_of(table: &ClassTable, target: &[u8]) -> u16 {
    match table.class_of(b"GET", target) {
        0 => table.class_of(b"POST", target),
        class => class,
    }
}
