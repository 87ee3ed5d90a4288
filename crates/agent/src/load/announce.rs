//! The thread that announces the load.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_wire::MulticastInterface;
use plimsoll_wire::load::{LoadAnnouncer, LoadCounters, LoadGauge};
use rustix::net::netdevice::name_to_index;
use rustix::net::sockopt;

use super::answer::clock_ns;
use super::config::AnnounceConfig;
use super::priority;

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

pub(super) struct Announcing {
    pub(super) socket: UdpSocket,
    pub(super) announcer: LoadAnnouncer,
    pub(super) gauge: LoadGauge,
    pub(super) counters: Arc<LoadCounters>,
    pub(super) receivers: Vec<SocketAddr>,
    pub(super) origin: Instant,
}

/// Prepares the socket for the groups among the receivers.
pub(super) fn prepare(socket: &UdpSocket, config: &AnnounceConfig) -> io::Result<()> {
    use MulticastInterface::{Address, Name};
    const ANY: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
    let groups = config.receivers.iter().map(SocketAddr::ip).filter(IpAddr::is_multicast);
    for group in groups {
        match (group, &config.multicast_interface) {
            (IpAddr::V4(_), interface) => {
                socket.set_multicast_ttl_v4(config.multicast_hops)?;
                match interface {
                    Some(Address(address)) => sockopt::set_ip_multicast_if(socket, address)?,
                    Some(Name(name)) => {
                        let index = index_of(socket, name)?;
                        sockopt::set_ip_multicast_if_with_ifindex(socket, &ANY, &ANY, index)?;
                    }
                    None => {}
                }
            }
            (IpAddr::V6(_), interface) => {
                sockopt::set_ipv6_multicast_hops(socket, config.multicast_hops)?;
                if let Some(Name(name)) = interface {
                    sockopt::set_ipv6_multicast_if(socket, index_of(socket, name)?)?;
                }
            }
        }
    }
    Ok(())
}

fn index_of(socket: &UdpSocket, name: &str) -> io::Result<u32> {
    name_to_index(socket, name).map_err(|error| {
        let (error, there) = (io::Error::from(error), plimsoll_wire::interfaces_text());
        io::Error::new(error.kind(), format!("--load-interface {name}: {error}; {there}"))
    })
}

pub(super) fn start(announcing: Announcing, stopping: Arc<AtomicBool>) -> io::Result<JoinHandle<()>> {
    let Announcing { socket, mut announcer, gauge, counters, receivers, origin } = announcing;
    std::thread::Builder::new().name("load-announce".to_owned()).spawn(move || {
        priority::raise();
        while !stopping.load(Ordering::Relaxed) {
            let wait_ns = announcer.due_ns().saturating_sub(clock_ns(origin));
            if wait_ns > 0 {
                std::thread::sleep(Duration::from_nanos(wait_ns).min(LOOK));
                continue;
            }
            let (load, latency_us) = gauge.tell();
            let datagram = announcer.announce(clock_ns(origin), load, latency_us);
            for receiver in &receivers {
                match socket.send_to(&datagram, receiver) {
                    Ok(_) => counters.announce(),
                    Err(error) => tracing::debug!(%error, %receiver, "an announcement was not sent"),
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_group_is_reached_by_the_named_interface() {
        let socket = UdpSocket::bind("[::1]:0").unwrap();
        let interval = Duration::from_secs(1);
        let mut config = AnnounceConfig::new(interval, vec!["[ff02::74:1]:7403".parse().unwrap()]);
        config.multicast_interface = Some(MulticastInterface::Name("lo".to_owned()));
        prepare(&socket, &config).unwrap();
        let index = name_to_index(&socket, "lo").unwrap();
        assert_eq!(sockopt::ipv6_multicast_if(&socket).unwrap(), index);
        config.multicast_interface = Some(MulticastInterface::Name("none9".to_owned()));
        let error = prepare(&socket, &config).unwrap_err().to_string();
        assert!(error.starts_with("--load-interface none9: ") && error.contains("there are: "), "{error}");
    }
}
