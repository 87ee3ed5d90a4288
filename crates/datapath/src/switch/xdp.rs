//! An XDP program at an interface. It stays there when the process ends, however it ends.

use std::os::fd::BorrowedFd;

use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Xdp, XdpFlags};
use tracing::info;

use crate::error::{BPF_CAPABILITIES, DatapathError};

/// The beginning of our programs' names.
const OUR_PREFIX: &str = "plimsoll_";

fn attached(program: BorrowedFd<'_>, ifindex: u32) -> Option<u32> {
    Xdp::new(program).query_id(ifindex.cast_signed(), XdpFlags::NONE).ok().filter(|&id| id != 0)
}

fn is_ours(id: u32) -> bool {
    let found = ProgInfoIter::default().find(|found| found.id == id);
    found.is_some_and(|found| found.name.to_string_lossy().starts_with(OUR_PREFIX))
}

/// An XDP program at an interface.
#[derive(Debug, Clone, Copy)]
pub(super) struct XdpPlace {
    ifindex: u32,
    /// The program's number.
    id: Option<u32>,
}

/// Attaches `program` where the driver runs it (not in the kernel's emulation), in place of an earlier one of ours.
pub(super) fn attach(program: BorrowedFd<'_>, ifindex: u32) -> Result<XdpPlace, DatapathError> {
    let what = format!("cannot attach an XDP program to interface number {ifindex}");
    if attached(program, ifindex).is_some_and(|id| !is_ours(id)) {
        return Err(DatapathError::Unexpected(format!(
            "{what}: it has one of somebody else. Attach by tc, or remove the other (`ip link set dev ... xdp off`)"
        )));
    }
    Xdp::new(program)
        .attach(ifindex.cast_signed(), XdpFlags::DRV_MODE)
        .map_err(|error| DatapathError::of_bpf(what, BPF_CAPABILITIES, &error))?;
    Ok(XdpPlace { ifindex, id: attached(program, ifindex) })
}

/// Detaches what an earlier instance has left there. For a process that may look at all programs.
pub(super) fn detach_leftover(program: BorrowedFd<'_>, ifindex: u32) -> Result<(), DatapathError> {
    let id = attached(program, ifindex).filter(|&id| is_ours(id));
    if id.is_none() { Ok(()) } else { (XdpPlace { ifindex, id }).detach(program) }
}

impl XdpPlace {
    /// Detaches the program, if it is still there.
    pub(super) fn detach(&self, program: BorrowedFd<'_>) -> Result<(), DatapathError> {
        if attached(program, self.ifindex) != self.id {
            return Ok(());
        }
        info!("detaching the XDP program from interface number {}", self.ifindex);
        Xdp::new(program).detach(self.ifindex.cast_signed(), XdpFlags::DRV_MODE).map_err(|error| {
            let what = format!("cannot detach the XDP program from interface number {}", self.ifindex);
            DatapathError::of_bpf(what, BPF_CAPABILITIES, &error)
        })
    }
}
