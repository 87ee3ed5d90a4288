//! The thread that announces the load.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_wire::load::{LoadAnnouncer, LoadCounters, LoadGauge};
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
    let groups = config.receivers.iter().map(SocketAddr::ip).filter(IpAddr::is_multicast);
    for group in groups {
        match group {
            IpAddr::V4(_) => {
                socket.set_multicast_ttl_v4(config.multicast_hops)?;
                if let Some(interface) = config.multicast_interface {
                    sockopt::set_ip_multicast_if(socket, &interface)?;
                }
            }
            IpAddr::V6(_) => sockopt::set_ipv6_multicast_hops(socket, config.multicast_hops)?,
        }
    }
    Ok(())
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
            let load = gauge.load();
            let datagram = announcer.announce(clock_ns(origin), load, gauge.latency_us(load));
            for receiver in &receivers {
                match socket.send_to(&datagram, receiver) {
                    Ok(_) => counters.announce(),
                    Err(error) => tracing::debug!(%error, %receiver, "an announcement was not sent"),
                }
            }
        }
    })
}
