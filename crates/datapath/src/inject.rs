//! Injects frames as received, or sends them, by running packet programs.

use std::os::fd::BorrowedFd;

use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::run::{RunInput, run};

/// Bytes of `struct __sk_buff` up to `ifindex`.
const SKB_CONTEXT_BYTES: usize = 44;

/// Passes `frame` up the stack as if received at the interface; `receive` is the program that does so with everything at the interface it
/// is run for.
///
/// # Errors
/// The kernel's: the interface is gone or down, or the frame too long.
pub(crate) fn receive(receive: BorrowedFd<'_>, ifindex: u32, frame: &[u8]) -> Result<(), DatapathError> {
    run_for(receive, ifindex, frame, "inject a packet", "at")
}

/// Sends `frame` out of the interface; `emit` is the program that redirects everything to the interface it is run for.
///
/// # Errors
/// The kernel's: the interface is gone, or down.
pub(crate) fn send(emit: BorrowedFd<'_>, ifindex: u32, frame: &[u8]) -> Result<(), DatapathError> {
    run_for(emit, ifindex, frame, "send a packet", "out of")
}

fn run_for(
    program: BorrowedFd<'_>,
    ifindex: u32,
    frame: &[u8],
    deed: &str,
    place: &str,
) -> Result<(), DatapathError> {
    let mut context = [0; SKB_CONTEXT_BYTES];
    context[40..44].copy_from_slice(&ifindex.to_ne_bytes());
    let input = RunInput { context: Some(&mut context), frame: Some(frame), ..Default::default() };
    let what = || format!("cannot {deed} of {} bytes {place} interface number {ifindex}", frame.len());
    let output = run(program, input).map_err(|error| DatapathError::of(what(), BPF_CAPABILITIES, error))?;
    match output.verdict.cast_signed() {
        0 => Ok(()),
        code => Err(DatapathError::of(what(), BPF_CAPABILITIES, std::io::Error::from_raw_os_error(-code))),
    }
}
