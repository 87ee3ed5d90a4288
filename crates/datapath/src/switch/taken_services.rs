//! Services of switches whose programs are at this network's interfaces: what arrives for them reaches no socket of this machine.
//! A switch's program and tables stay when its process ends, so another front-end may come to be where they still are.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{ErrorKind, MapCore as _, MapFlags, MapHandle, Program};

use super::layout::{service, service_of};
use super::{SERVICES, TC_PROGRAM, Transport, XDP_PROGRAM, failed};
use crate::error::DatapathError;
use crate::filters::filters_at;
use crate::netlink::{NetworkInterface, links};
use crate::pins::pins_with;

/// How often the list of programs is read for one that is there.
const ATTEMPTS: usize = 20;

/// The process of a switch, as far as it can be told from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwitchProcess {
    /// One of this name runs.
    Runs(String),
    /// One of this name has ended.
    Ended(String),
    /// Its pinned maps are not to be seen from here: they are in the BPF file system of a container, or there are none.
    Unseen,
}

/// An address whose packets a switch's program takes.
#[derive(Debug)]
pub struct TakenService {
    /// The address.
    pub address: SocketAddr,
    /// The protocol.
    pub transport: Transport,
    /// The interfaces where the program is.
    pub interfaces: Vec<String>,
    /// Whose program it is.
    pub process: SwitchProcess,
    services: MapHandle,
}

impl TakenService {
    /// Whether this is what a socket at `address` would get. One at `[::]` gets no IPv4 here.
    #[must_use]
    pub fn is_for(&self, address: SocketAddr, transport: Transport) -> bool {
        self.transport == transport && gets(address, self.address)
    }

    /// Lets new connections to the address pass to this machine's sockets. Those that the switch has go on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn withdraw(&self) -> Result<(), DatapathError> {
        let key = service(self.address, self.transport);
        let failed = failed("cannot withdraw a service of a switch");
        match self.services.lookup(&key, MapFlags::ANY).map_err(&failed)? {
            Some(_) => self.services.delete(&key).map_err(failed),
            None => Ok(()),
        }
    }
}

/// Whether a socket at `socket` gets what comes for `address`.
fn gets(socket: SocketAddr, address: SocketAddr) -> bool {
    let ip = socket.ip().to_canonical();
    let is_any = ip.is_unspecified() && ip.is_ipv4() == address.is_ipv4();
    socket.port() == address.port() && (is_any || ip == address.ip())
}

/// All of them, in the order of their addresses.
///
/// # Errors
/// [`DatapathError::Denied`] where there is a program of a switch, or one by XDP of whomever, and this process may not look at it; the
/// kernel's.
pub fn taken_services() -> Result<Vec<TakenService>, DatapathError> {
    // Interfaces of one switch share its maps.
    let mut switches: BTreeMap<u32, (MapHandle, Vec<String>)> = BTreeMap::new();
    for link in links()? {
        for program in programs_at(&link)? {
            let Some((map, id)) = services_of(program, &link)? else { continue };
            switches.entry(id).or_insert_with(|| (map, Vec::new())).1.push(link.name.clone());
        }
    }
    let mut taken = Vec::new();
    for (id, (map, interfaces)) in switches {
        let process = process_of(id);
        for (address, transport) in map.keys().filter_map(|key| service_of(&key)) {
            let (interfaces, process) = (interfaces.clone(), process.clone());
            let services = super::duplicate(&map)?;
            taken.push(TakenService { address, transport, interfaces, process, services });
        }
    }
    taken.sort_by_key(|service| (service.address, service.transport));
    Ok(taken)
}

fn process_of(map_id: u32) -> SwitchProcess {
    match pins_with(SERVICES, map_id) {
        None => SwitchProcess::Unseen,
        Some(pins) if pins.is_alive() => SwitchProcess::Runs(pins.instance),
        Some(pins) => SwitchProcess::Ended(pins.instance),
    }
}

/// The numbers of programs at an interface that are a switch's, or may be.
fn programs_at(link: &NetworkInterface) -> Result<Vec<u32>, DatapathError> {
    let filters = filters_at(link.index)?.unwrap_or_default();
    let tc = filters.into_iter().filter(|filter| filter.name.starts_with(TC_PROGRAM));
    Ok(tc.map(|filter| filter.program).chain(link.xdp_program).collect())
}

/// The map of services of a program, and the map's number; `None` for a program of somebody else, and for one that is gone by now.
fn services_of(program: u32, link: &NetworkInterface) -> Result<Option<(MapHandle, u32)>, DatapathError> {
    // It is there as long as this is.
    let _held = match Program::fd_from_id(program) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| unknown(link, &error))?,
    };
    let options = || ProgInfoQueryOptions::default().include_map_ids(true);
    // The list ends early where another program goes meanwhile.
    let mut lists = (0..ATTEMPTS).map(|_| ProgInfoIter::with_query_opts(options()));
    let found = lists.find_map(|mut list| list.find(|found| found.id == program));
    let found = found.ok_or_else(|| {
        DatapathError::Unexpected(format!("the packet program at {} is in no list of programs", link.name))
    })?;
    let name = found.name.to_string_lossy().into_owned();
    if name != TC_PROGRAM && name != XDP_PROGRAM {
        return Ok(None);
    }
    let maps = found.map_ids.into_iter();
    let mut maps = maps.filter_map(|id| Some((MapHandle::from_map_id(id).ok()?, id)));
    Ok(maps.find(|(map, _)| map.name().to_string_lossy() == SERVICES))
}

fn unknown(link: &NetworkInterface, error: &libbpf_rs::Error) -> DatapathError {
    let what = format!("cannot look at the packet program at {}", link.name);
    DatapathError::of_bpf(what, "CAP_SYS_ADMIN", error)
}

#[cfg(test)]
mod tests {
    use super::gets;

    #[test]
    fn sockets_get_what_comes_for_their_address() {
        let gets = |socket: &str, address: &str| gets(socket.parse().unwrap(), address.parse().unwrap());
        for socket in ["10.0.0.1:80", "0.0.0.0:80", "[::ffff:10.0.0.1]:80"] {
            assert!(gets(socket, "10.0.0.1:80"), "{socket}");
        }
        for socket in ["10.0.0.2:80", "10.0.0.1:81", "[::]:80", "0.0.0.0:81"] {
            assert!(!gets(socket, "10.0.0.1:80"), "{socket}");
        }
        assert!(gets("[::]:80", "[fd00::1]:80") && !gets("0.0.0.0:80", "[fd00::1]:80"));
    }
}
