//! What a process may do: which user it runs as, which capabilities it keeps, and which system calls the kernel refuses it.
//!
//! A process that starts as root prepares everything that takes privileges, [`choose`]s as whom it goes on, and gives the rest
//! away with [`PrivilegeDrop::apply`], before it has a second thread: threads inherit what their maker has, and one that is
//! there already would keep all of it.

mod choice;
mod drop;
mod file_need;
mod run_user;
mod seccomp;

pub use choice::{Identity, choose, provide};
pub use drop::{KeptWork, PrivilegeDrop};
pub use file_need::{DeniedFile, FileAccess, FileNeed};
pub use run_user::RunUser;

use std::io;

use crate::sysctl;

/// Whether it takes a privilege (`CAP_NET_BIND_SERVICE`) to bind this port, in this network namespace.
#[must_use]
pub fn is_privileged_port(port: u16) -> bool {
    u32::from(port) < sysctl::first_free_port()
}

/// Why a process cannot run as it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// There is no such user.
    #[error("there is no user {name:?} on this machine; name one that is in the user database, or a number")]
    NoUser {
        /// The name that was asked for.
        name: String,
    },
    /// Only root becomes another user.
    #[error(
        "this process is user {uid} and cannot become {name}: start it as root, or as {name}, or leave the user out"
    )]
    NotRoot {
        /// The wanted user.
        name: String,
        /// Who it is now.
        uid: u32,
    },
    /// The user may not use a file that is needed later.
    #[error("the user {user} {denied}; give that user access, or name another one")]
    Denied {
        /// The wanted user.
        user: String,
        /// The file.
        denied: DeniedFile,
    },
    /// There are other threads, which would keep their privileges.
    #[error(
        "privileges cannot be given away, as there are {threads} threads already, which would keep theirs; start it without \
         preloaded libraries that begin threads"
    )]
    Threads {
        /// How many.
        threads: usize,
    },
    /// The kernel refuses.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl PrivilegeError {
    fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
