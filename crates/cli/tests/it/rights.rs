//! What the kernel says of the privileges of a process's threads, and processes of plain users.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use plimsoll_testkit::{eventually, wait_for};

/// Bits of capability sets (`linux/capability.h`).
pub(crate) const DAC_OVERRIDE: u64 = 1 << 1;
pub(crate) const BIND_SERVICE: u64 = 1 << 10;
pub(crate) const NET_ADMIN: u64 = 1 << 12;
pub(crate) const BPF: u64 = 1 << 39;
/// `SECCOMP_MODE_FILTER`.
const FILTERED: u64 = 2;
/// The user `nobody` of Debian, and the group.
pub(crate) const NOBODY: u32 = 65_534;

/// What every thread of a process may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rights {
    /// Real, effective, saved and of the file system.
    pub(crate) uids: Vec<u64>,
    pub(crate) gids: Vec<u64>,
    pub(crate) groups: Vec<u64>,
    pub(crate) inheritable: u64,
    pub(crate) permitted: u64,
    pub(crate) effective: u64,
    pub(crate) bounding: u64,
    pub(crate) ambient: u64,
    pub(crate) no_new_privileges: u64,
    pub(crate) seccomp: u64,
}

impl Rights {
    /// Of a process that gave away all but these capabilities.
    pub(crate) fn trimmed(user: u32, capabilities: u64) -> Self {
        Self {
            uids: vec![user.into(); 4],
            gids: vec![user.into(); 4],
            groups: Vec::new(),
            inheritable: 0,
            permitted: capabilities,
            effective: capabilities,
            bounding: capabilities,
            ambient: 0,
            no_new_privileges: 1,
            seccomp: FILTERED,
        }
    }

    fn of_status(text: &str) -> Self {
        let line = |name: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.unwrap_or_else(|| panic!("no {name} in:\n{text}")).trim()
        };
        let numbers = |name| line(name).split_whitespace().map(|n| n.parse().unwrap()).collect();
        let set = |name| u64::from_str_radix(line(name), 16).unwrap();
        Self {
            uids: numbers("Uid"),
            gids: numbers("Gid"),
            groups: numbers("Groups"),
            inheritable: set("CapInh"),
            permitted: set("CapPrm"),
            effective: set("CapEff"),
            bounding: set("CapBnd"),
            ambient: set("CapAmb"),
            no_new_privileges: line("NoNewPrivs").parse().unwrap(),
            seccomp: line("Seccomp").parse().unwrap(),
        }
    }

    /// Of a process, all of whose threads must have the same, once there are as many.
    pub(crate) fn of(pid: u32, threads: usize) -> Self {
        let tasks = || fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        eventually("all threads", || tasks().count() >= threads);
        let read = || -> Vec<Self> {
            // A thread may end meanwhile.
            let texts = tasks().filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
            texts.map(|text| Self::of_status(&text)).collect()
        };
        // One after the other, while the process may be giving privileges away: read twice with the same result, they are of one moment.
        let all = wait_for("privileges that stay", || Some(read()).filter(|all| *all == read()));
        assert!(all.iter().all(|one| *one == all[0]), "threads differ: {all:#?}");
        all[0].clone()
    }
}

/// A directory with the command in it, which others may enter.
pub(crate) fn open_directory(owner: u32) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    chown(directory.path(), Some(owner), Some(owner)).unwrap();
    directory
}

/// The command where others may run it: the build's directory may be private.
pub(crate) fn command_in(directory: &Path) -> PathBuf {
    let (built, here) = (env!("CARGO_BIN_EXE_plimsoll"), directory.join("plimsoll"));
    fs::hard_link(built, &here).or_else(|_| fs::copy(built, &here).map(drop)).unwrap();
    here
}

/// The program and arguments of `setpriv` that run `program` as a plain user with these capabilities alone.
pub(crate) fn as_user(
    user: u32,
    capabilities: &[&str],
    program: impl AsRef<OsStr>,
) -> Vec<std::ffi::OsString> {
    let plus: Vec<String> = capabilities.iter().map(|name| format!("+{name}")).collect();
    let mut all: Vec<std::ffi::OsString> = vec!["setpriv".into()];
    all.extend(["--reuid", "--regid"].iter().flat_map(|option| [(*option).into(), user.to_string().into()]));
    all.push("--clear-groups".into());
    if !plus.is_empty() {
        let plus = plus.join(",");
        all.extend([format!("--inh-caps={plus}").into(), format!("--ambient-caps={plus}").into()]);
    }
    all.extend(["--".into(), program.as_ref().to_owned()]);
    all
}
