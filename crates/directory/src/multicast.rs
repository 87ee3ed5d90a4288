//! Announcements by IP multicast: every node repeats what it offers, and hears what the others do. Nothing has to be installed.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::pin::Pin;
use std::time::{Duration, Instant};

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockAddr, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::watch;

use crate::announcement::{Announcer, MOST_ANNOUNCEMENT_BYTES, Said};
use crate::transport::{
    AnnouncementIntake, DirectoryTransport, PublishedOffers, TransportEvent, TransportLink, jitter, now,
};

/// The group and port of announcements, unless another one is chosen: of the block for organizations of their own (RFC 2365).
pub const DEFAULT_GROUP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(239, 255, 80, 76)), 7369);

/// How often an announcement is made within its time to live.
const REPEATS: u32 = 4;
/// The longest time between two: whoever begins to listen, or does not let anything count for long, hears a node soon.
const MOST_INTERVAL: Duration = Duration::from_millis(750);
/// How often a goodbye is sent, because one may be lost.
const GOODBYES: usize = 3;
/// The pause between two of them.
const GOODBYE_PAUSE: Duration = Duration::from_millis(20);
/// The pause after a datagram could not be received.
const ERROR_PAUSE: Duration = Duration::from_millis(100);
/// How long it is remembered which addresses are of this machine, and how many.
const ADDRESSES_KEPT: Duration = Duration::from_secs(10);
const MOST_ADDRESSES: usize = 1024;
/// Memory of the system for datagrams that were not read yet.
const RECEIVE_BYTES: usize = 1 << 20;

/// Where announcements are sent and heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MulticastSettings {
    /// Group and port.
    pub group: SocketAddr,
    /// The network interface, by name; none: the system chooses by its routes.
    pub interface: Option<String>,
    /// How many routers an announcement passes, plus one.
    pub hops: u8,
}

impl Default for MulticastSettings {
    fn default() -> Self {
        Self { group: DEFAULT_GROUP, interface: None, hops: 1 }
    }
}

/// Why multicast cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MulticastError {
    /// The group is none.
    #[error("{0} is no multicast group with a port; give one such as {DEFAULT_GROUP}")]
    Group(SocketAddr),
    /// There is no such interface.
    #[error("there is no network interface {name}: {error}; {}", plimsoll_wire::interfaces_text())]
    Interface {
        /// The name.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// The group cannot be used on this machine.
    #[error(
        "cannot use the multicast group {group}: {error}; name the network interface that leads to the other nodes, by --directory-interface or `interface` in [discovery]"
    )]
    System {
        /// The group.
        group: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
}

/// A node's sockets in the group.
#[derive(Debug)]
pub struct MulticastTransport {
    group: SocketAddr,
    receiver: UdpSocket,
    sender: UdpSocket,
}

impl MulticastTransport {
    /// Joins the group.
    ///
    /// # Errors
    /// When there is no such group or interface.
    pub fn open(settings: &MulticastSettings) -> Result<Self, MulticastError> {
        let group = settings.group;
        if !group.ip().is_multicast() || group.port() == 0 {
            return Err(MulticastError::Group(group));
        }
        let index = settings.interface.as_deref().map(interface_index).transpose()?;
        let system = |error| MulticastError::System { group, error };
        let receiver = receiver(group, index).map_err(system)?;
        let sender = sender(settings, index).map_err(system)?;
        Ok(Self { group, receiver, sender })
    }
}

fn interface_index(name: &str) -> Result<u32, MulticastError> {
    let failed = |error: io::Error| MulticastError::Interface { name: name.to_owned(), error };
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).map_err(failed)?;
    rustix::net::netdevice::name_to_index(socket, name).map_err(|error| failed(error.into()))
}

fn socket(group: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Hears what is sent to the group, like any other process of this machine that has joined it.
fn receiver(group: SocketAddr, index: Option<u32>) -> io::Result<UdpSocket> {
    let socket = socket(group)?;
    socket.set_reuse_address(true)?;
    // The system gives less where its limit is lower.
    socket.set_recv_buffer_size(RECEIVE_BYTES)?;
    match group.ip() {
        IpAddr::V4(ip) => {
            // Bound to the group, it hears nothing that is sent to another address with its port.
            socket.bind(&SockAddr::from(group))?;
            let interface = index.map_or(
                InterfaceIndexOrAddress::Address(Ipv4Addr::UNSPECIFIED),
                InterfaceIndexOrAddress::Index,
            );
            socket.set_multicast_all_v4(false)?;
            socket.join_multicast_v4_n(&ip, &interface)?;
        }
        IpAddr::V6(ip) => {
            socket.set_only_v6(true)?;
            let scoped = SocketAddrV6::new(ip, group.port(), 0, index.unwrap_or(0));
            socket.bind(&SockAddr::from(scoped))?;
            socket.set_multicast_all_v6(false)?;
            socket.join_multicast_v6(&ip, index.unwrap_or(0))?;
        }
    }
    UdpSocket::from_std(socket.into())
}

/// Sends to the group, and to the processes of this machine that have joined it.
fn sender(settings: &MulticastSettings, index: Option<u32>) -> io::Result<UdpSocket> {
    let socket = socket(settings.group)?;
    if let Some(name) = &settings.interface {
        socket.bind_device(Some(name.as_bytes()))?;
    }
    match settings.group {
        SocketAddr::V4(_) => {
            socket.set_multicast_loop_v4(true)?;
            socket.set_multicast_ttl_v4(settings.hops.into())?;
            socket.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))))?;
        }
        SocketAddr::V6(_) => {
            socket.set_multicast_loop_v6(true)?;
            socket.set_multicast_hops_v6(settings.hops.into())?;
            if let Some(index) = index {
                socket.set_multicast_if_v6(index)?;
            }
            socket.bind(&SockAddr::from(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))))?;
        }
    }
    UdpSocket::from_std(socket.into())
}

impl DirectoryTransport for MulticastTransport {
    fn carry(self: Box<Self>, link: TransportLink) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let TransportLink { published, announcer, hearing } = link;
            tokio::select! {
                () = say(&self, published, announcer) => {}
                () = hear(&self.receiver, hearing) => {}
            }
        })
    }
}

/// How often what counts for this long is said, on average.
pub(crate) fn repeat_interval(ttl: Duration) -> Duration {
    (ttl / REPEATS).min(MOST_INTERVAL)
}

/// Repeats what this node offers, until it has said goodbye.
async fn say(
    transport: &MulticastTransport,
    mut published: watch::Receiver<PublishedOffers>,
    announcer: Option<Announcer>,
) {
    let mut failing = false;
    let Some(mut announcer) = announcer else {
        // It only listens; whoever started it ends it.
        while !published.borrow_and_update().leaves && published.changed().await.is_ok() {}
        return;
    };
    let interval = repeat_interval(announcer.ttl());
    loop {
        let PublishedOffers { offers, leaves } = published.borrow_and_update().clone();
        if leaves {
            break;
        }
        for bytes in announcer.seal_all(&offers, now().unix_ms) {
            send(transport, &bytes, &mut failing).await;
        }
        tokio::select! {
            () = tokio::time::sleep(interval.mul_f64(jitter())) => {}
            // Its owner is gone without a goodbye.
            changed = published.changed() => if changed.is_err() { return },
        }
    }
    for _ in 0..GOODBYES {
        let bytes = announcer.seal(Said::Goodbye, now().unix_ms);
        send(transport, &bytes, &mut failing).await;
        tokio::time::sleep(GOODBYE_PAUSE).await;
    }
}

async fn send(transport: &MulticastTransport, bytes: &[u8], failing: &mut bool) {
    match transport.sender.send_to(bytes, transport.group).await {
        Ok(_) => *failing = false,
        Err(error) if !*failing => {
            *failing = true;
            tracing::warn!(group = %transport.group, "an announcement cannot be sent: {error}; it is tried again");
        }
        Err(_) => {}
    }
}

/// Passes on what is heard.
async fn hear(receiver: &UdpSocket, mut hearing: AnnouncementIntake) {
    // One byte more than there may be shows what is too long.
    let mut buffer = [0; MOST_ANNOUNCEMENT_BYTES + 1];
    let mut own = OwnAddresses::default();
    loop {
        match receiver.recv_from(&mut buffer).await {
            Ok((length, source)) => {
                if !hearing.allows(source.ip()) {
                    continue;
                }
                let Some(announcement) = hearing.open(&buffer[..length]) else { continue };
                let event = match own.has(source) {
                    true => TransportEvent::RepeatedHere(announcement),
                    false => TransportEvent::Repeated(announcement),
                };
                if !hearing.tell(event).await {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!("cannot hear announcements: {error}; it is tried again");
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }
}

/// Addresses of senders, and whether they are of this machine, whose announcements come back whatever the network does.
#[derive(Default)]
struct OwnAddresses {
    /// By address, and by network where it has one (IPv6).
    known: BTreeMap<(IpAddr, u32), bool>,
    since: Option<Instant>,
}

impl OwnAddresses {
    /// Whether this address is of this machine.
    fn has(&mut self, source: SocketAddr) -> bool {
        let is_old = self.since.is_none_or(|since| since.elapsed() > ADDRESSES_KEPT);
        if is_old || self.known.len() >= MOST_ADDRESSES {
            self.known.clear();
            self.since = Some(Instant::now());
        }
        let scope = if let SocketAddr::V6(v6) = source { v6.scope_id() } else { 0 };
        *self.known.entry((source.ip(), scope)).or_insert_with(|| leads_here(source))
    }
}

/// Whether the way to this address ends on this machine: then the system would send from the address itself. Whether it can be bound tells
/// nothing where `ip_nonlocal_bind` is set.
fn leads_here(address: SocketAddr) -> bool {
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // Nothing is sent: only the route is looked up.
    let own = std::net::UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    address.ip().is_loopback() || own.is_ok_and(|own| own.ip() == address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_told_from_others() {
        let mut own = OwnAddresses::default();
        let mut has = |address: [u8; 4]| {
            let has = own.has((address, 9).into());
            assert!(own.known.len() <= MOST_ADDRESSES);
            has
        };
        assert!(!has([192, 0, 2, 1]) && has([127, 0, 0, 1]));
        for number in 0..2 * MOST_ADDRESSES {
            let [.., high, low] = number.to_be_bytes();
            assert!(has([127, 1, high, low]));
        }
        assert!(own.has("[::1]:9".parse().unwrap()) && !own.has("[2001:db8::1]:9".parse().unwrap()));
        // The address by which this machine would reach others, if any does.
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        if socket.connect("192.0.2.1:9").is_ok() {
            assert!(own.has(socket.local_addr().unwrap()));
        }
    }

    /// In a network of its own, in which every address can be bound.
    #[test]
    fn an_address_is_not_of_this_machine_because_it_can_be_bound() {
        const INSIDE: &str = "PLIMSOLL_TEST_IN_A_NETWORK_OF_ITS_OWN";
        const NAME: &str = "multicast::tests::an_address_is_not_of_this_machine_because_it_can_be_bound";
        if std::env::var_os(INSIDE).is_some() {
            assert!(std::net::UdpSocket::bind("192.0.2.1:0").is_ok(), "every address can be bound");
            let mut own = OwnAddresses::default();
            assert!(!own.has("192.0.2.1:9".parse().unwrap()) && own.has("127.0.0.1:9".parse().unwrap()));
            return;
        }
        let program = std::env::current_exe().unwrap();
        let status = std::process::Command::new("unshare")
            .args(["--map-root-user", "--net", "sh", "-c"])
            .arg("echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind && exec \"$0\" --exact \"$1\"")
            .arg(program)
            .arg(NAME)
            .env(INSIDE, "1")
            .status();
        assert!(status.unwrap().success());
    }
}
