//! The MAC address of a machine on the same Ethernet segment.

use std::io;
use std::net::IpAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteType, RouteVia,
};

use crate::error::{DatapathError, NET_ADMIN};
use crate::layout::{Mac, NextHop};
use crate::netlink::{CREATE_OR_CHANGE, NetworkInterface, family, links, order, request};

/// Interval of looks at the neighbour table during a resolution.
const PAUSE: Duration = Duration::from_millis(5);

/// The next hop for `address`. Resolves an unknown MAC address on the segment and blocks for at most `wait`; with none, the kernel
/// is asked to resolve it, and a later call finds it.
///
/// # Errors
/// [`DatapathError::Gateway`]: the address is on another segment. [`DatapathError::Unresolved`]: nobody answered.
/// [`DatapathError::Invalid`]: it is an address of this machine, or its interface is no Ethernet.
pub fn neighbor(address: IpAddr, wait: Duration) -> Result<NextHop, DatapathError> {
    let address = address.to_canonical();
    let Route { link, gateway, .. } = Route::to(address)?;
    match gateway {
        Some(gateway) => Err(DatapathError::Gateway { address, gateway, interface: link.name }),
        None => resolve(address, &link, wait),
    }
}

/// Our address on packets to `address`, as the kernel chooses it where nobody says another one.
///
/// # Errors
/// [`DatapathError::Invalid`]: it is an address of this machine, or there is no address to send from. The kernel's: there is no route.
pub fn source_to(address: IpAddr) -> Result<IpAddr, DatapathError> {
    let address = address.to_canonical();
    Route::to(address)?.source_to(address)
}

/// How packets for a machine leave this one, over routers where it is on another segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// The machine itself, or the router that leads to it.
    pub next_hop: NextHop,
    /// Our address on packets to it.
    pub source: IpAddr,
    /// Most bytes of an IP packet, by the route or else by our interface.
    pub most_bytes: u32,
}

/// The way to `address`, otherwise as [`neighbor`].
///
/// # Errors
/// [`DatapathError::Unresolved`]: nobody answered. [`DatapathError::Invalid`]: it is an address of this machine, its interface is no
/// Ethernet, or there is no address to send from.
pub fn way(address: IpAddr, wait: Duration) -> Result<Way, DatapathError> {
    let address = address.to_canonical();
    let route = Route::to(address)?;
    let source = route.source_to(address)?;
    let Route { link, gateway, most_bytes, .. } = route;
    let next_hop = resolve(gateway.unwrap_or(address), &link, wait)?;
    Ok(Way { next_hop, source, most_bytes: most_bytes.unwrap_or(link.most_bytes) })
}

/// The next hop for an address on the segment of `link`.
fn resolve(address: IpAddr, link: &NetworkInterface, wait: Duration) -> Result<NextHop, DatapathError> {
    let own_mac = link.check_ethernet()?;
    let failed = |error| {
        DatapathError::of(
            format!("cannot ask for the MAC address of {address} on {}", link.name),
            NET_ADMIN,
            error,
        )
    };
    let started = Instant::now();
    loop {
        if let Some(mac) = known(address, link.index).map_err(failed)? {
            return Ok(NextHop { ifindex: link.index, mac, own_mac });
        }
        ask(address, link.index).map_err(failed)?;
        if started.elapsed() >= wait {
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            return Err(DatapathError::Unresolved { address, interface: link.name.clone(), wait_ms });
        }
        sleep(PAUSE);
    }
}

/// A route of the kernel's.
struct Route {
    link: NetworkInterface,
    gateway: Option<IpAddr>,
    source: Option<IpAddr>,
    most_bytes: Option<u32>,
}

impl Route {
    fn to(address: IpAddr) -> Result<Self, DatapathError> {
        let failed = |error| DatapathError::of(format!("there is no route to {address}"), NET_ADMIN, error);
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        message.attributes.push(RouteAttribute::Destination(address.into()));
        let answers = request(RouteNetlinkMessage::GetRoute(message), 0).map_err(failed)?;
        let Some(RouteNetlinkMessage::NewRoute(route)) = answers.into_iter().next() else {
            return Err(failed(io::ErrorKind::NotFound.into()));
        };
        if route.header.kind != RouteType::Unicast {
            return Err(DatapathError::Invalid(format!(
                "{address} is an address of this machine, or of no single one ({:?}): name another machine",
                route.header.kind
            )));
        }
        let index = route.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Oif(index) => Some(*index),
            _ => None,
        });
        let index = index.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let link = links()?.into_iter().find(|link| link.index == index);
        let link = link.ok_or_else(|| DatapathError::NoInterface { name: format!("number {index}") })?;
        let source = route.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::PrefSource(RouteAddress::Inet(source)) => Some((*source).into()),
            RouteAttribute::PrefSource(RouteAddress::Inet6(source)) => Some((*source).into()),
            _ => None,
        });
        let metrics = route.attributes.iter().filter_map(|attribute| match attribute {
            RouteAttribute::Metrics(metrics) => Some(metrics),
            _ => None,
        });
        let most_bytes = metrics.flatten().find_map(|metric| match metric {
            RouteMetric::Mtu(bytes) => Some(*bytes),
            _ => None,
        });
        Ok(Self { link, gateway: gateway(&route), source, most_bytes })
    }

    fn source_to(&self, address: IpAddr) -> Result<IpAddr, DatapathError> {
        self.source.ok_or_else(|| {
            let name = &self.link.name;
            DatapathError::Invalid(format!("{name} has no address from which {address} is reached"))
        })
    }
}

fn gateway(route: &RouteMessage) -> Option<IpAddr> {
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(gateway))
        | RouteAttribute::Via(RouteVia::Inet(gateway)) => Some((*gateway).into()),
        RouteAttribute::Gateway(RouteAddress::Inet6(gateway))
        | RouteAttribute::Via(RouteVia::Inet6(gateway)) => Some((*gateway).into()),
        _ => None,
    })
}

fn question(address: IpAddr, index: u32) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family(address);
    message.header.ifindex = index;
    message.attributes.push(NeighbourAttribute::Destination(match address {
        IpAddr::V4(v4) => NeighbourAddress::Inet(v4),
        IpAddr::V6(v6) => NeighbourAddress::Inet6(v6),
    }));
    message
}

/// The valid MAC address in the neighbour table, if any.
fn known(address: IpAddr, index: u32) -> io::Result<Option<Mac>> {
    let answers = match request(RouteNetlinkMessage::GetNeighbour(question(address, index)), 0) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
        answers => answers?,
    };
    let Some(RouteNetlinkMessage::NewNeighbour(entry)) = answers.into_iter().next() else { return Ok(None) };
    let useless = [NeighbourState::None, NeighbourState::Incomplete, NeighbourState::Failed];
    if useless.contains(&entry.header.state) {
        return Ok(None);
    }
    Ok(entry.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(mac) => mac.as_slice().try_into().ok(),
        _ => None,
    }))
}

/// Makes the kernel resolve the address, as it does to send a packet.
fn ask(address: IpAddr, index: u32) -> io::Result<()> {
    let mut message = question(address, index);
    message.header.flags = NeighbourFlags::Use;
    order(RouteNetlinkMessage::NewNeighbour(message), CREATE_OR_CHANGE)
}
