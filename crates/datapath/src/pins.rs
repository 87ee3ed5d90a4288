//! Pinned maps, which outlive the process: a directory of the BPF file system per instance.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::mount::MountFlags;
use tracing::{info, warn};

use crate::error::DatapathError;

/// The BPF file system.
pub(crate) const BPF_FS: &str = "/sys/fs/bpf";
/// Version of `bpf/structs.h` and of the maps. Raised whenever an older instance's maps cannot be taken over.
const LAYOUT_VERSION: &str = "v3";
/// `BPF_FS_MAGIC` of `linux/magic.h`.
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;
const LONGEST_INSTANCE: usize = 64;

/// The pinned maps of one instance, locked against other processes.
#[derive(Debug)]
pub(crate) struct Pins {
    instance: String,
    directory: PathBuf,
    /// A lock on the instance's directory, which ends with the process.
    _lock: OwnedFd,
}

/// Whether the BPF file system is mounted at its usual place.
pub(crate) fn bpf_fs_is_mounted() -> bool {
    #[expect(clippy::unnecessary_cast, reason = "the type differs between architectures")]
    rustix::fs::statfs(BPF_FS).is_ok_and(|found| found.f_type as i64 == BPF_FS_MAGIC)
}

fn mount_bpf_fs() -> Result<(), DatapathError> {
    if bpf_fs_is_mounted() {
        return Ok(());
    }
    info!("mounting the BPF file system at {BPF_FS}");
    rustix::mount::mount("bpf", BPF_FS, "bpf", MountFlags::empty(), None).map_err(|errno| {
        let what = format!("cannot mount the BPF file system (`mount -t bpf bpf {BPF_FS}`)");
        DatapathError::of(what, "CAP_SYS_ADMIN", errno.into())
    })
}

fn home_of_all() -> PathBuf {
    Path::new(BPF_FS).join("plimsoll")
}

/// Checks a name, which becomes a directory in a file system that allows no dots.
fn check_instance(instance: &str) -> Result<(), DatapathError> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if instance.is_empty() || instance.len() > LONGEST_INSTANCE || !instance.chars().all(good) {
        return Err(DatapathError::Invalid(format!(
            "{instance:?} is no name of an instance: 1 to {LONGEST_INSTANCE} letters, digits, - and _"
        )));
    }
    Ok(())
}

impl Pins {
    /// Creates and locks the directory of `instance`.
    pub(crate) fn open(instance: &str) -> Result<Self, DatapathError> {
        check_instance(instance)?;
        mount_bpf_fs()?;
        let home = home_of_all().join(instance);
        let directory = home.join(LAYOUT_VERSION);
        let failed = |error| {
            DatapathError::of(
                format!("cannot make {}", directory.display()),
                "write access to /sys/fs/bpf",
                error,
            )
        };
        fs::create_dir_all(&directory).map_err(failed)?;
        let lock = rustix::fs::open(&home, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| failed(errno.into()))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { instance: instance.to_owned(), directory, _lock: lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                Err(DatapathError::Busy { instance: instance.to_owned(), path: home.display().to_string() })
            }
            Err(errno) => Err(failed(errno.into())),
        }
    }

    /// The instance's name.
    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    /// Where the map `name` is pinned.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Names of other instances with pinned maps, unordered.
    pub(crate) fn others(&self) -> Vec<String> {
        let entries = fs::read_dir(home_of_all()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| *name != self.instance).collect()
    }

    /// The path of another instance's map `name`.
    pub(crate) fn path_of(instance: &str, name: &str) -> PathBuf {
        home_of_all().join(instance).join(LAYOUT_VERSION).join(name)
    }

    /// Whether a living process holds this instance. Do not ask about an instance that is just starting: it
    /// may take this check's lock for another process.
    pub(crate) fn is_alive(instance: &str) -> bool {
        let home = rustix::fs::open(
            home_of_all().join(instance),
            OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let locked = |home| rustix::fs::flock(home, FlockOperation::NonBlockingLockShared);
        home.is_ok_and(|home| locked(home) == Err(rustix::io::Errno::WOULDBLOCK))
    }

    /// Removes the directory if it is empty, as after a failed start.
    pub(crate) fn remove_empty(&self) {
        // Fails if it is not empty.
        let _ = fs::remove_dir(&self.directory);
        if let Some(home) = self.directory.parent() {
            let _ = fs::remove_dir(home);
        }
    }

    /// Removes the maps of other layouts. Programs that still use them keep them until they are replaced.
    pub(crate) fn remove_other_versions(&self) {
        let Some(entries) = self.directory.parent().and_then(|home| fs::read_dir(home).ok()) else { return };
        for entry in entries.flatten().filter(|entry| entry.file_name() != LAYOUT_VERSION) {
            info!("removing maps of another version in {}", entry.path().display());
            remove_directory(&entry.path());
        }
    }

    /// Removes all pins.
    pub(crate) fn remove(&self) {
        remove_directory(&self.directory);
        if let Some(home) = self.directory.parent() {
            // Fails if another process has just started, whose directory then stays.
            let _ = fs::remove_dir(home);
        }
    }
}

fn remove_directory(directory: &Path) {
    let removed = fs::read_dir(directory).and_then(|entries| {
        entries.flatten().try_for_each(|entry| fs::remove_file(entry.path()))?;
        fs::remove_dir(directory)
    });
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            warn!("cannot remove {}: {error}", directory.display());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_instances() {
        for good in ["a", "front-1_b", &"x".repeat(LONGEST_INSTANCE)] {
            assert!(check_instance(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a.b", "ä", &"x".repeat(LONGEST_INSTANCE + 1)] {
            assert!(matches!(check_instance(bad), Err(DatapathError::Invalid(_))), "{bad}");
        }
    }
}
