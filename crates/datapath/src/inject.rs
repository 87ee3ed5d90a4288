//! Injects frames as received, or sends them, by running packet programs.

use std::os::fd::BorrowedFd;

use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::run::{LIVE_FRAMES, RunInput, run};

/// Bytes of `struct xdp_md`.
const XDP_CONTEXT_BYTES: usize = 24;
/// Bytes of `struct __sk_buff` up to `ifindex`.
const SKB_CONTEXT_BYTES: usize = 44;

/// Passes `frame` up the stack as if received at the interface; `pass` is the XDP program that lets
/// everything through.
///
/// # Errors
/// The kernel's: the interface is gone, or the frame too long.
pub(crate) fn receive(pass: BorrowedFd<'_>, ifindex: u32, frame: &[u8]) -> Result<(), DatapathError> {
    let mut context = [0; XDP_CONTEXT_BYTES];
    let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    context[4..8].copy_from_slice(&length.to_ne_bytes());
    context[12..16].copy_from_slice(&ifindex.to_ne_bytes());
    let input = RunInput {
        context: Some(&mut context),
        frame: Some(frame),
        flags: LIVE_FRAMES,
        repeat: 1,
        ..Default::default()
    };
    let injected = run(pass, input);
    let what = || format!("cannot inject a packet of {} bytes at interface number {ifindex}", frame.len());
    injected.map(drop).map_err(|error| DatapathError::of(what(), BPF_CAPABILITIES, error))
}

/// Sends `frame` out of the interface; `emit` is the program that redirects everything to the interface it is run for.
///
/// # Errors
/// The kernel's: the interface is gone, or down.
pub(crate) fn send(emit: BorrowedFd<'_>, ifindex: u32, frame: &[u8]) -> Result<(), DatapathError> {
    let mut context = [0; SKB_CONTEXT_BYTES];
    context[40..44].copy_from_slice(&ifindex.to_ne_bytes());
    let input = RunInput { context: Some(&mut context), frame: Some(frame), ..Default::default() };
    let what = || format!("cannot send a packet of {} bytes out of interface number {ifindex}", frame.len());
    let output = run(emit, input).map_err(|error| DatapathError::of(what(), BPF_CAPABILITIES, error))?;
    match output.verdict.cast_signed() {
        0 => Ok(()),
        code => Err(DatapathError::of(what(), BPF_CAPABILITIES, std::io::Error::from_raw_os_error(-code))),
    }
}
