//! Sockets, buffers and deadlines of one worker.

pub(crate) mod backend_tls;
pub(crate) mod buffer;
pub(crate) mod connect;
pub(crate) mod deadline;
mod fired;
pub(crate) mod halves;
pub(crate) mod held_memory;
pub(crate) mod listen;
pub(crate) mod listener;
pub(crate) mod pace;
pub(crate) mod places;
pub(crate) mod proxy_header;
pub(crate) mod proxy_protocol;
mod rush;
pub(crate) mod shared_halves;
pub(crate) mod shared_memory;
pub(crate) mod stream;
pub(crate) mod tls;
pub(crate) mod to_backend;
pub(crate) mod unless_gone;
pub(crate) mod watched_backend;
pub(crate) mod write;

/// Whether a connection failed for lack of files, memory or ports on this machine: no fault of the peer.
pub(crate) fn is_local(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
