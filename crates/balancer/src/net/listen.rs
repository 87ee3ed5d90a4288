//! Listening sockets.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that wait to be accepted; the system caps it at `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Allows an address that comes to this machine later, and may leave it.
fn listen_anywhere(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    match address {
        SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
        SocketAddr::V6(_) => socket.set_freebind_v6(true)?,
    }
    // Connections inherit it: when the address has left, what they still send makes the machine that has it now reset their
    // clients, who would else hear nothing. For IPv6, too. It takes CAP_NET_ADMIN; without it, such clients wait in vain.
    if let Err(error) = socket.set_ip_transparent_v4(true) {
        tracing::warn!(%error, %address, "clients of proxied connections will not hear of it when the address leaves");
    }
    Ok(())
}

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
    if anywhere {
        listen_anywhere(&socket, address)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
