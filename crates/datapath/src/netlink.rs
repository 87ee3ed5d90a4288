//! Synchronous requests to the kernel by netlink.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkLayerType, LinkMessage, LinkXdp};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::error::{DatapathError, NET_ADMIN};
use crate::layout::Mac;

/// The most messages of one answer.
const MOST_MESSAGES: usize = 100_000;

/// The loopback interface has this number in every network namespace.
pub(crate) const LOOPBACK: u32 = 1;

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetworkInterface {
    pub(crate) index: u32,
    pub(crate) name: String,
    /// Its MAC address, when it has one and is Ethernet.
    pub(crate) mac: Option<Mac>,
    /// The most bytes of a merged packet (`gro_max_size`).
    pub(crate) merged_bytes: Option<u32>,
    /// Most bytes of an IP packet that it sends.
    pub(crate) most_bytes: u32,
    /// Whether it is a device of the kernel's own (veth, bridge, and so on), which no hardware stands behind.
    pub(crate) is_virtual: bool,
    /// The number of its XDP program.
    pub(crate) xdp_program: Option<u32>,
}

impl NetworkInterface {
    fn of(message: &LinkMessage) -> Self {
        let mut link = Self {
            index: message.header.index,
            name: String::new(),
            mac: None,
            merged_bytes: None,
            most_bytes: 0,
            is_virtual: false,
            xdp_program: None,
        };
        let ethernet = message.header.link_layer_type == LinkLayerType::Ether;
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => link.name.clone_from(name),
                LinkAttribute::Address(mac) if ethernet => link.mac = mac.as_slice().try_into().ok(),
                LinkAttribute::LinkInfo(_) => link.is_virtual = true,
                LinkAttribute::Mtu(bytes) => link.most_bytes = *bytes,
                LinkAttribute::GroMaxSize(bytes) => link.merged_bytes = Some(*bytes),
                LinkAttribute::Xdp(told) => {
                    link.xdp_program = told.iter().find_map(|told| match told {
                        LinkXdp::ProgId(number) => Some(*number).filter(|number| *number != 0),
                        _ => None,
                    });
                }
                _ => {}
            }
        }
        link
    }

    /// Fails unless the interface is Ethernet: the programs rewrite Ethernet headers.
    pub(crate) fn check_ethernet(&self) -> Result<Mac, DatapathError> {
        self.mac.ok_or_else(|| {
            DatapathError::Invalid(format!(
                "interface {} is no Ethernet: front-end and back-ends exchange packets by MAC address",
                self.name
            ))
        })
    }
}

/// All interfaces of this network namespace.
pub(crate) fn links() -> Result<Vec<NetworkInterface>, DatapathError> {
    let message = RouteNetlinkMessage::GetLink(LinkMessage::default());
    let answers = request(message, NLM_F_DUMP)
        .map_err(|error| DatapathError::of("cannot list the network interfaces", NET_ADMIN, error))?;
    let link = |answer: &RouteNetlinkMessage| match answer {
        RouteNetlinkMessage::NewLink(message) => Some(NetworkInterface::of(message)),
        _ => None,
    };
    Ok(answers.iter().filter_map(link).collect())
}

/// The interface of this name among `links`.
pub(crate) fn named<'a>(
    links: &'a [NetworkInterface],
    name: &str,
) -> Result<&'a NetworkInterface, DatapathError> {
    let link = links.iter().find(|link| link.name == name);
    link.ok_or_else(|| DatapathError::NoInterface { name: name.to_owned() })
}

/// The number of the interface of this name, which must be Ethernet.
pub(crate) fn ethernet_index(name: &str) -> Result<u32, DatapathError> {
    let links = links()?;
    let link = named(&links, name)?;
    link.check_ethernet()?;
    Ok(link.index)
}

/// Addresses of the interface number `index`.
pub(crate) fn addresses(index: u32) -> Result<Vec<IpAddr>, DatapathError> {
    let address = |message: &AddressMessage| {
        message.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    };
    Ok(address_messages(index)?.iter().filter_map(address).collect())
}

/// Addresses of all interfaces.
pub(crate) fn all_addresses() -> Result<Vec<IpAddr>, DatapathError> {
    let own = |message: AddressMessage| {
        let find = |of: fn(&AddressAttribute) -> Option<IpAddr>| message.attributes.iter().find_map(of);
        let local = find(|attribute| match attribute {
            AddressAttribute::Local(address) => Some(*address),
            _ => None,
        });
        // Beside a local address, this is that of the other end.
        let only = || {
            find(|attribute| match attribute {
                AddressAttribute::Address(address) => Some(*address),
                _ => None,
            })
        };
        local.or_else(only)
    };
    Ok(dump_addresses()?.into_iter().filter_map(own).collect())
}

/// All that the kernel says of the addresses of the interface number `index`.
pub(crate) fn address_messages(index: u32) -> Result<Vec<AddressMessage>, DatapathError> {
    Ok(dump_addresses()?.into_iter().filter(|message| message.header.index == index).collect())
}

fn dump_addresses() -> Result<Vec<AddressMessage>, DatapathError> {
    let answers = request(RouteNetlinkMessage::GetAddress(AddressMessage::default()), NLM_F_DUMP)
        .map_err(|error| DatapathError::of("cannot list the addresses", NET_ADMIN, error))?;
    let address = |answer| match answer {
        RouteNetlinkMessage::NewAddress(message) => Some(message),
        _ => None,
    };
    Ok(answers.into_iter().filter_map(address).collect())
}

pub(crate) fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// Flags to create something that must not exist yet.
pub(crate) const CREATE: u16 = NLM_F_CREATE | NLM_F_EXCL;
/// Flags to create or change something.
pub(crate) const CREATE_OR_CHANGE: u16 = NLM_F_CREATE;

/// Sends a command and waits for its acknowledgment.
pub(crate) fn order(message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    request(message, flags | NLM_F_ACK).map(drop)
}

/// Requests one object of the routing netlink, or all with `NLM_F_DUMP`.
pub(crate) fn request(message: RouteNetlinkMessage, flags: u16) -> io::Result<Vec<RouteNetlinkMessage>> {
    request_of(NETLINK_ROUTE, message, flags)
}

/// Requests one object of this netlink protocol, or all with `NLM_F_DUMP`.
pub(crate) fn request_of<M: NetlinkSerializable + NetlinkDeserializable>(
    protocol: isize,
    message: M,
    flags: u16,
) -> io::Result<Vec<M>> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);

    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    // The kernel answers before `send` returns, and generates the rest of a long answer as it is read. So
    // blocking could only mean waiting for ever.
    socket.set_non_blocking(true)?;
    socket.send(&bytes, 0)?;
    let several = flags & (NLM_F_DUMP | NLM_F_ACK) != 0;
    let mut answers = Vec::new();
    while answers.len() < MOST_MESSAGES {
        let (datagram, _) = socket.recv_from_full()?;
        if take(&datagram, &mut answers)? || !several {
            break;
        }
    }
    Ok(answers)
}

/// Decodes the messages of one datagram. Returns whether it held the last one.
fn take<M: NetlinkDeserializable>(datagram: &[u8], answers: &mut Vec<M>) -> io::Result<bool> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let message = NetlinkMessage::<M>::deserialize(rest).map_err(io::Error::other)?;
        let length = (message.header.length as usize).next_multiple_of(4);
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(true),
            // An error without a code is the acknowledgment.
            NetlinkPayload::Error(error) => match error.code {
                None => return Ok(true),
                Some(code) => return Err(io::Error::from_raw_os_error(-code.get())),
            },
            NetlinkPayload::InnerMessage(answer) => answers.push(answer),
            _ => {}
        }
        rest = rest.get(length.max(16)..).unwrap_or_default();
    }
    Ok(false)
}
