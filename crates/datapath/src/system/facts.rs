//! Facts about this machine.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use rustix::thread::{CapabilitySet, capabilities};
use tracing::debug;

use super::diagnosis::{self, Diagnosis};
use super::question::{Question, Role};
use super::raw;
use crate::netlink::{LOOPBACK, NetworkInterface, addresses, links};
use crate::pin_home::PinHome;
use crate::switch::{SwitchProcess, Transport, taken_services};
use crate::{forwarder, guard, neighbor, pins, source_to, sysctl};

/// How long a peer may take to say its MAC address.
const WAIT: Duration = Duration::from_secs(1);

/// All facts from which findings follow.
#[derive(Debug, Clone)]
pub(super) struct SystemFacts {
    pub(super) role: Role,
    pub(super) net_admin: bool,
    /// `CAP_BPF`, or `CAP_SYS_ADMIN`, which includes it.
    pub(super) bpf: bool,
    /// `CAP_PERFMON`, or `CAP_SYS_ADMIN`, which includes it.
    pub(super) perfmon: bool,
    pub(super) bind_service: bool,
    pub(super) sys_admin: bool,
    /// The smallest port that anybody may bind.
    pub(super) first_free_port: u32,
    /// Ports to be bound; none are known of a back-end.
    pub(super) ports: Vec<u16>,
    /// As `uname -r` shows it.
    pub(super) kernel: String,
    pub(super) bpf_fs: bool,
    /// Whether this user may keep maps there, and if not, why; `None` if not tried.
    pub(super) pins: Option<Result<(), String>>,
    pub(super) programs: ProgramsTried,
    pub(super) repair: Result<(), String>,
    /// Only of a back-end.
    pub(super) diagnosis: Option<Diagnosis>,
    /// Whether connection tracking takes connections up in the middle; `None` where there is none. Only of a back-end.
    pub(super) tracks_loosely: Option<bool>,
    /// Whether the machine routes IPv4.
    pub(super) routes: bool,
    pub(super) interfaces: Vec<(String, Option<Interface>)>,
    /// Virtual addresses, and where this machine has them.
    pub(super) vips: Vec<(IpAddr, Vec<String>)>,
    /// Addresses at which nobody may listen, and whether somebody does.
    pub(super) unused: Vec<(SocketAddr, Transport, bool)>,
    /// Listeners whose packets a switch takes; why that is not known, if it is not.
    pub(super) taken: Result<Vec<(SocketAddr, SwitchProcess)>, String>,
    pub(super) peers: Vec<(IpAddr, Result<(), String>)>,
    /// Machines to which this one connects, and from which address.
    pub(super) sources: Vec<(IpAddr, Result<IpAddr, String>)>,
    /// Addresses that these machines have, too.
    pub(super) shared: Vec<IpAddr>,
}

/// Whether the packet programs could be loaded and attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProgramsTried {
    /// They could.
    Attached,
    /// They could be loaded; this process has no network of its own to attach them in.
    Loaded,
    /// They could not.
    Failed(String),
}

/// An existing interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) ethernet: bool,
    pub(super) merged_bytes: Option<u32>,
    pub(super) large_receive: Option<bool>,
    /// The effective value: the greater of the interface's and that of `all`.
    pub(super) rp_filter: u32,
    pub(super) arp_ignore: u32,
    pub(super) arp_announce: u32,
    pub(super) accept_local: u32,
}

pub(super) fn gather(question: &Question) -> SystemFacts {
    let effective = capabilities(None).map(|sets| sets.effective).unwrap_or(CapabilitySet::empty());
    let links = links().unwrap_or_default();
    let interface = |name: &String| {
        let link = links.iter().find(|link| link.name == *name);
        (name.clone(), link.map(interface))
    };
    let sys_admin = effective.contains(CapabilitySet::SYS_ADMIN);
    SystemFacts {
        role: question.role,
        net_admin: effective.contains(CapabilitySet::NET_ADMIN),
        bpf: effective.contains(CapabilitySet::BPF) || sys_admin,
        perfmon: effective.contains(CapabilitySet::PERFMON) || sys_admin,
        bind_service: effective.contains(CapabilitySet::NET_BIND_SERVICE),
        sys_admin,
        first_free_port: sysctl::first_free_port(),
        ports: question.ports.clone(),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        bpf_fs: pins::bpf_fs_is_mounted(),
        pins: pins::bpf_fs_is_mounted().then(try_pins),
        programs: try_programs(question.role),
        repair: try_repair(),
        diagnosis: (question.role == Role::Backend).then(|| diagnosis::probe(diagnosis::TCP)),
        tracks_loosely: (question.role == Role::Backend).then(tracks_loosely).flatten(),
        routes: sysctl::read("ipv4", "all", "forwarding").is_ok_and(|value| value != 0),
        interfaces: question.interfaces.iter().map(interface).collect(),
        vips: question.vips.iter().map(|vip| (*vip, holders(*vip, &links))).collect(),
        unused: question.unused.iter().map(|&(at, by)| (at, by, is_listened_at(at, by))).collect(),
        taken: taken(&question.listeners),
        peers: question.peers.iter().map(|peer| (*peer, resolve(*peer))).collect(),
        sources: question.destinations.iter().filter(|to| !is_here(**to, &links)).map(source).collect(),
        shared: question.shared.clone(),
    }
}

fn interface(link: &NetworkInterface) -> Interface {
    let read = |interface: &str, name| sysctl::read("ipv4", interface, name).unwrap_or(0);
    let effective = |name| read("all", name).max(read(&link.name, name));
    Interface {
        ethernet: link.mac.is_some(),
        merged_bytes: link.merged_bytes,
        large_receive: raw::large_receive(&link.name),
        rp_filter: effective("rp_filter"),
        arp_ignore: effective("arp_ignore"),
        arp_announce: effective("arp_announce"),
        accept_local: effective("accept_local"),
    }
}

fn tracks_loosely() -> Option<bool> {
    let text = std::fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_tcp_loose").ok()?;
    Some(text.trim() != "0")
}

fn holders(vip: IpAddr, links: &[NetworkInterface]) -> Vec<String> {
    let has = |link: &&NetworkInterface| addresses(link.index).is_ok_and(|found| found.contains(&vip));
    links.iter().filter(has).map(|link| link.name.clone()).collect()
}

/// Whether a socket listens there, or at all addresses of that port.
fn is_listened_at(address: SocketAddr, by: Transport) -> bool {
    let bound = match by {
        Transport::Tcp => TcpListener::bind(address).map(drop),
        Transport::Udp => UdpSocket::bind(address).map(drop),
    };
    bound.is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
}

/// Those of `listeners` whose packets a switch takes.
fn taken(listeners: &[SocketAddr]) -> Result<Vec<(SocketAddr, SwitchProcess)>, String> {
    if listeners.is_empty() {
        return Ok(Vec::new());
    }
    let services = taken_services().map_err(|error| error.to_string())?;
    let of = |&listener: &SocketAddr| {
        let service = services.iter().find(|service| service.is_for(listener, Transport::Tcp))?;
        Some((listener, service.process.clone()))
    };
    Ok(listeners.iter().filter_map(of).collect())
}

fn resolve(peer: IpAddr) -> Result<(), String> {
    neighbor(peer, WAIT).map(drop).map_err(|error| error.to_string())
}

/// Whether this machine has the address.
fn is_here(address: IpAddr, links: &[NetworkInterface]) -> bool {
    address.is_loopback() || !holders(address, links).is_empty()
}

fn source(to: &IpAddr) -> (IpAddr, Result<IpAddr, String>) {
    (*to, source_to(*to).map_err(|error| error.to_string()))
}

/// Attaches them in a network namespace of its own, which ends with the thread; where this process may make none, only loads
/// them.
fn try_programs(role: Role) -> ProgramsTried {
    let attempt = move || {
        let is_apart =
            raw::own_network().inspect_err(|error| debug!("no network namespace: {error}")).is_ok();
        let tried = match (role, is_apart) {
            (Role::FrontEnd, true) => forwarder::try_out(LOOPBACK),
            (Role::Backend, true) => guard::try_out(LOOPBACK),
            (Role::FrontEnd, false) => forwarder::try_load(),
            (Role::Backend, false) => guard::try_load(),
        };
        match tried {
            Ok(()) if is_apart => ProgramsTried::Attached,
            Ok(()) => ProgramsTried::Loaded,
            Err(error) => ProgramsTried::Failed(error.to_string()),
        }
    };
    let thread = thread::Builder::new().spawn(attempt);
    let tried = thread.ok().and_then(|thread| thread.join().ok());
    tried.unwrap_or_else(|| ProgramsTried::Failed("no thread could try them".to_owned()))
}

fn try_pins() -> Result<(), String> {
    let home = PinHome::open(None).map_err(|error| error.to_string())?;
    home.remove_if_empty();
    Ok(())
}

fn try_repair() -> Result<(), String> {
    use rustix::net::{AddressFamily, SocketType, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).map_err(|errno| errno.to_string())?;
    raw::repair(socket.as_fd()).map_err(|error| error.to_string())
}
