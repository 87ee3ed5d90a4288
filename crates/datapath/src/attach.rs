//! Programs at an interface: classifiers of tc's clsact, which stay there when the process ends, however it ends.

use std::os::fd::BorrowedFd;

use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcHook, TcHookBuilder};
use tracing::info;

use crate::error::{BPF_CAPABILITIES, DatapathError, NET_ADMIN};
use crate::loader::program_name;

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
    handle: u32,
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
        Self { ifindex, point, priority, handle: handle_of(instance) }
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
    pub(crate) fn attach(&self, program: BorrowedFd<'_>) -> Result<(), DatapathError> {
        let mut hook = self.hook(program);
        hook.create().map_err(|error| {
            DatapathError::of_bpf(
                format!("cannot add the clsact qdisc for {}", self.name()),
                NET_ADMIN,
                &error,
            )
        })?;
        if let Some(foreign) = self.found(program).filter(|name| !name.starts_with(OUR_PREFIX)) {
            return Err(DatapathError::Unexpected(format!(
                "{} has a filter {foreign:?} of somebody else at priority {} and handle {:#x}: give this instance \
                 another name",
                self.name(),
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

    /// Name of the program attached here. The descriptor is ignored.
    fn found(&self, any_descriptor: BorrowedFd<'_>) -> Option<String> {
        self.hook(any_descriptor).query().ok().and_then(program_name)
    }

    /// Whether a program of ours is attached here.
    pub(crate) fn is_ours(&self, any_descriptor: BorrowedFd<'_>) -> bool {
        self.found(any_descriptor).is_some_and(|name| name.starts_with(OUR_PREFIX))
    }

    /// Detaches the program here, if it is ours.
    pub(crate) fn detach(&self, any_program: BorrowedFd<'_>) -> Result<(), DatapathError> {
        if !self.is_ours(any_program) {
            return Ok(());
        }
        info!("detaching from {}", self.name());
        let detached = self.hook(any_program).detach();
        detached.map_err(|error| {
            DatapathError::of_bpf(format!("cannot detach from {}", self.name()), NET_ADMIN, &error)
        })
    }
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
