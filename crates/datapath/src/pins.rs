//! Pinned maps, which outlive the process: a directory of the BPF file system per instance, in the home of its user.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore as _, MapHandle};
use rustix::fs::{AtFlags, Dir, FlockOperation, unlinkat};
use rustix::io::Errno;
use rustix::mount::MountFlags;
use rustix::process::geteuid;
use tracing::{info, warn};

use crate::error::DatapathError;
use crate::pin_home::{ATTEMPTS, BPF_FS, PinHome, ROOT, Taking, open_directory};
use crate::privileges::RunUser;

/// Version of `bpf/structs.h` and of the maps. Raised whenever an older instance's maps cannot be taken over.
const LAYOUT_VERSION: &str = "v4";
/// `BPF_FS_MAGIC` of `linux/magic.h`.
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;
const LONGEST_INSTANCE: usize = 64;

/// The pinned maps of one instance, locked against other processes; none where this user may not pin.
#[derive(Debug)]
pub(crate) struct Pins {
    instance: String,
    place: Option<PinPlace>,
}

/// Where maps are pinned.
#[derive(Debug)]
struct PinPlace {
    home: PinHome,
    /// The instance's directory, with a lock that ends with the process.
    lock: OwnedFd,
    /// The directory in it of this layout.
    directory: OwnedFd,
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
    /// Creates and locks the directory of `instance`, for `user` where the process is to become that one. What an earlier
    /// process of root left is taken over.
    ///
    /// A process that is not root and may not make the directory has no pins, and says so.
    pub(crate) fn open(instance: &str, user: Option<&RunUser>) -> Result<Self, DatapathError> {
        check_instance(instance)?;
        match Self::open_at_home(instance, user) {
            Err(error) if !geteuid().is_root() && !matches!(error, DatapathError::Busy { .. }) => {
                warn!(
                    "{error}. Without this place, connections that back-ends have are lost when this process is \
                     restarted or killed, clients of connections that were being cloned are not told when it is killed, and a \
                     second process of the same name is not noticed"
                );
                Ok(Self { instance: instance.to_owned(), place: None })
            }
            opened => opened,
        }
    }

    fn open_at_home(instance: &str, user: Option<&RunUser>) -> Result<Self, DatapathError> {
        mount_bpf_fs()?;
        let mut home = PinHome::open(user)?;
        let directory = home.directory_of(instance);
        let failed = |error| {
            DatapathError::of(format!("cannot make {}", directory.display()), "write access there", error)
        };
        for _ in 0..ATTEMPTS {
            let lock = match home.take(instance) {
                Err(Taking::Gone) => {
                    // Another process of this home has ended, and took the home with it.
                    home = PinHome::open(user)?;
                    continue;
                }
                Err(Taking::Busy) => {
                    let path = directory.display().to_string();
                    return Err(DatapathError::Busy { instance: instance.to_owned(), path });
                }
                Err(Taking::Failed(error)) => return Err(failed(error)),
                Ok(lock) => lock,
            };
            let layout = directory.join(LAYOUT_VERSION);
            home.make(&layout).map_err(failed)?;
            let directory = open_directory(&layout).map_err(|errno| failed(errno.into()))?;
            let place = Some(PinPlace { home, lock, directory });
            return Ok(Self { instance: instance.to_owned(), place });
        }
        Err(failed(io::ErrorKind::NotFound.into()))
    }

    /// The instance's name.
    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    /// Where the map `name` is pinned, if it is.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        let home = &self.place.as_ref()?.home;
        Some(home.directory_of(&self.instance).join(LAYOUT_VERSION).join(name))
    }

    /// Gives what is pinned to the user that this process is to become.
    pub(crate) fn give(&self, path: &Path) -> Result<(), DatapathError> {
        let Some(place) = &self.place else { return Ok(()) };
        place.home.give(path).map_err(|error| {
            DatapathError::of(format!("cannot give {} to its user", path.display()), "CAP_CHOWN", error)
        })
    }

    /// Other instances with pinned maps, unordered, as far as this process sees them: those of root and of its user.
    pub(crate) fn others(&self) -> Vec<OtherPins> {
        let of_root = PinHome::of_root();
        let own = self.place.as_ref().map(|place| &place.home);
        let is_another = of_root.is_sound() && own.is_none_or(|own| own.uid != of_root.uid);
        let homes = own.into_iter().chain(is_another.then_some(&of_root));
        let entries = homes.flat_map(|home| fs::read_dir(&home.path).into_iter().flatten().flatten());
        let others = entries.filter_map(|entry| {
            let directory = entry.path();
            Some(OtherPins { instance: entry.file_name().into_string().ok()?, directory })
        });
        others.filter(|other| other.instance != self.instance).collect()
    }

    /// Removes the directory if it is empty, as after a failed start.
    pub(crate) fn remove_empty(&self) {
        let Some(place) = &self.place else { return };
        // Fails if there is something in it.
        let _ = unlinkat(&place.lock, LAYOUT_VERSION, AtFlags::REMOVEDIR);
        place.home.leave(&self.instance);
    }

    /// Removes the maps of other layouts. Programs that still use them keep them until they are replaced.
    pub(crate) fn remove_other_versions(&self) {
        let Some(place) = &self.place else { return };
        let Ok(entries) = fs::read_dir(place.home.directory_of(&self.instance)) else { return };
        for entry in entries.flatten().filter(|entry| entry.file_name() != LAYOUT_VERSION) {
            info!("removing maps of another version in {}", entry.path().display());
            remove_directory(&entry.path());
        }
    }

    /// Removes all pins but these, as those of a process of another kind that had this name. The directory stays, with its lock.
    pub(crate) fn keep_only(&self, names: &[&str]) {
        let Some(place) = &self.place else { return };
        if let Err(error) = remove_contents(&place.directory, names) {
            warn!("cannot remove pinned maps of {}: {error}", self.instance);
        }
    }

    /// Removes all pins, and the directory.
    pub(crate) fn remove(&self) {
        self.keep_only(&[]);
        self.remove_empty();
    }
}

/// Removes the files in a directory but those of these names.
fn remove_contents(directory: &OwnedFd, kept: &[&str]) -> io::Result<()> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") && !kept.iter().any(|kept| kept.as_bytes() == name) {
            unlinkat(directory, entry.file_name(), AtFlags::empty())?;
        }
    }
    Ok(())
}

/// Those of the instance whose map `name` is the one of this number, as far as this process sees them.
pub(crate) fn pins_with(name: &str, map_id: u32) -> Option<OtherPins> {
    let homes = fs::read_dir(BPF_FS).ok()?.flatten();
    let homes = homes.filter(|entry| entry.file_name().to_string_lossy().starts_with(ROOT));
    let entries = homes.flat_map(|home| fs::read_dir(home.path()).into_iter().flatten().flatten());
    let mut instances = entries.filter_map(|entry| {
        Some(OtherPins { instance: entry.file_name().into_string().ok()?, directory: entry.path() })
    });
    let is_it = |pins: &OtherPins| {
        let info = MapHandle::from_pinned_path(pins.path(name)).and_then(|map| map.info());
        info.is_ok_and(|info| info.info.id == map_id)
    };
    instances.find(is_it)
}

/// The pinned maps of another instance.
#[derive(Debug)]
pub(crate) struct OtherPins {
    pub(crate) instance: String,
    directory: PathBuf,
}

impl OtherPins {
    /// The path of its map `name`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(LAYOUT_VERSION).join(name)
    }

    /// Whether a living process holds this instance. Do not ask about an instance that is just starting: it
    /// may take this check's lock for another process.
    pub(crate) fn is_alive(&self) -> bool {
        let locked = |directory| rustix::fs::flock(directory, FlockOperation::NonBlockingLockShared);
        open_directory(&self.directory).is_ok_and(|directory| locked(directory) == Err(Errno::WOULDBLOCK))
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
