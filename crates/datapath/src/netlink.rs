//! Questions and orders to the kernel's routing netlink, answered at once, without a runtime.

use std::io;
use std::net::IpAddr;

use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use rtnetlink::packet_route::address::{AddressAttribute, AddressMessage};
use rtnetlink::packet_route::link::{LinkAttribute, LinkLayerType, LinkMessage};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use rtnetlink::sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::error::{DatapathError, NET_ADMIN};
use crate::layout::Mac;

/// Most messages of one answer. A machine with this many interfaces or neighbours is beyond what this is for.
const MOST_MESSAGES: usize = 100_000;

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) name: String,
    /// Its MAC address, when it has one and is Ethernet.
    pub(crate) mac: Option<Mac>,
    /// Most bytes of packets that the kernel merges (`gro_max_size`).
    pub(crate) merged_bytes: Option<u32>,
}

impl Link {
    fn of(message: &LinkMessage) -> Self {
        let mut link =
            Self { index: message.header.index, name: String::new(), mac: None, merged_bytes: None };
        let ethernet = message.header.link_layer_type == LinkLayerType::Ether;
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => link.name.clone_from(name),
                LinkAttribute::Address(mac) if ethernet => link.mac = mac.as_slice().try_into().ok(),
                LinkAttribute::GroMaxSize(bytes) => link.merged_bytes = Some(*bytes),
                _ => {}
            }
        }
        link
    }

    /// Frames are rewritten by their Ethernet header, so there must be one.
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
pub(crate) fn links() -> Result<Vec<Link>, DatapathError> {
    let message = RouteNetlinkMessage::GetLink(LinkMessage::default());
    let answers = request(message, NLM_F_DUMP)
        .map_err(|error| DatapathError::of("cannot list the network interfaces", NET_ADMIN, error))?;
    let link = |answer: &RouteNetlinkMessage| match answer {
        RouteNetlinkMessage::NewLink(message) => Some(Link::of(message)),
        _ => None,
    };
    Ok(answers.iter().filter_map(link).collect())
}

/// Addresses of the interface number `index`.
pub(crate) fn addresses(index: u32) -> Result<Vec<IpAddr>, DatapathError> {
    let answers = request(RouteNetlinkMessage::GetAddress(AddressMessage::default()), NLM_F_DUMP)
        .map_err(|error| DatapathError::of("cannot list the addresses", NET_ADMIN, error))?;
    let address = |answer: &RouteNetlinkMessage| match answer {
        RouteNetlinkMessage::NewAddress(message) if message.header.index == index => {
            message.attributes.iter().find_map(|attribute| match attribute {
                AddressAttribute::Address(address) => Some(*address),
                _ => None,
            })
        }
        _ => None,
    };
    Ok(answers.iter().filter_map(address).collect())
}

pub(crate) fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// For things that are to be made, and must not be there yet.
pub(crate) const CREATE: u16 = NLM_F_CREATE | NLM_F_EXCL;
/// For things that may be there.
pub(crate) const CREATE_OR_CHANGE: u16 = NLM_F_CREATE;

/// Has the kernel do something, and waits until it has.
pub(crate) fn order(message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    request(message, flags | NLM_F_ACK).map(drop)
}

/// Asks for one thing, or with `NLM_F_DUMP` for all.
pub(crate) fn request(message: RouteNetlinkMessage, flags: u16) -> io::Result<Vec<RouteNetlinkMessage>> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);

    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    // The kernel has answered before `send` returns, and makes the rest of a long answer as it is read. A wait would be one
    // without end.
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

/// Takes the messages of one datagram; true when it holds the last.
fn take(datagram: &[u8], answers: &mut Vec<RouteNetlinkMessage>) -> io::Result<bool> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(io::Error::other)?;
        let length = (message.header.length as usize).next_multiple_of(4);
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(true),
            // Without a code it is the acknowledgment.
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
