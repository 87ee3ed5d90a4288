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
