//! The process as the kernel sees it, from `/proc` (proc(5)).

use std::fmt::Error;
use std::fs;

use crate::exposition::Out;

/// Ticks per second in `/proc`: `USER_HZ`, 100 on every architecture that Linux runs this on.
const TICKS_PER_S: f64 = 100.0;

/// What is told of the process; a value that the system does not give is left out.
#[derive(Debug, Default)]
pub struct ProcessUsage {
    /// Memory in RAM in bytes.
    pub resident_bytes: Option<u64>,
    /// CPU time in seconds, user and system.
    pub cpu_s: Option<f64>,
    /// Files and sockets that are open.
    pub open_files: Option<u64>,
    /// When it started, in seconds since 1970.
    pub start_time_s: Option<f64>,
}

impl ProcessUsage {
    /// The process as it is now.
    pub fn now() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let stat = text("/proc/self/stat");
        let started = ticks(&stat, &[22]);
        Self {
            resident_bytes: resident_bytes(&text("/proc/self/status")),
            cpu_s: ticks(&stat, &[14, 15]),
            open_files: fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64),
            start_time_s: boot_time_s(&text("/proc/stat")).zip(started).map(|(boot, since)| boot + since),
        }
    }

    /// Writes it, and the version of the program.
    ///
    /// # Errors
    /// Those of writing.
    pub fn encode(&self, out: &mut Out<'_>) -> Result<(), Error> {
        out.gauges("plimsoll_build_info", "The version", || [([("version", env!("CARGO_PKG_VERSION"))], 1)])?;
        if let Some(bytes) = self.resident_bytes {
            out.gauge("process_resident_memory_bytes", "Memory in RAM", bytes)?;
        }
        if let Some(cpu_s) = self.cpu_s {
            out.counter("process_cpu_seconds", "CPU time, user and system", cpu_s)?;
        }
        if let Some(open) = self.open_files {
            out.gauge("process_open_fds", "Files and sockets open", open)?;
        }
        if let Some(time_s) = self.start_time_s {
            out.gauge("process_start_time_seconds", "When the process started, since 1970", time_s)?;
        }
        Ok(())
    }
}

fn resident_bytes(status: &str) -> Option<u64> {
    let kib: u64 = status
        .lines()
        .find_map(|l| l.strip_prefix("VmRSS:"))?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()?;
    Some(kib * 1024)
}

fn boot_time_s(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// The sum of these fields of `/proc/self/stat`, numbered from 1, in seconds.
fn ticks(stat: &str, fields: &[usize]) -> Option<f64> {
    // The second field is a name in parentheses that may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let values: Vec<&str> = rest.split_whitespace().collect();
    let ticks = fields.iter().map(|n| values.get(n - 3)?.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(ticks as f64 / TICKS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc() {
        let stat = "7 (a) b) S 1 1 1 0 -1 4194304 1 0 0 0 250 50 0 0 20 0 1 0 12345 1 1\n";
        assert_eq!(ticks(stat, &[14, 15]), Some(3.0));
        assert_eq!(ticks(stat, &[22]), Some(123.45));
        assert_eq!(ticks("", &[22]), None);
        assert_eq!(resident_bytes("VmPeak:\t 1 kB\nVmRSS:\t   12 kB\n"), Some(12_288));
        assert_eq!(boot_time_s("cpu 1\nbtime 1700000000\n"), Some(1.7e9));
    }
}
