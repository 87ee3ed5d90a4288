//! Programs at an interface: classifiers of tc's clsact, which stay there when the process ends, however it ends.

use std::os::fd::BorrowedFd;

use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcHook, TcHookBuilder};
use tracing::info;

use crate::error::{BPF_CAPABILITIES, DatapathError, NET_ADMIN};
use crate::filters::{InterfaceFilter, filters_at};

/// Where packets meet a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttachPoint {
    /// Arriving packets.
    Ingress,
    /// Departing packets.
    Egress,
}

/// A filter's place at an interface; belongs to one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterPlace {
    pub(crate) ifindex: u32,
    pub(crate) point: AttachPoint,
    /// Among the filters of an interface: smaller ones come first.
    pub(crate) priority: u32,
    /// Without [`OUR_QDISC`].
    handle: u32,
}

/// A bit of the handles of filters whose qdisc is there only for us. It outlives the process, and so tells whoever detaches the
/// last filter that the qdisc goes too.
const OUR_QDISC: u32 = 1 << 31;

/// Prefix of our programs' names, which tells them from others.
const OUR_PREFIX: &str = "plimsoll_";

/// A number from the instance's name (FNV-1a), never 0 and without [`OUR_QDISC`], that keeps instances on one interface apart.
fn handle_of(instance: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    (instance.bytes().fold(0x811c_9dc5, step) & !OUR_QDISC) | 1
}

impl FilterPlace {
    pub(crate) fn new(instance: &str, ifindex: u32, point: AttachPoint, priority: u32) -> Self {
        Self { ifindex, point, priority, handle: handle_of(instance) }
    }

    fn hook(&self, program: BorrowedFd<'_>, handle: u32) -> TcHook {
        let point = match self.point {
            AttachPoint::Ingress => TC_INGRESS,
            AttachPoint::Egress => TC_EGRESS,
        };
        TcHookBuilder::new(program)
            .ifindex(self.ifindex.cast_signed())
            .replace(true)
            .handle(handle)
            .priority(self.priority)
            .hook(point)
    }

    fn name(&self) -> String {
        format!("tc {:?} of interface number {}", self.point, self.ifindex).to_lowercase()
    }

    /// Attaches `program` here, atomically replacing that of an earlier instance.
    pub(crate) fn attach(&self, program: BorrowedFd<'_>) -> Result<(), DatapathError> {
        let before = filters_at(self.ifindex)?;
        self.hook(program, self.handle).create().map_err(|error| {
            DatapathError::of_bpf(
                format!("cannot add the clsact qdisc for {}", self.name()),
                NET_ADMIN,
                &error,
            )
        })?;
        let is_new = before.is_none();
        let before = before.unwrap_or_default();
        let handle = match before.iter().find(|filter| self.is_place_of(filter)) {
            Some(foreign) if !is_ours(foreign) => {
                return Err(DatapathError::Unexpected(format!(
                    "{} has a filter {:?} of somebody else at priority {} and handle {:#x}: give this instance \
                     another name",
                    self.name(),
                    foreign.name,
                    self.priority,
                    foreign.handle
                )));
            }
            Some(earlier) => earlier.handle,
            None if is_new || before.iter().any(|other| is_ours(other) && has_our_qdisc(other)) => {
                self.handle | OUR_QDISC
            }
            None => self.handle,
        };
        self.hook(program, handle).attach().map_err(|error| {
            let what = format!("cannot attach to {}", self.name());
            DatapathError::of_bpf(what, BPF_CAPABILITIES, &error)
        })?;
        Ok(())
    }

    fn is_place_of(&self, filter: &InterfaceFilter) -> bool {
        filter.is_ingress == (self.point == AttachPoint::Ingress)
            && (filter.priority, filter.handle & !OUR_QDISC) == (self.priority, self.handle)
    }

    /// The filter here, if it is ours.
    fn found(&self) -> Result<Option<InterfaceFilter>, DatapathError> {
        let mut filters = filters_at(self.ifindex)?.unwrap_or_default().into_iter();
        Ok(filters.find(|filter| self.is_place_of(filter) && is_ours(filter)))
    }

    /// Whether a program of ours is attached here.
    pub(crate) fn is_ours(&self) -> bool {
        self.found().is_ok_and(|found| found.is_some())
    }

    /// Detaches the program here, if it is ours, and removes the qdisc that was made for it, once nobody has a filter there.
    pub(crate) fn detach(&self, any_program: BorrowedFd<'_>) -> Result<(), DatapathError> {
        let Some(found) = self.found()? else { return Ok(()) };
        info!("detaching from {}", self.name());
        let mut hook = self.hook(any_program, found.handle);
        hook.detach().map_err(|error| {
            DatapathError::of_bpf(format!("cannot detach from {}", self.name()), NET_ADMIN, &error)
        })?;
        if has_our_qdisc(&found) && filters_at(self.ifindex)?.is_some_and(|left| left.is_empty()) {
            let removed = hook.attach_point(TC_INGRESS | TC_EGRESS).destroy();
            removed.map_err(|error| {
                let what = format!("cannot remove the clsact qdisc for {}", self.name());
                DatapathError::of_bpf(what, NET_ADMIN, &error)
            })?;
        }
        Ok(())
    }
}

fn is_ours(filter: &InterfaceFilter) -> bool {
    filter.name.starts_with(OUR_PREFIX)
}

fn has_our_qdisc(filter: &InterfaceFilter) -> bool {
    filter.handle & OUR_QDISC != 0
}

#[cfg(test)]
mod tests {
    use super::handle_of;

    #[test]
    fn instances_have_handles_of_their_own() {
        assert_ne!(handle_of("front-1"), handle_of("front-2"));
        assert_eq!(handle_of("front-1"), handle_of("front-1"));
        assert_ne!(handle_of(""), 0);
    }
}
