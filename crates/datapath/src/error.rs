//! Errors of requests to the kernel.

use std::io;
use std::net::IpAddr;

/// Why the kernel refused a request, with a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatapathError {
    /// A system call failed for lack of a capability.
    #[error("{what}: {source}. This needs {capability}: run as root, or grant the capability")]
    Denied {
        /// What was tried.
        what: String,
        /// The capabilities (see `man 7 capabilities`) that it needs.
        capability: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A system call failed for another reason.
    #[error("{what}: {source}")]
    Failed {
        /// What was tried.
        what: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Another living process has the same instance.
    #[error(
        "instance {instance:?} runs already: it holds {path}. Stop it, or give this one another instance name"
    )]
    Busy {
        /// The instance's name.
        instance: String,
        /// The directory of its pinned maps.
        path: String,
    },
    /// Another instance has a virtual address.
    #[error(
        "the virtual address {address} is that of instance {instance:?} at {interface}, and of one alone: {remedy}"
    )]
    Taken {
        /// The address.
        address: IpAddr,
        /// The other instance's name.
        instance: String,
        /// Its interface.
        interface: String,
        /// What helps.
        remedy: String,
    },
    /// There is no network interface of this name or number.
    #[error("there is no network interface {name}; `ip link` lists them")]
    NoInterface {
        /// The name, or the number as text.
        name: String,
    },
    /// A map is full.
    #[error("{what}: all {capacity} places are taken")]
    Full {
        /// What was to be entered.
        what: &'static str,
        /// Most entries.
        capacity: u32,
    },
    /// An address is reached through a router, so that its MAC address would lead to the router.
    #[error(
        "{address} is reached through the gateway {gateway} on {interface}: front-end and back-ends must be on the \
         same Ethernet segment"
    )]
    Gateway {
        /// The address asked for.
        address: IpAddr,
        /// The router.
        gateway: IpAddr,
        /// The interface of the route.
        interface: String,
    },
    /// Nobody answered for an address.
    #[error(
        "no MAC address of {address} on {interface} within {wait_ms} ms: is the machine up and on this segment?"
    )]
    Unresolved {
        /// The address asked for.
        address: IpAddr,
        /// The interface of the route.
        interface: String,
        /// How long was waited, in milliseconds.
        wait_ms: u64,
    },
    /// An argument or a configured value is invalid.
    #[error("{0}")]
    Invalid(String),
    /// Something existing is not as expected: a pinned map, an answer of the kernel, a foreign filter.
    #[error("{0}")]
    Unexpected(String),
}

impl DatapathError {
    /// The error of a failed call that needs `capability`.
    pub(crate) fn of(what: impl Into<String>, capability: &'static str, source: io::Error) -> Self {
        let what = what.into();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Denied { what, capability, source },
            _ => Self::Failed { what, source },
        }
    }

    /// The error of a failed call of libbpf.
    pub(crate) fn of_bpf(
        what: impl Into<String>,
        capability: &'static str,
        error: &libbpf_rs::Error,
    ) -> Self {
        let text = format!("{error:#}");
        // The verifier refuses with EACCES, for which no capability helps. Only the number's text is left to
        // tell them apart.
        let denied = text.contains(&format!("(os error {})", libc::EPERM));
        let kind = if denied { io::ErrorKind::PermissionDenied } else { io::ErrorKind::Other };
        let source = io::Error::new(kind, text);
        match denied {
            true => Self::Denied { what: what.into(), capability, source },
            false => Self::Failed { what: what.into(), source },
        }
    }
}

/// The capabilities for loading programs and creating maps. Without `CAP_PERFMON` the verifier guards against
/// speculation and accepts few programs of this size.
pub(crate) const BPF_CAPABILITIES: &str = "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (or CAP_SYS_ADMIN)";
/// The capability for changing the network.
pub(crate) const NET_ADMIN: &str = "CAP_NET_ADMIN";
