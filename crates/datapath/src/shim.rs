//! The accept shim: lets an unmodified server serve connections that were restored beside it.
//!
//! The server listens on a Unix socket and has [`LIBRARY`] preloaded (`LD_PRELOAD`). The agent [`connect`]s
//! to that socket once per connection that it hands in, and passes the TCP socket by [`send_connection`]; to
//! the server it looks as if it had accepted that socket. By [`receive`] on the Unix connection the agent
//! learns what becomes of the socket; the connection's end means that the server has released the socket.
//! Other clients of the Unix socket are served as without the shim; so is an agent that is neither root nor
//! the user that started the server (before its workers changed theirs).
//!
//! A server that can listen on TCP ports only (Apache) needs `PLIMSOLL_SHIM_LISTEN=PORT=PATH` in its environment
//! ([`LISTEN_VARIABLE`]): what it binds to this port becomes a Unix socket at this path.
//!
//! The agent must close its own copies of the socket once it is passed: the server's `close` ends the connection only if
//! it closes the last copy.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind,
    connect as connect_socket, recvmsg, sendmsg, socket_with,
};

/// The shim as a shared object for this machine's architecture.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libplimsoll_shim.so"));

/// Environment variable `PORT=PATH` of a server with the shim: the Unix socket in place of a TCP port.
pub const LISTEN_VARIABLE: &str = "PLIMSOLL_SHIM_LISTEN";

/// What follows here mirrors `shim/handed.h`.
const NAME: &str = "plimsoll-handed-";
const MAGIC: u32 = 0x504c_4d31;
const VERSION: u8 = 1;
const MESSAGE_BYTES: usize = 32;
const CONNECTION: u8 = 1;
const ANSWERED: u8 = 2;
const GIVEN_BACK: u8 = 3;
const FLAG_GIVE_BACK: u32 = 1;
const FLAG_HEAD_REQUEST: u32 = 2;
const FLAG_COMPLETE: u32 = 4;
const FLAG_NO_END: u32 = 8;
const FLAG_ENDED: u32 = 16;

/// How many names are tried.
const NAME_ATTEMPTS: usize = 8;

/// Writes the shim to a file, for `LD_PRELOAD`. A server that runs with an earlier one keeps it.
///
/// # Errors
///
/// The file system's.
pub fn write_to(path: &Path) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(format!(".{}", std::process::id()));
    fs::write(&unfinished, LIBRARY)?;
    fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o644))?;
    fs::rename(&unfinished, path)
}

/// What the agent tells the shim about a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Give the socket back when a further request comes, instead of letting the server read it.
    pub give_back_at_next_request: bool,
    /// The first request is HEAD: its answer has no content.
    pub head_request: bool,
    /// Size of the first request, in bytes: the server reads no byte behind it before the socket has been given back,
    /// whatever the client has sent. 0, or a socket that is not given back: it reads what comes.
    pub head_size_bytes: u32,
    /// The server does not end its side of the connection, whatever it does: who hands the socket in keeps a copy, and ends it.
    pub no_end: bool,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShimAnswer {
    /// Its status; 0 if none was seen.
    pub status: u16,
    /// Content that the kernel took, in bytes, without the head and without chunk sizes.
    pub content_bytes: u64,
    /// Whether it was written completely. An answer delimited by the end of the connection counts as complete
    /// when the server ended it and no write failed.
    pub complete: bool,
    /// Whether the server has ended its side, or has said that it will, and answers nothing more.
    pub ended: bool,
    /// When its first byte was written (`CLOCK_MONOTONIC`, nanoseconds).
    pub first_byte_ns: u64,
}

/// A notice of the shim about a connection.
#[derive(Debug)]
pub enum Notice {
    /// An answer has been written, or never will be. If the server reads several requests at once (from a
    /// client that does not wait for answers), it answers them all.
    Answered(ShimAnswer),
    /// A further request waits in the socket; the server has no copy of it any more, and nothing else follows: drop the
    /// stream.
    GivenBack(OwnedFd),
}

/// Connects to the server's Unix socket, under a name by which the shim knows the agent. The stream is not blocking.
///
/// # Errors
///
/// The kernel's; `WouldBlock` when the server's queue of connections is full.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    for attempt in 1.. {
        // Nobody can guess the name, and so take it before.
        let name = format!("{NAME}{:032x}", u128::from_ne_bytes(plimsoll_wire::random()?));
        match bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?) {
            Err(rustix::io::Errno::ADDRINUSE) if attempt < NAME_ATTEMPTS => {}
            result => {
                result?;
                break;
            }
        }
    }
    connect_socket(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Passes a TCP socket to the server, right after [`connect`]: the server waits for it.
///
/// # Errors
///
/// The kernel's; the server has gone.
pub fn send_connection(unix: &UnixStream, socket: impl AsFd, header: Header) -> io::Result<()> {
    let sockets = [socket.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(io::Error::other("no room for a descriptor"));
    }
    let message = encode(header);
    match sendmsg(unix, &[IoSlice::new(&message)], &mut ancillary, SendFlags::NOSIGNAL)? {
        MESSAGE_BYTES => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// The next notice of the shim; `None` when the server has released the socket (by closing it, unless it was
/// given back).
///
/// # Errors
///
/// The kernel's (`WouldBlock`: nothing now); `InvalidData` when it is no notice of this version of the shim.
pub fn receive(unix: &UnixStream) -> io::Result<Option<Notice>> {
    let mut message = [0; MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut message)];
    // A read with a time-out may be interrupted at any moment, even where no signal is handled (`signal(7)`).
    let received = match retry_on_intr(|| recvmsg(unix, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC))
    {
        // The server closed its end with the agent's message unread.
        Ok(received) if received.bytes == 0 => return Ok(None),
        Err(rustix::io::Errno::CONNRESET) => return Ok(None),
        received => received?,
    };
    let mut socket = None;
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(mut sockets) = part {
            socket = sockets.next();
        }
    }
    if received.bytes != MESSAGE_BYTES {
        return Err(invalid("a notice of the shim is cut"));
    }
    decode(&message, socket).map(Some)
}

fn encode(header: Header) -> [u8; MESSAGE_BYTES] {
    let flag = |on: bool, bit: u32| if on { bit } else { 0 };
    let flags =
        flag(header.give_back_at_next_request, FLAG_GIVE_BACK) | flag(header.head_request, FLAG_HEAD_REQUEST);
    let flags = flags | flag(header.no_end, FLAG_NO_END);
    let mut message = [0; MESSAGE_BYTES];
    message[..4].copy_from_slice(&MAGIC.to_ne_bytes());
    message[4] = VERSION;
    message[5] = CONNECTION;
    message[8..12].copy_from_slice(&flags.to_ne_bytes());
    message[12..16].copy_from_slice(&header.head_size_bytes.to_ne_bytes());
    message
}

fn decode(message: &[u8; MESSAGE_BYTES], socket: Option<OwnedFd>) -> io::Result<Notice> {
    let [m0, m1, m2, m3, version, kind, s0, s1, f0, f1, f2, f3, ..] = *message;
    if u32::from_ne_bytes([m0, m1, m2, m3]) != MAGIC || version != VERSION {
        return Err(invalid("the shim in the server is not of this version"));
    }
    let number = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&message[at..at + 8]);
        u64::from_ne_bytes(bytes)
    };
    match (kind, socket) {
        (ANSWERED, None) => Ok(Notice::Answered(ShimAnswer {
            status: u16::from_ne_bytes([s0, s1]),
            content_bytes: number(16),
            complete: u32::from_ne_bytes([f0, f1, f2, f3]) & FLAG_COMPLETE != 0,
            ended: u32::from_ne_bytes([f0, f1, f2, f3]) & FLAG_ENDED != 0,
            first_byte_ns: number(24),
        })),
        (GIVEN_BACK, Some(socket)) => Ok(Notice::GivenBack(socket)),
        _ => Err(invalid("unknown notice of the shim")),
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_that_are_none() {
        let header = Header {
            give_back_at_next_request: true,
            head_request: true,
            head_size_bytes: 77,
            no_end: false,
        };
        let mut message = encode(header);
        assert_eq!(message[8..12], 3u32.to_ne_bytes());
        assert_eq!(message[12..16], 77u32.to_ne_bytes());
        assert!(decode(&message, None).is_err());
        message[5] = ANSWERED;
        assert!(matches!(decode(&message, None), Ok(Notice::Answered(_))));
        message[4] = VERSION + 1;
        assert_eq!(decode(&message, None).unwrap_err().kind(), io::ErrorKind::InvalidData);
        message[4] = VERSION;
        message[5] = GIVEN_BACK;
        assert!(decode(&message, None).is_err());
    }

    #[test]
    fn written_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shim.so");
        write_to(&path).unwrap();
        write_to(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), LIBRARY);
        assert_eq!(&LIBRARY[..4], b"\x7fELF");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
