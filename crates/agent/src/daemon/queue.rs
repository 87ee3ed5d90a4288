//! How much the kernel still has to send on a connection, and when its client last acknowledged anything, by socket diagnosis
//! (sock_diag(7)), which also knows sockets that a server has closed.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plimsoll_datapath::Flow;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const TCP_PROTOCOL: u8 = 6;
/// `TCP_LISTEN` of the kernel: what it finds when there is no connection.
const LISTENING: u8 = 10;
/// `struct nlmsghdr`, and `struct inet_diag_req_v2` after it.
const HEADER_BYTES: usize = 16;
const QUESTION_BYTES: usize = 72;
/// In `struct inet_diag_msg`, which follows the header of the answer.
const STATE_AT: usize = HEADER_BYTES + 1;
const SEND_QUEUE_AT: usize = HEADER_BYTES + 60;
const MESSAGE_BYTES: usize = 72;
/// `INET_DIAG_INFO`: the number of the attribute with `struct tcp_info`, and its bit in the question.
const INFO: u16 = 2;
const INFO_BIT: u8 = 1 << (INFO - 1);
const EXTENSIONS_AT: usize = HEADER_BYTES + 2;
/// `tcpi_last_ack_recv` in `struct tcp_info`, in milliseconds.
const LAST_ACK_AT: usize = 56;

/// See the module's documentation. Queries the network namespace in which it was opened.
#[derive(Debug)]
pub(super) struct SendQueues(Mutex<OwnedFd>);

impl SendQueues {
    /// # Errors
    /// The kernel's.
    pub(super) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = Some(netlink::SOCK_DIAG);
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        Ok(Self(Mutex::new(socket)))
    }

    /// Bytes that the client has not acknowledged, our FIN included; 0 without a connection.
    ///
    /// # Errors
    /// The kernel's, or that its answer is not understood.
    pub(super) fn bytes(&self, flow: &Flow) -> io::Result<u32> {
        let mut answer = [0; 1024];
        let count = self.ask(&question(flow), &mut answer)?;
        understood(&answer[..count])
    }

    /// How long the client has acknowledged nothing; `None` when there is nothing to acknowledge.
    ///
    /// # Errors
    /// As for [`SendQueues::bytes`].
    pub(super) fn stalled_for(&self, flow: &Flow) -> io::Result<Option<Duration>> {
        let mut question = question(flow);
        question[EXTENSIONS_AT] = INFO_BIT;
        let mut answer = [0; 1024];
        let count = self.ask(&question, &mut answer)?;
        let answer = &answer[..count];
        if understood(answer)? == 0 {
            return Ok(None);
        }
        Ok(Some(since_last_ack(answer)?))
    }

    /// The size of the kernel's answer.
    fn ask(&self, question: &[u8], answer: &mut [u8]) -> io::Result<usize> {
        let socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Discards what an earlier query may have left; the kernel answers within `send`.
        for _ in 0..16 {
            if recv(&*socket, &mut *answer, RecvFlags::DONTWAIT).is_err() {
                break;
            }
        }
        send(&*socket, question, SendFlags::empty())?;
        let (count, _) = recv(&*socket, answer, RecvFlags::DONTWAIT)?;
        Ok(count)
    }
}

fn question(flow: &Flow) -> [u8; QUESTION_BYTES] {
    let mut bytes = [0; QUESTION_BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &(QUESTION_BYTES as u32).to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &NLM_F_REQUEST.to_ne_bytes());
    let family = if flow.vip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    put(16, &[u8::try_from(family.as_raw()).unwrap_or_default(), TCP_PROTOCOL]);
    // Sockets in all states.
    put(20, &u32::MAX.to_ne_bytes());
    let mut end = |port_at: usize, address_at: usize, address: SocketAddr| {
        put(port_at, &address.port().to_be_bytes());
        match address.ip() {
            IpAddr::V4(ip) => put(address_at, &ip.octets()),
            IpAddr::V6(ip) => put(address_at, &ip.octets()),
        }
    };
    end(24, 28, flow.vip);
    end(26, 44, flow.client);
    // No cookie.
    put(64, &[0xff; 8]);
    bytes
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> io::Result<u32> {
    let word = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).ok_or_else(malformed)?;
    Ok(u32::from_ne_bytes(word))
}

/// Time since the last acknowledgment, from an answer with `struct tcp_info`.
fn since_last_ack(answer: &[u8]) -> io::Result<Duration> {
    let mut at = HEADER_BYTES + MESSAGE_BYTES;
    loop {
        // Attributes: length with this head, kind, value; each begins at a multiple of four.
        let (length, kind) = u16_at(answer, at).zip(u16_at(answer, at + 2)).ok_or_else(malformed)?;
        let value = answer.get(at + 4..at + usize::from(length)).ok_or_else(malformed)?;
        if kind == INFO {
            return Ok(Duration::from_millis(u32_at(value, LAST_ACK_AT)?.into()));
        }
        at += usize::from(length).next_multiple_of(4);
    }
}

fn understood(answer: &[u8]) -> io::Result<u32> {
    let number = |at: usize| u32_at(answer, at);
    let kind = u16_at(answer, 4);
    match kind {
        Some(NLMSG_ERROR) => {
            let error = i32::try_from(number(HEADER_BYTES)?.wrapping_neg()).map_err(|_| malformed())?;
            if error == Errno::NOENT.raw_os_error() {
                Ok(0)
            } else {
                Err(io::Error::from_raw_os_error(error))
            }
        }
        Some(SOCK_DIAG_BY_FAMILY) => {
            let state = *answer.get(STATE_AT).ok_or_else(malformed)?;
            if state == LISTENING { Ok(0) } else { number(SEND_QUEUE_AT) }
        }
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Shutdown, TcpListener, TcpStream};

    use plimsoll_testkit::eventually;

    use super::*;

    fn to_its_end(at: &str) {
        let listener = TcpListener::bind(at).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut ours, from) = listener.accept().unwrap();
        let flow = Flow::new(from, listener.local_addr().unwrap());
        let queues = SendQueues::open().unwrap();
        assert_eq!(queues.bytes(&flow).unwrap(), 0);
        ours.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(bytes) = ours.write(&[0; 65_536]) {
            written += bytes as u64;
        }
        ours.shutdown(Shutdown::Write).unwrap();
        let there = || rustix::io::ioctl_fionread(&client).unwrap();
        // The end of the connection counts as a byte.
        let counted = || u64::from(queues.bytes(&flow).unwrap()) + there();
        eventually("that all which was sent has arrived", || counted() <= written + 1);
        let before = queues.bytes(&flow).unwrap();
        assert!(before > 0);
        let stalled = || queues.stalled_for(&flow).unwrap().unwrap();
        let at_first = stalled();
        eventually("that nothing is acknowledged", || stalled() > at_first + Duration::from_millis(50));
        // Closed, it is the kernel's, which goes on.
        drop(ours);
        assert_eq!(queues.bytes(&flow).unwrap(), before);
        client.read_to_end(&mut Vec::new()).unwrap();
        eventually("the end of the queue", || queues.bytes(&flow).unwrap() == 0);
        assert_eq!(queues.stalled_for(&flow).unwrap(), None);
    }

    #[test]
    fn what_is_left_to_be_sent() {
        to_its_end("127.0.0.1:0");
        to_its_end("[::1]:0");
    }

    #[test]
    fn a_connection_that_is_not_there_has_nothing_to_send() {
        let flow = Flow::new(([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 2).into());
        assert_eq!(SendQueues::open().unwrap().bytes(&flow).unwrap(), 0);
        assert!(understood(&[]).is_err());
        assert!(understood(&[0; 40]).is_err());
        let mut answer = [0; HEADER_BYTES + MESSAGE_BYTES + 8];
        assert!(since_last_ack(&answer[..HEADER_BYTES]).is_err());
        // An attribute of no length would be looked at for ever.
        assert!(since_last_ack(&answer).is_err());
        answer[HEADER_BYTES + MESSAGE_BYTES] = 4;
        assert!(since_last_ack(&answer).is_err());
    }
}
