//! Runs programs on request, not on a packet (`BPF_PROG_TEST_RUN`).

#![allow(
    unsafe_code,
    reason = "libbpf-rs runs only programs of an object that is kept, and we keep descriptors"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libbpf_rs::libbpf_sys::{BPF_F_TEST_XDP_LIVE_FRAMES, bpf_prog_test_run_opts, bpf_test_run_opts};

/// The input of a run.
#[derive(Default)]
pub(crate) struct RunInput<'a> {
    /// Its context, which the kernel may write to.
    pub(crate) context: Option<&'a mut [u8]>,
    /// The frame.
    pub(crate) frame: Option<&'a [u8]>,
    /// Buffer for the resulting frame.
    pub(crate) frame_out: Option<&'a mut [u8]>,
    /// How often; 0 means once.
    pub(crate) repeat: u32,
    /// A program of XDP decides over frames that the kernel makes, and the kernel does with them as it decides
    /// (`BPF_F_TEST_XDP_LIVE_FRAMES`).
    pub(crate) is_live: bool,
}

/// The result of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunOutput {
    /// What the program returned.
    pub(crate) verdict: u32,
    /// Bytes of the frame afterwards.
    pub(crate) frame_bytes: usize,
    /// Mean time of one run.
    pub(crate) nanoseconds: u32,
}

/// Runs `program`.
///
/// # Errors
/// The kernel's.
pub(crate) fn run(program: BorrowedFd<'_>, input: RunInput<'_>) -> io::Result<RunOutput> {
    let RunInput { context, frame, frame_out, repeat, is_live } = input;
    let mut options = bpf_test_run_opts { sz: size_of::<bpf_test_run_opts>() as _, ..Default::default() };
    options.repeat = repeat.cast_signed();
    options.flags = if is_live { BPF_F_TEST_XDP_LIVE_FRAMES } else { 0 };
    if let Some(context) = context {
        options.ctx_in = context.as_mut_ptr().cast_const().cast();
        options.ctx_size_in = bytes(context)?;
    }
    if let Some(frame) = frame {
        options.data_in = frame.as_ptr().cast();
        options.data_size_in = bytes(frame)?;
    }
    if let Some(frame_out) = frame_out {
        options.data_out = frame_out.as_mut_ptr().cast();
        options.data_size_out = bytes(frame_out)?;
    }
    // SAFETY: every pointer in `options` is null with size 0, or comes from a slice of that size that is borrowed until
    // this function returns, mutably where the kernel writes (`context`, `frame_out`).
    let result = unsafe { bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if result != 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    Ok(RunOutput {
        verdict: options.retval,
        frame_bytes: options.data_size_out as usize,
        nanoseconds: options.duration,
    })
}

fn bytes(slice: &[u8]) -> io::Result<u32> {
    u32::try_from(slice.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}
