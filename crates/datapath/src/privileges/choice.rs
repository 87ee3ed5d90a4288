//! As whom a process goes on once it has started.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::process::{DumpableBehavior, Gid, Uid, dumpable_behavior, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, capabilities, set_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::PrivilegeError;
use super::file_need::{DeniedFile, FileAccess, FileNeed};
use super::run_user::RunUser;

/// What opens files of other users.
const OVERRIDE: CapabilitySet =
    CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::DAC_READ_SEARCH).union(CapabilitySet::FOWNER);
/// The user who owns nothing.
const NOBODY: &str = "nobody";

/// As whom a process goes on.
#[derive(Debug)]
pub enum Identity {
    /// As the user that started it, who is not root.
    Starter,
    /// As this user, who is not root.
    User(RunUser),
    /// As root, with few capabilities.
    Root {
        /// Whether it must open files that root does not own and may not use by their permissions.
        overrides_files: bool,
        /// Why it does not run as another user, if it would.
        why: Option<String>,
    },
}

impl Identity {
    /// The user that it becomes, if that is another one.
    #[must_use]
    pub fn user(&self) -> Option<&RunUser> {
        match self {
            Self::User(user) => Some(user),
            Self::Starter | Self::Root { .. } => None,
        }
    }
}

/// Chooses as whom this process goes on: as `wanted` (a name or a number); without one, a process of root goes on as `nobody`,
/// if `nobody` may use all that it `needs`.
///
/// # Errors
/// There is no such user, it may not use a file that is needed ([`PrivilegeError::Denied`]), or this process is not root
/// and cannot become another user.
pub fn choose(wanted: Option<&str>, needs: &[FileNeed]) -> Result<Identity, PrivilegeError> {
    let own = geteuid();
    let user = wanted.map(RunUser::find).transpose()?;
    if !own.is_root() {
        return match user {
            Some(user) if user.uid() != own.as_raw() => {
                Err(PrivilegeError::NotRoot { name: user.to_string(), uid: own.as_raw() })
            }
            _ => Ok(Identity::Starter),
        };
    }
    match user {
        Some(user) if user.is_root() => root(needs, None),
        Some(user) => match seen_as(Some(&user), needs)? {
            Some(denied) => Err(PrivilegeError::Denied { user: user.to_string(), denied }),
            None => Ok(Identity::User(user)),
        },
        None => as_nobody(needs).or_else(|why| root(needs, Some(why))),
    }
}

/// `nobody`, or why not.
fn as_nobody(needs: &[FileNeed]) -> Result<Identity, String> {
    let user = RunUser::find(NOBODY).map_err(|error| error.to_string())?;
    match seen_as(Some(&user), needs) {
        Ok(None) => Ok(Identity::User(user)),
        Ok(Some(denied)) => Err(format!("{NOBODY} {denied}")),
        Err(error) => Err(error.to_string()),
    }
}

fn root(needs: &[FileNeed], why: Option<String>) -> Result<Identity, PrivilegeError> {
    Ok(Identity::Root { overrides_files: seen_as(None, needs)?.is_some(), why })
}

/// The first of these files that a user may not use; with none, that root may not use by the files' permissions.
///
/// Looks from a thread that becomes this user: users are a matter of threads to the kernel, and this one ends afterwards.
fn seen_as(user: Option<&RunUser>, needs: &[FileNeed]) -> Result<Option<DeniedFile>, PrivilegeError> {
    // A change of the user, in whatever thread, keeps the process from being dumped or traced.
    let dumpable = dumpable_behavior().unwrap_or(DumpableBehavior::NotDumpable);
    let look = || {
        become_user(user)?;
        Ok(needs.iter().find_map(FileNeed::denied))
    };
    let what =
        user.map_or_else(|| "cannot look at files as root".to_owned(), |u| format!("cannot become {u}"));
    let seen = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("files".to_owned()).spawn_scoped(scope, look)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("looking at files failed")))
    });
    if dumpable == DumpableBehavior::Dumpable {
        // Fails for no reason that the kernel documents; the process is then less visible, not more.
        let _ = set_dumpable_behavior(dumpable);
    }
    seen.map_err(PrivilegeError::system(what))
}

/// Makes the calling thread this user, without any capability; or root without those that open other users' files.
fn become_user(user: Option<&RunUser>) -> io::Result<()> {
    let left = set_thread_groups(&[]);
    if let Some(user) = user {
        left?;
        let (uid, gid) = (Uid::from_raw(user.uid()), Gid::from_raw(user.gid()));
        set_thread_res_gid(gid, gid, gid)?;
        // Takes all capabilities away.
        return Ok(set_thread_res_uid(uid, uid, uid)?);
    }
    let mut sets = capabilities(None)?;
    sets.effective.remove(OVERRIDE);
    sets.permitted.remove(OVERRIDE);
    Ok(set_capabilities(None, sets)?)
}

/// Makes the files that a user needs and that are not there, and gives them to that user. For a process of root.
///
/// # Errors
/// A file cannot be made.
pub fn provide(needs: &[FileNeed], user: &RunUser) -> Result<(), PrivilegeError> {
    for need in needs.iter().filter(|need| !need.path.exists()) {
        let made = match need.access {
            FileAccess::Append => make_file(&need.path, user),
            FileAccess::Fill => make_directory(&need.path, user),
            FileAccess::Read
            | FileAccess::ReadTree
            | FileAccess::CreateIn
            | FileAccess::Connect
            | FileAccess::ConnectLater => Ok(()),
        };
        made.map_err(PrivilegeError::system(format!(
            "cannot make {}, for {}",
            need.path.display(),
            need.what
        )))?;
    }
    Ok(())
}

fn make_file(path: &Path, user: &RunUser) -> io::Result<()> {
    // Never follows a link that somebody has put there meanwhile.
    let file = fs::OpenOptions::new().append(true).create_new(true).mode(0o644).open(path)?;
    std::os::unix::fs::fchown(file, Some(user.uid()), Some(user.gid()))
}

fn make_directory(path: &Path, user: &RunUser) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_directory(parent, user)?;
    }
    fs::create_dir(path)?;
    std::os::unix::fs::lchown(path, Some(user.uid()), Some(user.gid()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    fn need(path: &Path, access: FileAccess) -> Vec<FileNeed> {
        vec![FileNeed::new(path, access, "this test")]
    }

    /// A directory that others may enter.
    fn open_directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        directory
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn nobody_where_nobody_may_use_all_files() {
        assert!(geteuid().is_root(), "this test needs root");
        let directory = open_directory();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        mode(&file, 0o644);
        let readable = need(&file, FileAccess::Read);
        let chosen = choose(None, &readable).unwrap();
        assert_eq!(chosen.user().map(RunUser::to_string).as_deref(), Some("nobody (65534)"), "{chosen:?}");
        mode(&file, 0o600);
        let Identity::Root { overrides_files: false, why: Some(why) } = choose(None, &readable).unwrap()
        else {
            panic!("root's file alone asks for root, without more")
        };
        assert!(
            why.contains(&format!("may not read {} (this test): Permission denied", file.display())),
            "{why}"
        );
        let error = choose(Some("nobody"), &readable).unwrap_err().to_string();
        assert!(
            error.contains("nobody (65534) may not read") && error.contains("give that user access"),
            "{error}"
        );
        assert!(matches!(choose(Some("root"), &readable), Ok(Identity::Root { why: None, .. })));
        // Nobody but the owner, who is not root.
        std::os::unix::fs::chown(&file, Some(12_345), Some(12_345)).unwrap();
        let theirs = choose(None, &readable).unwrap();
        assert!(matches!(theirs, Identity::Root { overrides_files: true, .. }), "{theirs:?}");
        assert!(choose(Some("12345"), &readable).unwrap().user().is_some());
    }

    #[test]
    fn each_kind_of_file() {
        let directory = open_directory();
        let of_nobody = |access, path: &Path| choose(None, &need(path, access)).unwrap().user().is_some();
        let inside = directory.path().join("inside");
        for access in [FileAccess::Append, FileAccess::Fill] {
            assert!(of_nobody(access, &inside), "it is made: {access:?}");
            assert!(of_nobody(access, &inside.join("deeper")), "with what is above it: {access:?}");
        }
        assert!(of_nobody(FileAccess::ConnectLater, &inside.join("socket")), "somebody else makes it");
        assert!(!of_nobody(FileAccess::Connect, &inside.join("socket")), "it has to be there");
        assert!(!of_nobody(FileAccess::Read, &inside));
        assert!(!of_nobody(FileAccess::CreateIn, directory.path()));
        fs::create_dir(&inside).unwrap();
        mode(&inside, 0o755);
        assert!(of_nobody(FileAccess::Read, &inside) && !of_nobody(FileAccess::Fill, &inside));
        let secret = inside.join("secret");
        fs::write(&secret, "").unwrap();
        mode(&secret, 0o644);
        assert!(of_nobody(FileAccess::ReadTree, directory.path()));
        assert!(!of_nobody(FileAccess::Append, &secret) && !of_nobody(FileAccess::Connect, &secret));
        assert!(!of_nobody(FileAccess::ConnectLater, &secret), "it is there, and does not let in");
        mode(&secret, 0o666);
        assert!(of_nobody(FileAccess::Connect, &secret) && of_nobody(FileAccess::ConnectLater, &secret));
        mode(&secret, 0o600);
        assert!(!of_nobody(FileAccess::ReadTree, directory.path()));
        mode(directory.path(), 0o700);
        assert!(!of_nobody(FileAccess::Append, &directory.path().join("new")), "nobody gets there");
        assert!(!of_nobody(FileAccess::ConnectLater, &directory.path().join("new")), "nor to a socket");
    }

    #[test]
    fn what_is_made_is_the_users() {
        let directory = open_directory();
        let user = RunUser::find("12345").unwrap();
        let (log, decisions) = (directory.path().join("log"), directory.path().join("a/b"));
        let needs = [
            FileNeed::new(&log, FileAccess::Append, "a log"),
            FileNeed::new(&decisions, FileAccess::Fill, "logs"),
        ];
        provide(&needs, &user).unwrap();
        provide(&needs, &user).unwrap();
        for path in [&log, &decisions, &directory.path().join("a")] {
            assert_eq!(path.metadata().unwrap().uid(), 12_345, "{}", path.display());
        }
        assert!(choose(Some("12345"), &needs).is_ok());
    }

    #[test]
    fn looking_leaves_this_thread_as_it_was() {
        choose(Some("12345"), &[]).unwrap();
        assert!(geteuid().is_root());
    }
}
