//! Packet programs tried on frames, without sending anything.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::run::{RunInput, run};

/// Most bytes that a tried frame may have.
const LONGEST: usize = 64 * 1024;

/// Most bytes that a program puts before a frame.
const ROOM_BYTES: usize = 64;

/// What a program did with a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramTrial {
    /// What becomes of it.
    pub verdict: PacketVerdict,
    /// The frame afterwards.
    pub frame: Vec<u8>,
    /// Mean time of one run.
    pub time: Duration,
}

/// What becomes of a packet (`TC_ACT_` in `linux/pkt_cls.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketVerdict {
    /// It goes its way, past the next filter if there is one.
    Pass,
    /// It is dropped.
    Drop,
    /// It is sent out of an interface.
    Redirect,
    /// Something that our programs do not return.
    Other(u32),
}

impl PacketVerdict {
    fn of(code: u32) -> Self {
        match code {
            u32::MAX => Self::Pass,
            2 => Self::Drop,
            7 => Self::Redirect,
            other => Self::Other(other),
        }
    }
}

impl ProgramTrial {
    /// The same of a program that says what becomes of a packet in the words of XDP (`XDP_` in `linux/bpf.h`), as which it was
    /// read in those of tc.
    pub(crate) fn of_xdp(self) -> Self {
        let verdict = match self.verdict {
            PacketVerdict::Drop => PacketVerdict::Pass,
            PacketVerdict::Other(1) => PacketVerdict::Drop,
            PacketVerdict::Other(3 | 4) => PacketVerdict::Redirect,
            other => other,
        };
        Self { verdict, ..self }
    }
}

pub(crate) fn try_frame(
    program: BorrowedFd<'_>,
    frame: &[u8],
    repeat: u32,
) -> Result<ProgramTrial, DatapathError> {
    let mut after = vec![0; (frame.len() + ROOM_BYTES).min(LONGEST)];
    let input = RunInput { frame: Some(frame), frame_out: Some(&mut after), repeat, ..Default::default() };
    let output = run(program, input)
        .map_err(|error| DatapathError::of("cannot try a packet program", BPF_CAPABILITIES, error))?;
    after.truncate(output.frame_bytes);
    Ok(ProgramTrial {
        verdict: PacketVerdict::of(output.verdict),
        frame: after,
        time: Duration::from_nanos(output.nanoseconds.into()),
    })
}

/// Sends `frame` through the program of XDP `count` times as if it had arrived at interface `ifindex`, and on from there. The mean time,
/// which has that of what takes the frames in at the other end of a virtual cable.
pub(crate) fn forward_frames(
    program: BorrowedFd<'_>,
    ifindex: u32,
    frame: &[u8],
    count: u32,
) -> Result<Duration, DatapathError> {
    // `struct xdp_md`: where the frame begins and ends, metadata, interface, its queue, the other interface.
    let frame_bytes = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    let mut context = [0, frame_bytes, 0, ifindex, 0, 0].map(u32::to_ne_bytes).concat();
    let input = RunInput {
        context: Some(&mut context),
        frame: Some(frame),
        repeat: count,
        is_live: true,
        ..Default::default()
    };
    run(program, input).map(|output| Duration::from_nanos(output.nanoseconds.into())).map_err(|error| {
        DatapathError::of("cannot send frames through a packet program", BPF_CAPABILITIES, error)
    })
}
