//! Giving privileges away for good.

use std::fmt::Write as _;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::choice::Identity;
use super::{PrivilegeError, seccomp};

/// How long the kernel may list a thread that has ended.
const ENDING: Duration = Duration::from_secs(5);

/// What a process does once it has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptWork {
    /// It passes requests on, and may open listeners.
    Proxy,
    /// It answers at what it has bound.
    Answer,
    /// A front-end that hands connections off, and may open listeners.
    HandOff,
    /// A front-end whose packet program distributes connections.
    Distribute,
    /// An agent, which takes connections over.
    TakeOver {
        /// Whether they have ports that only the privileged bind.
        low_ports: bool,
    },
}

impl KeptWork {
    fn capabilities(self) -> CapabilitySet {
        // Sockets in repair mode, packet programs at interfaces, and addresses need NET_ADMIN; maps need BPF. A connection is
        // put back into the kernel by binding a socket to its port.
        let datapath = CapabilitySet::NET_ADMIN | CapabilitySet::BPF;
        match self {
            Self::Answer => CapabilitySet::empty(),
            Self::Proxy => CapabilitySet::NET_BIND_SERVICE,
            Self::HandOff | Self::TakeOver { low_ports: true } => datapath | CapabilitySet::NET_BIND_SERVICE,
            Self::Distribute | Self::TakeOver { low_ports: false } => datapath,
        }
    }
}

/// The privileges that a process gives away.
#[derive(Debug, Clone, Copy)]
pub struct PrivilegeDrop<'a> {
    /// As whom it goes on.
    pub identity: &'a Identity,
    /// What it goes on to do.
    pub work: KeptWork,
    /// Whether the kernel shall refuse system calls that it does not need.
    pub seccomp: bool,
}

impl PrivilegeDrop<'_> {
    /// Gives away all that is not needed any more, for this thread and all that it starts. Says in words what is left.
    ///
    /// # Errors
    /// There are other threads, which would keep theirs, or the kernel refuses. What was given away by then stays so: the
    /// process should end.
    pub fn apply(self) -> Result<String, PrivilegeError> {
        wait_for_one_thread()?;
        let kept = self.of_this_thread()?;
        let unfiltered = self.filter();
        Ok(self.text(kept, unfiltered.as_deref()))
    }

    fn of_this_thread(self) -> Result<CapabilitySet, PrivilegeError> {
        let before = capabilities(None).map_err(failed("cannot read this process's capabilities"))?;
        let kept = self.kept() & before.permitted;
        if before.effective.contains(CapabilitySet::SETPCAP) {
            trim_bounds(kept).map_err(PrivilegeError::system("cannot trim the bounding set"))?;
        }
        if geteuid().is_root() {
            // In a user namespace root may lack this right; who becomes another user has tried it before.
            let left = set_thread_groups(&[]);
            if self.identity.user().is_some() {
                left.map_err(failed("cannot leave the supplementary groups"))?;
            }
        }
        if let Identity::User(user) = self.identity {
            let (uid, gid) = (Uid::from_raw(user.uid()), Gid::from_raw(user.gid()));
            let become_user = || {
                set_keep_capabilities(true)?;
                set_thread_res_gid(gid, gid, gid)?;
                set_thread_res_uid(uid, uid, uid)
            };
            become_user().map_err(failed(format!("cannot become the user {user}")))?;
        }
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
        set_capabilities(None, sets).map_err(failed("cannot give capabilities away"))?;
        clear_ambient_capability_set().map_err(failed("cannot clear the ambient capabilities"))?;
        set_keep_capabilities(false).map_err(failed("cannot have the kernel forget to keep capabilities"))?;
        set_no_new_privs(true).map_err(failed("cannot renounce new privileges"))?;
        Ok(kept)
    }

    /// Has the kernel refuse system calls, if that is wanted; says why not otherwise.
    fn filter(self) -> Option<String> {
        if !self.seccomp {
            return Some("as configured".to_owned());
        }
        // A kernel may lack it. What was given away is worth more than this is on top of it.
        let uses_bpf =
            matches!(self.work, KeptWork::HandOff | KeptWork::Distribute | KeptWork::TakeOver { .. });
        seccomp::install(uses_bpf).err().map(|error| error.to_string())
    }

    fn kept(self) -> CapabilitySet {
        match self.identity {
            Identity::Root { overrides_files: true, .. } => {
                self.work.capabilities() | CapabilitySet::DAC_OVERRIDE
            }
            _ => self.work.capabilities(),
        }
    }

    fn text(self, kept: CapabilitySet, unfiltered: Option<&str>) -> String {
        let mut out = match self.identity {
            Identity::User(user) => format!("runs as {user}"),
            Identity::Root { .. } => "runs as root".to_owned(),
            Identity::Starter => format!("runs as user {}", geteuid().as_raw()),
        };
        let names: Vec<String> = kept.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
        // Writing to a String cannot fail.
        let _ = match names.as_slice() {
            [] => write!(out, " without capabilities"),
            names => write!(out, " with {} only", names.join(", ")),
        };
        if let Some(why) = unfiltered {
            let _ = write!(out, ", without a filter of system calls ({why})");
        }
        out
    }
}

fn failed(what: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> PrivilegeError {
    let failed = PrivilegeError::system(what);
    move |errno| failed(errno.into())
}

/// Takes all but these from the bounding set, those included that this program does not know.
fn trim_bounds(kept: CapabilitySet) -> io::Result<()> {
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if kept.contains(one) {
            continue;
        }
        match remove_capability_from_bounding_set(one) {
            // The kernel has no more.
            Err(rustix::io::Errno::INVAL) => break,
            removed => removed?,
        }
    }
    Ok(())
}

/// Waits until this is the only thread. One that was joined may still be listed for a moment.
fn wait_for_one_thread() -> Result<(), PrivilegeError> {
    let count = || Ok::<_, io::Error>(std::fs::read_dir("/proc/self/task")?.count());
    let begun = Instant::now();
    loop {
        let threads = match count() {
            // Without /proc, nobody can tell.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            counted => counted.map_err(PrivilegeError::system("cannot count this process's threads"))?,
        };
        if threads <= 1 {
            return Ok(());
        }
        if begun.elapsed() > ENDING {
            return Err(PrivilegeError::Threads { threads });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::thread::{capability_is_in_bounding_set, no_new_privs};

    use super::*;
    use crate::privileges::RunUser;

    /// In a thread of its own, which alone loses its privileges.
    fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(work).join().unwrap())
    }

    #[test]
    fn a_user_keeps_what_the_work_needs() {
        assert!(geteuid().is_root(), "this test needs root");
        let identity = Identity::User(RunUser::find("12345").unwrap());
        apart(|| {
            let drop = PrivilegeDrop { identity: &identity, work: KeptWork::HandOff, seccomp: false };
            let kept = drop.of_this_thread().unwrap();
            let wanted = CapabilitySet::NET_ADMIN | CapabilitySet::BPF | CapabilitySet::NET_BIND_SERVICE;
            let sets = capabilities(None).unwrap();
            assert_eq!((kept, sets.effective, sets.permitted), (wanted, wanted, wanted));
            assert_eq!(sets.inheritable, CapabilitySet::empty());
            assert!(!capability_is_in_bounding_set(CapabilitySet::SYS_ADMIN).unwrap());
            assert!(capability_is_in_bounding_set(CapabilitySet::BPF).unwrap());
            assert!(no_new_privs().unwrap());
            assert_eq!(geteuid().as_raw(), 12_345);
            assert_eq!(
                drop.text(kept, drop.filter().as_deref()),
                "runs as 12345 with CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_BPF only, without a filter of system calls (as \
                 configured)"
            );
        });
        assert!(geteuid().is_root(), "other threads are as they were");
    }

    #[test]
    fn root_keeps_the_work_and_foreign_files() {
        let identity = Identity::Root { overrides_files: true, why: None };
        apart(|| {
            let drop = PrivilegeDrop { identity: &identity, work: KeptWork::Proxy, seccomp: false };
            let wanted = CapabilitySet::NET_BIND_SERVICE | CapabilitySet::DAC_OVERRIDE;
            assert_eq!(drop.of_this_thread().unwrap(), wanted);
            assert!(geteuid().is_root());
        });
    }

    #[test]
    fn other_programs_cannot_be_started() {
        let identity = Identity::Root { overrides_files: false, why: None };
        apart(|| {
            let drop = PrivilegeDrop { identity: &identity, work: KeptWork::Proxy, seccomp: true };
            drop.of_this_thread().unwrap();
            assert_eq!(drop.filter(), None);
            let error = Command::new("/bin/true").status().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            let user = Uid::from_raw(1);
            assert_eq!(set_thread_res_uid(user, user, user), Err(rustix::io::Errno::PERM));
            // What a process does all the time.
            std::thread::spawn(|| std::fs::read_to_string("/proc/self/status").unwrap()).join().unwrap();
            std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        });
        assert!(Command::new("/bin/true").status().unwrap().success());
    }

    #[test]
    fn with_other_threads_nothing_is_given_away() {
        // The tests themselves run in threads of this process, so that there is always another one.
        let identity = Identity::Root { overrides_files: false, why: None };
        let drop = PrivilegeDrop { identity: &identity, work: KeptWork::Proxy, seccomp: true };
        assert!(matches!(drop.apply(), Err(PrivilegeError::Threads { .. })));
        assert!(capabilities(None).unwrap().effective.contains(CapabilitySet::SYS_ADMIN));
    }
}
