//! Listening sockets.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that wait to be accepted; the system caps it at `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// A non-blocking socket that listens at `address`. With `shared`, each worker has one of its own at the same address
/// and the system spreads the connections (SO_REUSEPORT). With `anywhere`, the address need not be one of this machine yet.
///
/// # Errors
/// When the address cannot be had.
pub(crate) fn listen(address: SocketAddr, shared: bool, anywhere: bool) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // `[::]` and `0.0.0.0` are two listeners; which of them gets IPv4 does not depend on their order.
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    // Inherited by the connections, which saves a call for each.
    socket.set_tcp_nodelay(true)?;
    match address {
        _ if !anywhere => {}
        SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
        SocketAddr::V6(_) => socket.set_freebind_v6(true)?,
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
