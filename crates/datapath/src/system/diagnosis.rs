//! Checks whether the kernel supports queries about TCP sockets (sock_diag(7)), by which an agent learns how
//! much of an answer is still to be sent.

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};
use rustix::io::Errno;

use super::finding::Finding;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const REQUEST_DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `struct nlmsghdr`, and `struct inet_diag_req_v2` after it.
const HEADER_BYTES: usize = 16;
const QUESTION_BYTES: usize = 72;
const FAMILY_INET: u8 = 2;
pub(super) const TCP: u8 = 6;

/// The kernel's reaction to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Diagnosis {
    /// It answers.
    Answers,
    /// It supports queries, but not about TCP sockets.
    NotAboutTcp,
    /// It does not support queries.
    Fails(String),
}

/// Queries a protocol's sockets in no state at all, which gives an empty answer.
pub(super) fn probe(protocol: u8) -> Diagnosis {
    match ask(protocol) {
        Ok(()) => Diagnosis::Answers,
        // It also answers so when the module to load is missing.
        Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Diagnosis::NotAboutTcp,
        Err(error) => Diagnosis::Fails(error.to_string()),
    }
}

fn ask(protocol: u8) -> io::Result<()> {
    let mut question = [0; QUESTION_BYTES];
    question[..4].copy_from_slice(&(QUESTION_BYTES as u32).to_ne_bytes());
    question[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    question[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    question[HEADER_BYTES] = FAMILY_INET;
    question[HEADER_BYTES + 1] = protocol;
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    // The kernel has answered before `send` returns.
    socket.set_non_blocking(true)?;
    socket.send(&question, 0)?;
    let (answer, _) = socket.recv_from_full()?;
    understood(&answer)
}

/// The end of the list, or an error: both hold a code that is negative when it failed.
fn understood(answer: &[u8]) -> io::Result<()> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let code = answer.get(HEADER_BYTES..HEADER_BYTES + 4).and_then(|bytes| bytes.try_into().ok());
    match (kind, code.map(i32::from_ne_bytes)) {
        (Some(NLMSG_ERROR | NLMSG_DONE), Some(code)) if code < 0 => {
            Err(io::Error::from_raw_os_error(code.saturating_neg()))
        }
        (Some(NLMSG_DONE), _) => Ok(()),
        _ => Err(malformed()),
    }
}

pub(super) fn judge(diagnosis: &Diagnosis) -> Finding {
    let name = "TCP socket diagnosis";
    match diagnosis {
        Diagnosis::Answers => Finding::ok(name, "the kernel tells how much of an answer is still to be sent"),
        Diagnosis::NotAboutTcp => Finding::warning(
            name,
            "the kernel does not tell how much of an answer is still to be sent: one counts as sent when the kernel has \
             it, and a client that pauses before its end may lose the rest",
            "modprobe tcp_diag; the kernel needs INET_TCP_DIAG",
        ),
        Diagnosis::Fails(error) => Finding::missing(
            name,
            format!("the kernel cannot be asked about sockets, and the agent does not start: {error}"),
            "the kernel needs INET_DIAG and INET_TCP_DIAG (modprobe tcp_diag)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Status;

    /// A protocol that nobody diagnoses: what the kernel says is what it says of TCP when it lacks that.
    const NO_PROTOCOL: u8 = 253;

    #[test]
    fn this_kernel_is_asked() {
        assert_eq!(probe(TCP), Diagnosis::Answers);
        assert_eq!(probe(NO_PROTOCOL), Diagnosis::NotAboutTcp);
    }

    #[test]
    fn answers() {
        let answer = |kind: u16, code: i32| {
            let mut bytes = vec![0; HEADER_BYTES];
            bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
            bytes.extend(code.to_ne_bytes());
            understood(&bytes).map_err(|error| error.raw_os_error())
        };
        assert_eq!(answer(NLMSG_DONE, 0), Ok(()));
        assert_eq!(answer(NLMSG_DONE, -2), Err(Some(2)));
        assert_eq!(answer(NLMSG_ERROR, -1), Err(Some(1)));
        assert_eq!(answer(NLMSG_ERROR, i32::MIN).ok(), None);
        assert_eq!(answer(SOCK_DIAG_BY_FAMILY, 0), Err(None));
        for length in 0..HEADER_BYTES {
            assert!(understood(&vec![0; length]).is_err());
        }
    }

    #[test]
    fn findings() {
        let status = |diagnosis| judge(&diagnosis).status;
        assert_eq!(status(Diagnosis::Answers), Status::Ok);
        assert_eq!(status(Diagnosis::NotAboutTcp), Status::Warning);
        assert_eq!(status(Diagnosis::Fails(String::new())), Status::Missing);
    }
}
