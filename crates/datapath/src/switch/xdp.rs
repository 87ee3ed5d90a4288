//! An XDP program at an interface. It stays there when the process ends, however it ends.

use std::os::fd::BorrowedFd;

use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
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

/// Whether the program of this number is ours, and uses the map of that number.
fn uses(id: u32, map_id: u32) -> bool {
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let found = ProgInfoIter::with_query_opts(options).find(|found| found.id == id);
    found.is_some_and(|found| {
        found.name.to_string_lossy().starts_with(OUR_PREFIX) && found.map_ids.contains(&map_id)
    })
}

/// Detaches what an earlier process of the instance with the map of this number has left there. For a process that may look at all
/// programs.
pub(super) fn detach_leftover(
    program: BorrowedFd<'_>,
    ifindex: u32,
    map_id: u32,
) -> Result<(), DatapathError> {
    let id = attached(program, ifindex).filter(|&id| uses(id, map_id));
    if id.is_none() { Ok(()) } else { (XdpPlace { ifindex, id }).detach(program) }
}

impl XdpPlace {
    pub(super) fn is_at(&self, ifindex: u32) -> bool {
        self.ifindex == ifindex
    }

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
