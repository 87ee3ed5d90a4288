//! The system calls of repair mode that no safe library wraps. Everything unsafe of [`super`] is here.
#![allow(unsafe_code, reason = "socket options, ioctl and bpf(2) are called through pointers")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// An option of a socket whose value is `N` 32-bit numbers.
///
/// # Errors
///
/// The kernel's, and `InvalidData` when it returned less.
pub(super) fn option<const N: usize>(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<[u32; N]> {
    let mut value = [0u32; N];
    let mut len = bytes_of::<N>();
    // SAFETY: `value` is writable for the `len` bytes that the kernel is told of, any bytes in it are valid numbers, and
    // both outlive the call.
    let got = unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut len) };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    if len != bytes_of::<N>() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "socket option shorter than expected"));
    }
    Ok(value)
}

/// Sets such an option.
///
/// # Errors
///
/// The kernel's.
pub(super) fn set_option(fd: BorrowedFd<'_>, level: i32, name: i32, value: &[u32]) -> io::Result<()> {
    let len = u32::try_from(size_of_val(value)).map_err(io::Error::other)?;
    // SAFETY: `value` is readable for the `len` bytes that the kernel is told of, and outlives the call.
    let set = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), len) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A number that the ioctl `request` writes (`SIOCOUTQ`, `SIOCOUTQNSD`).
///
/// # Errors
///
/// The kernel's.
pub(super) fn queued_bytes(fd: BorrowedFd<'_>, request: libc::Ioctl) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: both requests that this module's users pass write one int to the pointer, which is valid for the call.
    let got = unsafe { libc::ioctl(fd.as_raw_fd(), request, &raw mut bytes) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    usize::try_from(bytes).map_err(io::Error::other)
}

/// The part of `union bpf_attr` that `BPF_PROG_LOAD` needs; the kernel takes what is missing as zeros.
#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_count: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

/// Loads the socket filter that drops every packet.
///
/// # Errors
///
/// The kernel's: without `CAP_BPF`, or where eBPF is not configured.
pub(super) fn load_drop_filter() -> io::Result<OwnedFd> {
    const BPF_PROG_LOAD: libc::c_long = 5;
    const BPF_PROG_TYPE_SOCKET_FILTER: u32 = 1;
    // r0 = 0; exit.
    const INSNS: [[u8; 8]; 2] = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    let attr = ProgLoad {
        prog_type: BPF_PROG_TYPE_SOCKET_FILTER,
        insn_count: 2,
        insns: INSNS.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: *b"plimsoll_drop\0\0\0",
    };
    // SAFETY: `attr` has the layout of the kernel's union up to `prog_name` and says its own size; the program and the
    // license that it points to are constants.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const attr, size_of::<ProgLoad>()) };
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

const fn bytes_of<const N: usize>() -> u32 {
    (N * size_of::<u32>()) as u32
}
