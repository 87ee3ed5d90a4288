//! CPU time of unrelated programs, which disturb measurements.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use crate::error::LabError;

/// A process as `/proc/PID/stat` has it.
struct Stat {
    parent: u32,
    /// Of the process and of children that it has waited for, in ticks.
    ticks: u64,
}

/// CPU time so far of all unrelated processes of this machine on all CPUs: all except this process and its
/// descendants, which include the nodes of its labs. Subtract two readings to get the use in between.
/// Programs that ended in between count if their parents waited for them; otherwise their time vanishes, so a
/// second reading can be below the first.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn cpu_time_of_others() -> Result<Duration, LabError> {
    let entries = fs::read_dir("/proc").map_err(|e| LabError::system("list the processes", e))?;
    let mut processes = BTreeMap::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that has ended meanwhile is counted with its parent.
        let Ok(text) = fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some(stat) = parse(&text) {
            processes.insert(pid, stat);
        }
    }
    let ticks = sum(&processes, std::process::id());
    // The division is safe: never 0.
    let per_s = rustix::param::clock_ticks_per_second().max(1);
    Ok(Duration::from_secs_f64(ticks as f64 / per_s as f64))
}

/// The parent's number is the second field behind the name, which is in parentheses and may hold any character. Times
/// are the 12th to 15th: user, system, and both of children.
fn parse(text: &str) -> Option<Stat> {
    let mut fields = text.rsplit_once(") ")?.1.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let times: Option<Vec<u64>> = fields.skip(9).take(4).map(|field| field.parse().ok()).collect();
    times.filter(|times| times.len() == 4).map(|times| Stat { parent, ticks: times.iter().sum() })
}

/// Sums over all processes except `this` and its descendants.
fn sum(processes: &BTreeMap<u32, Stat>, this: u32) -> u64 {
    let is_ours = |pid: u32| {
        let mut ancestor = pid;
        // Entries read at different times could form a cycle.
        for _ in 0..processes.len() {
            if ancestor == this {
                return true;
            }
            match processes.get(&ancestor) {
                Some(stat) => ancestor = stat.parent,
                None => return false,
            }
        }
        false
    };
    processes.iter().filter(|(pid, _)| !is_ours(**pid)).map(|(_, stat)| stat.ticks).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_strange_name() {
        let line = "7 (a) b (c) S 5 7 7 0 -1 4194560 1 2 3 4 10 20 300 4000 20 0 1 0 9 9 9\n";
        let stat = parse(line).unwrap();
        assert_eq!((stat.parent, stat.ticks), (5, 4330));
        for bad in ["", "7 (a)", "7 (a) S x", "7 (a) S 5 7 7 0 -1 4194560 1 2 3 4 10 20 300"] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn descendants_are_no_others() {
        let stat = |parent, ticks| Stat { parent, ticks };
        let processes = BTreeMap::from([
            (1, stat(0, 1)),
            (5, stat(1, 10)),
            (6, stat(5, 100)),
            (7, stat(6, 1000)),
            (8, stat(1, 10_000)),
            (9, stat(9, 100_000)),
        ]);
        assert_eq!(sum(&processes, 5), 110_001);
        assert_eq!(sum(&processes, 1), 100_000);
    }

    #[test]
    fn there_are_others() {
        // At least whoever started this one.
        assert!(!cpu_time_of_others().unwrap().is_zero());
    }
}
