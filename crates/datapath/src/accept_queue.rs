//! Connections that wait to be accepted.

use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use crate::error::{DatapathError, NET_ADMIN};
use crate::netlink::request_of;

/// Connections that wait to be accepted by whoever listens at this TCP port, in this network namespace. `None` where nobody does.
/// Needs no privileges, and asks for listening sockets alone, so that it costs the same with any number of connections.
///
/// # Errors
/// The kernel's.
pub fn accept_queue(port: u16) -> Result<Option<u32>, DatapathError> {
    let mut waiting = None;
    for (family, socket_id) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
        let asked = SockDiagMessage::InetRequest(InetRequest {
            family,
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::empty(),
            states: StateFlags::LISTEN,
            socket_id,
        });
        let answers = request_of(NETLINK_SOCK_DIAG, asked, NLM_F_DUMP)
            .map_err(|error| DatapathError::of("cannot ask for listening sockets", NET_ADMIN, error))?;
        for answer in answers {
            let SockDiagMessage::InetResponse(socket) = answer else { continue };
            if socket.header.socket_id.source_port == port {
                waiting = Some(waiting.unwrap_or(0_u32).saturating_add(socket.header.recv_queue));
            }
        }
    }
    Ok(waiting)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_waits_is_counted_until_it_is_accepted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let count = || accept_queue(address.port()).unwrap();
        assert_eq!(count(), Some(0));
        let waiting: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert_eq!(count(), Some(3));
        let _accepted = listener.accept().unwrap();
        assert_eq!(count(), Some(2));
        drop((waiting, listener));
        assert_eq!(count(), None);
    }
}
