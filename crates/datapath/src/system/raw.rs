//! System calls for which no library has a safe function.

#![allow(unsafe_code, reason = "three system calls, each with one argument that lives on the stack")]

use std::ffi::c_char;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// `ETHTOOL_GFLAGS` and `ETH_FLAG_LRO` of `linux/ethtool.h`.
const GET_FLAGS: u32 = 0x25;
const LARGE_RECEIVE: u32 = 1 << 15;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Moves the calling thread to a new network namespace, empty except for `lo`.
pub(super) fn own_network() -> io::Result<()> {
    // SAFETY: only `FILES` makes the call unsafe, by leaving other threads without descriptors.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(io::Error::from)
}

/// Whether the interface's driver merges packets so that they cannot be forwarded; `None` if unknown.
pub(super) fn large_receive(interface: &str) -> Option<bool> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    let mut name = [0; libc::IFNAMSIZ];
    if interface.len() >= name.len() {
        return None;
    }
    for (to, from) in name.iter_mut().zip(interface.bytes()) {
        *to = from as c_char;
    }
    let mut value = Value { command: GET_FLAGS, data: 0 };
    let data = libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut value).cast() };
    let mut request = libc::ifreq { ifr_name: name, ifr_ifru: data };
    // SAFETY: the request has the name of an interface, ended by a zero, and points to an `ethtool_value`; both live until
    // the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    (result == 0).then_some(value.data & LARGE_RECEIVE != 0)
}

/// Puts a socket that is not connected into repair mode.
pub(super) fn repair(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the value is an `int` that lives until the call returns, and its size is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_REPAIR,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
