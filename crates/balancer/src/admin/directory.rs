//! What `/metrics` tells of the directory of services.

use std::fmt::Error;

use plimsoll_directory::DropReason;

use crate::directory_status::DirectoryStatus;
use plimsoll_observe::exposition::Out;

/// The state of the directory at one time.
#[derive(Debug)]
pub(super) struct DirectorySample {
    away: bool,
    replicas: u64,
    accepted: u64,
    dropped: Vec<(String, u64)>,
}

impl DirectorySample {
    pub(super) fn take(status: &DirectoryStatus) -> Self {
        let view = status.view.borrow();
        let dropped = |reason: &DropReason| (reason.to_string(), status.counts.dropped(*reason));
        Self {
            away: view.away.is_some(),
            replicas: view.replicas.len() as u64,
            accepted: status.counts.accepted(),
            dropped: DropReason::ALL.iter().map(dropped).collect(),
        }
    }

    pub(super) fn encode(&self, out: &mut Out<'_>) -> Result<(), Error> {
        out.gauge(
            "plimsoll_directory_away",
            "1 while the directory of services is away, and its last map in use",
            u64::from(self.away),
        )?;
        out.gauge("plimsoll_directory_replicas", "Replicas that the directory has told", self.replicas)?;
        out.counter("plimsoll_directory_announcements", "Announcements that were taken in", self.accepted)?;
        out.counters(
            "plimsoll_directory_announcements_dropped",
            "Announcements that were dropped, by reason",
            || self.dropped.iter().map(|(reason, count)| ([("reason", reason.as_str())], *count)),
        )
    }
}
