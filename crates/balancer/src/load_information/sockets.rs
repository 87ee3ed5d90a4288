//! The sockets at which announcements come in.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6, UdpSocket};

use plimsoll_config::LoadInformationConfig;
use plimsoll_wire::MulticastInterface;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockAddr, Socket, Type};

/// Where announcements come in, and from where agents are asked.
#[derive(Debug)]
pub(super) struct AnnouncementSockets {
    /// Asks, and gets the answers; without a group, announcements as well.
    pub(super) asking: UdpSocket,
    /// Hears a group. Every front-end of a machine has one, and all of them hear all.
    pub(super) group: Option<UdpSocket>,
}

impl AnnouncementSockets {
    /// Those of a front-end that listens at this address.
    pub(super) fn bind(at: SocketAddr, config: &LoadInformationConfig) -> io::Result<Self> {
        let Some(group) = config.group else {
            let asking = UdpSocket::bind(at)?;
            asking.set_nonblocking(true)?;
            return Ok(Self { asking, group: None });
        };
        // An answer comes only to the one that has asked: at a port of its own.
        let asking = UdpSocket::bind((at.ip(), 0))?;
        asking.set_nonblocking(true)?;
        let group = join(SocketAddr::new(group, at.port()), config.group_interface.as_ref())?;
        Ok(Self { asking, group: Some(group) })
    }

    /// Where announcements come in.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.group.as_ref().unwrap_or(&self.asking).local_addr().ok()
    }
}

fn join(group: SocketAddr, interface: Option<&MulticastInterface>) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    let index = match interface {
        Some(MulticastInterface::Name(name)) => {
            let index = rustix::net::netdevice::name_to_index(&socket, name);
            Some(index.map_err(|error| no_interface(name, &error.into()))?)
        }
        _ => None,
    };
    // Bound to the group, it hears nothing that is sent to another address with its port.
    match group.ip() {
        IpAddr::V4(ip) => {
            socket.bind(&SockAddr::from(group))?;
            let address = match interface {
                Some(MulticastInterface::Address(address)) => *address,
                _ => Ipv4Addr::UNSPECIFIED,
            };
            let at = index.map_or(InterfaceIndexOrAddress::Address(address), InterfaceIndexOrAddress::Index);
            socket.set_multicast_all_v4(false)?;
            socket.join_multicast_v4_n(&ip, &at)?;
        }
        IpAddr::V6(ip) => {
            let index = index.unwrap_or(0);
            socket.set_only_v6(true)?;
            socket.bind(&SockAddr::from(SocketAddrV6::new(ip, group.port(), 0, index)))?;
            socket.set_multicast_all_v6(false)?;
            socket.join_multicast_v6(&ip, index)?;
        }
    }
    Ok(socket.into())
}

fn no_interface(name: &str, error: &io::Error) -> io::Error {
    let there = plimsoll_wire::interfaces_text();
    let text = format!("load_information.group_interface = \"{name}\": {error}; {there}");
    io::Error::new(error.kind(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(group: IpAddr) -> LoadInformationConfig {
        let least = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n";
        let config = plimsoll_config::Config::parse(least, "test.toml").unwrap().load_information;
        let group_interface = Some(MulticastInterface::Name("lo".to_owned()));
        LoadInformationConfig { group: Some(group), group_interface, ..config }
    }

    fn received(socket: &UdpSocket) -> Vec<u8> {
        socket.set_nonblocking(false).unwrap();
        socket.set_read_timeout(Some(plimsoll_testkit::PATIENCE)).unwrap();
        let mut buffer = [0; 100];
        let bytes = plimsoll_testkit::uninterrupted(|| socket.recv(&mut buffer)).unwrap();
        buffer[..bytes].to_vec()
    }

    /// Two front-ends of one machine hear what is sent to their group, and each gets what is sent to itself.
    fn both_hear(group: IpAddr, at: SocketAddr, sender: &UdpSocket) {
        let both = [0, 1].map(|_| AnnouncementSockets::bind(at, &config(group)).unwrap());
        sender.send_to(b"to all", (group, at.port())).unwrap();
        for one in &both {
            assert_eq!(received(one.group.as_ref().unwrap()), b"to all");
            assert_eq!(one.address().unwrap(), SocketAddr::new(group, at.port()));
        }
        for (number, one) in (0..).zip(&both) {
            sender.send_to(&[number], one.asking.local_addr().unwrap()).unwrap();
        }
        for (number, one) in (0..).zip(&both) {
            assert_eq!(received(&one.asking), [number]);
        }
    }

    /// A port that nobody uses now.
    fn free_port() -> u16 {
        UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn two_front_ends_of_one_machine_hear_the_same_group() {
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        rustix::net::sockopt::set_ip_multicast_if(&sender, &Ipv4Addr::LOCALHOST).unwrap();
        both_hear([239, 255, 74, 9].into(), ([127, 0, 0, 1], free_port()).into(), &sender);
    }

    #[test]
    fn two_front_ends_of_one_machine_join_the_same_ipv6_group_at_an_interface() {
        let (group, port) = ("ff02::74:9".parse().unwrap(), free_port());
        let at = (std::net::Ipv6Addr::LOCALHOST, port).into();
        let both = [0, 1].map(|_| AnnouncementSockets::bind(at, &config(group)).unwrap());
        for one in &both {
            assert_eq!(one.address().unwrap().port(), port);
            assert_ne!(one.asking.local_addr().unwrap().port(), port);
        }
        // There is no such interface.
        let nowhere = MulticastInterface::Name("none9".to_owned());
        let nowhere = LoadInformationConfig { group_interface: Some(nowhere), ..config(group) };
        assert!(AnnouncementSockets::bind(at, &nowhere).is_err());
    }
}
