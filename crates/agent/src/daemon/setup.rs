//! What is set up before there are threads, and how its end is waited for.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use plimsoll_datapath::{DatapathError, Vip};

/// Connections that may wait to be accepted, as far as the system allows.
const BACKLOG: i32 = 4096;
/// Interval of checks whether connections are gone.
pub(super) const LOOK: Duration = Duration::from_millis(5);
/// Time for connections that were cut off to be gone.
pub(super) const CUT_OFF: Duration = Duration::from_secs(1);

/// A listener that does not block.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    // The standard library has 128 wait: beside the noise of strangers, others would have to try again after a second.
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Gives this machine the addresses, each once, without announcing them.
pub(super) fn add_vips(vips: &[SocketAddr], interface: &str) -> Result<Vec<Vip>, DatapathError> {
    let mut addresses: Vec<IpAddr> = vips.iter().map(SocketAddr::ip).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.iter().map(|&vip| Vip::add(vip, interface)).collect()
}

/// Waits for this long until it is done.
pub(super) fn wait_until(is_done: impl Fn() -> bool, limit: Duration) {
    let deadline = Instant::now() + limit;
    while !is_done() && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
}
