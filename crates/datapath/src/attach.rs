//! Programs at an interface: classifiers of tc's clsact, which stay there when the process ends, however it ends.

use std::os::fd::BorrowedFd;

use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcHook, TcHookBuilder};
use tracing::{info, warn};

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
#[derive(Debug, Clone)]
pub(crate) struct FilterPlace {
    pub(crate) ifindex: u32,
    pub(crate) point: AttachPoint,
    /// Among the filters of an interface: smaller ones come first.
    pub(crate) priority: u32,
    handle: u32,
    /// Whether the interface's clsact qdisc is there only for us.
    has_made_qdisc: bool,
}

/// Prefix of our programs' names, which tells them from others.
const OUR_PREFIX: &str = "plimsoll_";

/// A number from the instance's name (FNV-1a), never 0, that keeps instances on one interface apart.
fn handle_of(instance: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    (instance.bytes().fold(0x811c_9dc5, step) & 0x7fff_ffff) | 1
}

impl FilterPlace {
    pub(crate) fn new(instance: &str, ifindex: u32, point: AttachPoint, priority: u32) -> Self {
        Self { ifindex, point, priority, handle: handle_of(instance), has_made_qdisc: false }
    }

    fn hook(&self, program: BorrowedFd<'_>) -> TcHook {
        let point = match self.point {
            AttachPoint::Ingress => TC_INGRESS,
            AttachPoint::Egress => TC_EGRESS,
        };
        TcHookBuilder::new(program)
            .ifindex(self.ifindex.cast_signed())
            .replace(true)
            .handle(self.handle)
            .priority(self.priority)
            .hook(point)
    }

    fn name(&self) -> String {
        format!("tc {:?} of interface number {}", self.point, self.ifindex).to_lowercase()
    }

    /// Attaches `program` here, atomically replacing that of an earlier instance.
    pub(crate) fn attach(&mut self, program: BorrowedFd<'_>) -> Result<(), DatapathError> {
        let mut hook = self.hook(program);
        let before = filters_at(self.ifindex);
        hook.create().map_err(|error| {
            DatapathError::of_bpf(
                format!("cannot add the clsact qdisc for {}", self.name()),
                NET_ADMIN,
                &error,
            )
        })?;
        // Made just now, or by instances whose filters are all that it has.
        let alone = |filters: Vec<InterfaceFilter>| !filters.is_empty() && filters.iter().all(is_ours);
        self.has_made_qdisc = before.is_ok_and(|before| before.is_none_or(alone));
        if let Some(foreign) = self.found().filter(|found| !is_ours(found)) {
            return Err(DatapathError::Unexpected(format!(
                "{} has a filter {:?} of somebody else at priority {} and handle {:#x}: give this instance \
                 another name",
                self.name(),
                foreign.name,
                self.priority,
                self.handle
            )));
        }
        hook.attach().map_err(|error| {
            let what = format!("cannot attach to {}", self.name());
            DatapathError::of_bpf(what, BPF_CAPABILITIES, &error)
        })?;
        Ok(())
    }

    /// The filter here.
    fn found(&self) -> Option<InterfaceFilter> {
        let is_here = |filter: &InterfaceFilter| {
            filter.is_ingress == (self.point == AttachPoint::Ingress)
                && (filter.priority, filter.handle) == (self.priority, self.handle)
        };
        filters_at(self.ifindex).ok().flatten()?.into_iter().find(is_here)
    }

    /// Whether a program of ours is attached here.
    pub(crate) fn is_ours(&self) -> bool {
        self.found().as_ref().is_some_and(is_ours)
    }

    /// Detaches the program here, if it is ours, and removes the qdisc that was made for it, once nobody has a filter there.
    pub(crate) fn detach(&self, any_program: BorrowedFd<'_>) -> Result<(), DatapathError> {
        if !self.is_ours() {
            return Ok(());
        }
        info!("detaching from {}", self.name());
        let detached = self.hook(any_program).detach();
        detached.map_err(|error| {
            DatapathError::of_bpf(format!("cannot detach from {}", self.name()), NET_ADMIN, &error)
        })?;
        if self.has_made_qdisc && is_empty(self.ifindex) {
            let removed = self.hook(any_program).attach_point(TC_INGRESS | TC_EGRESS).destroy();
            // Programs are detached, which is what matters.
            let _ = removed.inspect_err(|error| warn!("the clsact qdisc of {} stays: {error}", self.name()));
        }
        Ok(())
    }
}

/// Whether an interface has a clsact qdisc without filters.
fn is_empty(ifindex: u32) -> bool {
    matches!(filters_at(ifindex), Ok(Some(left)) if left.is_empty())
}

fn is_ours(filter: &InterfaceFilter) -> bool {
    filter.name.starts_with(OUR_PREFIX)
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
