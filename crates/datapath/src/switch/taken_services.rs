//! Services of switches whose programs are at this network's interfaces: what arrives for them reaches no socket of this machine.
//! A switch's program and tables stay when its process ends, so another front-end may come to be where they still are.

use std::io;
use std::net::SocketAddr;

use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore as _, MapHandle};

use super::layout::{service, service_of};
use super::{SERVICES, TC_PROGRAM, Transport, XDP_PROGRAM, failed};
use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::filters::filters_at;
use crate::netlink::{NetworkInterface, links};
use crate::pins::pins_with;

/// An address whose packets a switch's program takes.
#[derive(Debug)]
pub struct TakenService {
    /// The address.
    pub address: SocketAddr,
    /// The protocol.
    pub transport: Transport,
    /// The interface where the program is.
    pub interface: String,
    /// The switch's name, if its pinned maps are to be seen.
    pub instance: Option<String>,
    /// Whether a process of that name runs.
    pub is_alive: bool,
    services: MapHandle,
}

impl TakenService {
    /// Whether this is what a socket at `address` would get.
    #[must_use]
    pub fn is_for(&self, address: SocketAddr, transport: Transport) -> bool {
        let ip = address.ip().to_canonical();
        self.transport == transport
            && self.address.port() == address.port()
            && (ip == self.address.ip()
                // Sockets at `[::]` get connections of both families.
                || ip.is_unspecified() && (ip.is_ipv6() || self.address.is_ipv4()))
    }

    /// Lets new connections to the address pass to this machine's sockets. Those that the switch has go on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn withdraw(&self) -> Result<(), DatapathError> {
        let deleted = self.services.delete(&service(self.address, self.transport));
        deleted.map_err(failed("cannot withdraw a service of a switch"))
    }
}

/// All of them, in the order of interfaces.
///
/// # Errors
/// [`DatapathError::Denied`] where there is a program of a switch whose maps this process may not see; the kernel's.
pub fn taken_services() -> Result<Vec<TakenService>, DatapathError> {
    let mut taken = Vec::new();
    for link in links()? {
        for program in programs_at(&link)? {
            let (map, map_id) = services_of(program, &link)?;
            let pins = pins_with(SERVICES, map_id);
            for (address, transport) in map.keys().filter_map(|key| service_of(&key)) {
                taken.push(TakenService {
                    address,
                    transport,
                    interface: link.name.clone(),
                    instance: pins.as_ref().map(|pins| pins.instance.clone()),
                    is_alive: pins.as_ref().is_some_and(|pins| pins.is_alive()),
                    services: super::duplicate(&map)?,
                });
            }
        }
    }
    Ok(taken)
}

/// The numbers of programs of switches at an interface.
fn programs_at(link: &NetworkInterface) -> Result<Vec<u32>, DatapathError> {
    let filters = filters_at(link.index)?.unwrap_or_default();
    let is_of_switch = |name: &str| name.starts_with(TC_PROGRAM);
    let tc = filters.into_iter().filter(|filter| is_of_switch(&filter.name)).map(|filter| filter.program);
    let name_of = |number| ProgInfoIter::default().find(|found| found.id == number).map(|found| found.name);
    let is_ours = |number: &u32| name_of(*number).is_some_and(|name| name.to_string_lossy() == XDP_PROGRAM);
    Ok(tc.chain(link.xdp_program.filter(is_ours)).collect())
}

/// The map of services of a program, and the map's number.
fn services_of(program: u32, link: &NetworkInterface) -> Result<(MapHandle, u32), DatapathError> {
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let found = ProgInfoIter::with_query_opts(options).find(|found| found.id == program);
    let maps = found.into_iter().flat_map(|found| found.map_ids);
    let mut maps_found = maps.filter_map(|id| Some((MapHandle::from_map_id(id).ok()?, id)));
    let is_services = |map: &MapHandle| map.name().to_string_lossy() == SERVICES;
    maps_found.find(|(map, _)| is_services(map)).ok_or_else(|| {
        let what = format!("cannot see what the switch's program at {} takes", link.name);
        DatapathError::of(what, BPF_CAPABILITIES, io::Error::from_raw_os_error(libc::EPERM))
    })
}
