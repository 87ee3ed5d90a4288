//! Limits of the CPU time that threads and processes may use.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::gettid;

use crate::error::LabError;

/// Time in which a share is used up at most. Short, so that whoever is out of it waits for little; the kernel allows 1 ms and more.
const PERIOD_US: u64 = 10_000;
/// The least time in a period that the kernel gives.
const LEAST_US: u64 = 1_000;
/// Begins the names of groups, before the number of the process that made them.
const PREFIX: &str = "plimsoll-lab-";
/// How long threads that have ended may be counted as members.
const LEAVING: Duration = Duration::from_secs(2);

/// The two forms of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupVersion {
    /// `cpu.cfs_quota_us` and `cpu.cfs_period_us`.
    V1,
    /// `cpu.max`.
    V2,
}

/// A control group whose threads and processes together may use so much CPU time: by `cpu.max`, or on machines where control groups of
/// version 1 have CPUs, by `cpu.cfs_quota_us`. It is unlimited until [`CpuLimit::set`]. Dropping it removes it, once its threads have
/// ended. A group that is left behind when this process is killed is empty, and removed by the next one that makes groups.
#[derive(Debug)]
pub struct CpuLimit {
    version: GroupVersion,
    parent: PathBuf,
    directory: PathBuf,
}

impl CpuLimit {
    /// A group without members.
    ///
    /// # Errors
    /// When the machine has no control groups with CPUs that this process may use.
    pub fn new() -> Result<Self, LabError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let (version, parent) = find(&mounts).ok_or_else(|| LabError::Unsupported {
            what: "a limit of CPU time".to_owned(),
            why: "no control groups with the controller `cpu` are mounted".to_owned(),
        })?;
        remove_orphans(&parent);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&directory)
            .map_err(|e| LabError::system(format!("make the control group {}", directory.display()), e))?;
        Ok(Self { version, parent, directory })
    }

    /// Moves the calling thread, and threads that it starts from now on, into this group.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn add_this_thread(&self) -> Result<(), LabError> {
        let thread = gettid().as_raw_nonzero().to_string();
        if self.version == GroupVersion::V1 {
            return self.write("tasks", &thread);
        }
        // Threads of one process may be in different groups only below a common one.
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        if !own.lines().any(|line| line == "0::/") {
            write(&self.parent.join("cgroup.procs"), &std::process::id().to_string())?;
        }
        self.write("cgroup.type", "threaded")?;
        self.write("cgroup.threads", &thread)
    }

    /// Moves a process with all its threads into this group.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn add_process(&self, pid: u32) -> Result<(), LabError> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// From now on members together may use this many CPUs, such as 0.25; all of them with `None`. At least 0.1 are given.
    ///
    /// # Errors
    /// When the number is not above 0, or the system refuses it.
    pub fn set(&self, cpus: Option<f64>) -> Result<(), LabError> {
        if let Some(cpus) = cpus
            && !(cpus > 0.0 && cpus <= 1024.0)
        {
            return Err(LabError::Invalid(format!("a limit is a number of CPUs above 0, not {cpus}")));
        }
        let quota_us = cpus.map(|cpus| ((cpus * PERIOD_US as f64).round() as u64).max(LEAST_US));
        match self.version {
            GroupVersion::V1 => {
                self.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
                self.write("cpu.cfs_quota_us", &quota_us.map_or("-1".to_owned(), |us| us.to_string()))
            }
            GroupVersion::V2 => {
                let quota = quota_us.map_or("max".to_owned(), |us| us.to_string());
                self.write("cpu.max", &format!("{quota} {PERIOD_US}"))
            }
        }
    }

    /// Periods of 10 ms in which members wanted the CPU, and those of them in which they were out of it.
    ///
    /// # Errors
    /// When the counts cannot be read.
    pub fn periods(&self) -> Result<(u64, u64), LabError> {
        let file = self.directory.join("cpu.stat");
        let text =
            fs::read_to_string(&file).map_err(|e| LabError::system(format!("read {}", file.display()), e))?;
        let count = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            value.ok_or_else(|| LabError::Invalid(format!("no {name} in {}", file.display())))
        };
        Ok((count("nr_periods ")?, count("nr_throttled ")?))
    }

    fn write(&self, file: &str, text: &str) -> Result<(), LabError> {
        write(&self.directory.join(file), text)
    }
}

impl Drop for CpuLimit {
    fn drop(&mut self) {
        let end = Instant::now() + LEAVING;
        // Fails as long as it has members; what stays then, the next one removes.
        while fs::remove_dir(&self.directory).is_err() && self.directory.exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn write(file: &Path, text: &str) -> Result<(), LabError> {
    fs::write(file, text).map_err(|e| LabError::system(format!("write {text} to {}", file.display()), e))
}

/// Where groups can be made, from the lines of `/proc/self/mounts`.
fn find(mounts: &str) -> Option<(GroupVersion, PathBuf)> {
    mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, place, kind, options, ..] = words.as_slice() else { return None };
        let place = PathBuf::from(place);
        match *kind {
            "cgroup" if options.split(',').any(|option| option == "cpu") => Some((GroupVersion::V1, place)),
            "cgroup2" => {
                let given = fs::read_to_string(place.join("cgroup.subtree_control")).ok()?;
                given.split_whitespace().any(|name| name == "cpu").then_some((GroupVersion::V2, place))
            }
            _ => None,
        }
    })
}

/// Removes empty groups of processes that are gone.
fn remove_orphans(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            // Fails if it has members.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().to_str().unwrap();
        let unified = format!("proc /proc proc rw 0 0\ncgroup2 {place} cgroup2 rw,relatime 0 0\n");
        fs::write(dir.path().join("cgroup.subtree_control"), "memory hugetlb\n").unwrap();
        assert_eq!(find(&unified), None);
        let first =
            format!("{unified}cgroup /x cgroup rw,cpuacct 0 0\ncgroup /c cgroup rw,cpu,cpuacct 0 0\n");
        assert_eq!(find(&first), Some((GroupVersion::V1, "/c".into())));
        fs::write(dir.path().join("cgroup.subtree_control"), "cpu memory\n").unwrap();
        assert_eq!(find(&unified), Some((GroupVersion::V2, dir.path().to_owned())));
    }

    #[test]
    fn what_is_written_in_either_version() {
        for (version, files) in [
            (GroupVersion::V1, [("cpu.cfs_quota_us", "2500"), ("cpu.cfs_period_us", "10000")]),
            (GroupVersion::V2, [("cpu.max", "2500 10000"), ("cpu.max", "2500 10000")]),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let directory = dir.path().join("group");
            fs::create_dir(&directory).unwrap();
            let limit = CpuLimit { version, parent: dir.path().to_owned(), directory: directory.clone() };
            limit.set(Some(0.25)).unwrap();
            for (file, text) in files {
                assert_eq!(fs::read_to_string(directory.join(file)).unwrap(), text);
            }
            assert!(limit.set(Some(0.0)).is_err() && limit.set(Some(f64::NAN)).is_err());
            fs::write(directory.join("cpu.stat"), "nr_periods 7\nnr_throttled 3\nthrottled_time 5\n")
                .unwrap();
            assert_eq!(limit.periods().unwrap(), (7, 3));
            fs::remove_dir_all(&directory).unwrap();
        }
    }
}
