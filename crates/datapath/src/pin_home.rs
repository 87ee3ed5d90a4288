//! Where the pins of one user are: a directory that nobody else may enter, so that nobody else can lock what is in it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FlockOperation, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, flock, fstat, open, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use tracing::{info, warn};

use crate::error::DatapathError;
use crate::privileges::RunUser;

/// The BPF file system.
pub(crate) const BPF_FS: &str = "/sys/fs/bpf";
/// Only its owner may enter.
const PRIVATE: u32 = 0o700;
/// The permission bits.
const MODE: u32 = 0o7777;
/// The home of root has this name; that of another user begins with it.
pub(crate) const ROOT: &str = "plimsoll";
/// How often a directory is made that others remove in the same moment.
pub(crate) const ATTEMPTS: usize = 100;

/// Why an instance's directory cannot be taken.
#[derive(Debug)]
pub(crate) enum Taking {
    /// A living process has it.
    Busy,
    /// It was removed in the same moment.
    Gone,
    /// The system's reason.
    Failed(io::Error),
}

impl From<io::Error> for Taking {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Gone } else { Self::Failed(error) }
    }
}

impl From<Errno> for Taking {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

/// The directory with the pins of one user.
#[derive(Debug)]
pub(crate) struct PinHome {
    pub(crate) path: PathBuf,
    pub(crate) uid: u32,
    gid: Option<u32>,
    /// The open directory, once it has been made. A process that has become another user may reach it by no path, where the
    /// file system's root is private (as systemd mounts it).
    directory: Option<OwnedFd>,
}

impl PinHome {
    /// The home of root, which need not be there.
    pub(crate) fn of_root() -> Self {
        Self { path: Path::new(BPF_FS).join(ROOT), uid: 0, gid: Some(0), directory: None }
    }

    fn of(user: Option<&RunUser>) -> Self {
        let uid = user.map_or_else(|| geteuid().as_raw(), RunUser::uid);
        match uid {
            0 => Self::of_root(),
            uid => Self {
                path: Path::new(BPF_FS).join(format!("{ROOT}-{uid}")),
                uid,
                gid: user.map(RunUser::gid),
                directory: None,
            },
        }
    }

    /// The home of `user`, or of the user of this process. It is made where it is not there, and nobody else may enter it
    /// afterwards. Root takes it from a stranger who has made it; others refuse it.
    pub(crate) fn open(user: Option<&RunUser>) -> Result<Self, DatapathError> {
        let mut home = Self::of(user);
        // Another process that ends may remove it in the same moment.
        let gone = |prepared: &io::Result<OwnedFd>| {
            prepared.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let mut attempts = std::iter::repeat_with(|| home.prepare()).take(ATTEMPTS);
        let prepared =
            attempts.find(|prepared| !gone(prepared)).unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()));
        home.directory = Some(prepared.map_err(|error| {
            let what = format!("cannot keep packet programs' maps in {}", home.path.display());
            DatapathError::of(what, "write access there", error)
        })?);
        Ok(home)
    }

    fn prepare(&self) -> io::Result<OwnedFd> {
        match fs::DirBuilder::new().mode(PRIVATE).create(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let directory = match open_directory(&self.path) {
            // A file or a link of somebody, where anybody may make one.
            Err(Errno::NOTDIR | Errno::LOOP) if geteuid().is_root() => {
                warn!("{} is no directory, and is replaced by one", self.path.display());
                fs::remove_file(&self.path)?;
                return self.prepare();
            }
            opened => opened?,
        };
        let found = fstat(&directory)?;
        self.own(&directory, &found)?;
        if mode_of(&found) != PRIVATE {
            fchmod(&directory, Mode::from_raw_mode(PRIVATE))?;
        }
        Ok(directory)
    }

    /// Makes the directory this user's.
    fn own(&self, directory: &OwnedFd, found: &Stat) -> io::Result<()> {
        if found.st_uid == self.uid {
            return Ok(());
        }
        let path = self.path.display();
        if !geteuid().is_root() {
            let text = format!(
                "it belongs to user {}, a stranger; that user, or root, must remove it",
                found.st_uid
            );
            return Err(io::Error::other(text));
        }
        fchmod(directory, Mode::from_raw_mode(PRIVATE))?;
        fchown(directory, Some(Uid::from_raw(self.uid)), self.gid.map(Gid::from_raw))?;
        if found.st_uid == 0 {
            // It has just been made, for a user.
            return Ok(());
        }
        warn!("{path} belonged to user {}, a stranger; what is in it is removed", found.st_uid);
        for entry in fs::read_dir(&self.path)?.flatten() {
            let removed = match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path()),
                false => fs::remove_file(entry.path()),
            };
            removed?;
        }
        Ok(())
    }

    /// Whether it is there, and belongs to its user.
    pub(crate) fn is_sound(&self) -> bool {
        self.path.symlink_metadata().is_ok_and(|found| found.is_dir() && found.uid() == self.uid)
    }

    /// The directory of an instance.
    pub(crate) fn directory_of(&self, instance: &str) -> PathBuf {
        self.path.join(instance)
    }

    /// Makes the directory of `instance` and locks it. One that root has is moved here.
    pub(crate) fn take(&self, instance: &str) -> Result<OwnedFd, Taking> {
        let directory = self.directory_of(instance);
        let of_root = Self::of_root();
        let before = of_root.directory_of(instance);
        if self.uid != 0
            && geteuid().is_root()
            && of_root.is_sound()
            && before.is_dir()
            && !directory.is_dir()
        {
            let lock = lock(&before)?;
            fs::rename(&before, &directory)?;
            info!("taking over {}, as {}", before.display(), directory.display());
            of_root.remove_if_empty();
            self.give_below(&directory)?;
            return Ok(lock);
        }
        self.make(&directory)?;
        lock(&directory)
    }

    /// Makes a directory, unless it is there.
    pub(crate) fn make(&self, directory: &Path) -> io::Result<()> {
        match fs::DirBuilder::new().mode(PRIVATE).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        self.give(directory)
    }

    /// Gives something in this home to its user.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        if !geteuid().is_root() || self.uid == 0 {
            return Ok(());
        }
        std::os::unix::fs::lchown(path, Some(self.uid), self.gid)
    }

    fn give_below(&self, directory: &Path) -> io::Result<()> {
        self.give(directory)?;
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => self.give_below(&entry.path())?,
                false => self.give(&entry.path())?,
            }
        }
        Ok(())
    }

    /// Removes the directory of `instance` if it is empty, and the home if that is then empty. A process that is not root any more may lack the right to do so; then it stays, empty.
    pub(crate) fn leave(&self, instance: &str) {
        // Each fails if there is something in it.
        if let Some(directory) = &self.directory {
            let _ = unlinkat(directory, instance, AtFlags::REMOVEDIR);
        }
        self.remove_if_empty();
    }

    pub(crate) fn remove_if_empty(&self) {
        let _ = fs::remove_dir(&self.path);
    }
}

/// A directory that is one, and no link to one.
pub(crate) fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    open(path, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

fn mode_of(found: &Stat) -> u32 {
    found.st_mode & MODE
}

/// Locks a directory, which is still there afterwards.
fn lock(directory: &Path) -> Result<OwnedFd, Taking> {
    let held = open_directory(directory)?;
    match flock(held.as_fd(), FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Err(Taking::Busy),
        locked => locked?,
    }
    let (held_is, there_is) = (fstat(&held)?, rustix::fs::stat(directory)?);
    if held_is.st_ino != there_is.st_ino {
        return Err(Taking::Gone);
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    /// The home of a user that no other test has.
    struct TestHome(PinHome);

    impl TestHome {
        fn new(number: u32) -> Self {
            let user =
                RunUser::find(&(3_000_000 + std::process::id() % 100_000 * 10 + number).to_string()).unwrap();
            Self(PinHome::of(Some(&user)))
        }
    }

    impl Drop for TestHome {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0.path);
        }
    }

    fn is_private(home: &PinHome) -> bool {
        let found = home.path.symlink_metadata().unwrap();
        found.is_dir() && found.uid() == home.uid && found.mode() & MODE == PRIVATE
    }

    #[test]
    fn a_home_is_its_users_alone() {
        let home = TestHome::new(0);
        home.0.prepare().expect("this test needs root, and a BPF file system");
        assert!(is_private(&home.0));
        fs::set_permissions(&home.0.path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        home.0.prepare().unwrap();
        assert!(is_private(&home.0));
        home.0.remove_if_empty();
        assert!(!home.0.path.exists());
    }

    #[test]
    fn a_stranger_who_was_there_first_is_put_out() {
        let home = TestHome::new(1);
        fs::create_dir(&home.0.path).unwrap();
        fs::create_dir_all(home.0.path.join("front-end/v2")).unwrap();
        chown(&home.0.path, Some(54_321), None).unwrap();
        let held = lock(&home.0.directory_of("front-end")).unwrap();
        home.0.prepare().unwrap();
        assert!(is_private(&home.0));
        assert_eq!(fs::read_dir(&home.0.path).unwrap().count(), 0);
        // The stranger's lock is one on what is gone.
        drop(home.0.take("front-end").unwrap());
        drop(held);
    }

    /// A user who is not root runs without pins then; nothing of the stranger's is touched.
    #[test]
    fn a_plain_user_refuses_a_strangers_home() {
        let home = TestHome::new(3);
        fs::create_dir(&home.0.path).unwrap();
        fs::set_permissions(&home.0.path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        chown(&home.0.path, Some(54_321), None).unwrap();
        let user = rustix::process::Uid::from_raw(home.0.uid);
        let refused = std::thread::scope(|scope| {
            let as_user = || {
                // Of this thread alone.
                rustix::thread::set_thread_res_uid(user, user, user).unwrap();
                PinHome::open(None).unwrap_err().to_string()
            };
            scope.spawn(as_user).join().unwrap()
        });
        assert!(refused.contains("belongs to user 54321, a stranger"), "{refused}");
        assert_eq!(home.0.path.metadata().unwrap().uid(), 54_321);
    }

    #[test]
    fn an_instance_is_taken_once() {
        let home = TestHome::new(2);
        home.0.prepare().unwrap();
        let first = home.0.take("a").unwrap();
        assert_eq!(home.0.directory_of("a").metadata().unwrap().uid(), home.0.uid);
        assert!(matches!(home.0.take("a"), Err(Taking::Busy)));
        drop(home.0.take("b").unwrap());
        drop(first);
        home.0.take("a").unwrap();
        fs::remove_dir_all(&home.0.path).unwrap();
        assert!(matches!(home.0.take("a"), Err(Taking::Gone)));
    }
}
