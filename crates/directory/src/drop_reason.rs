//! Why announcements are dropped, and how many.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why an announcement is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DropReason {
    /// It is not one of ours, or of another version.
    #[error("foreign")]
    Foreign,
    /// Its end is missing.
    #[error("truncated")]
    Truncated,
    /// It is longer than it says or than any may be.
    #[error("oversized")]
    Oversized,
    /// Nobody who has the key has written it so.
    #[error("forged")]
    Forged,
    /// Its contents break the rules.
    #[error("malformed")]
    Malformed,
    /// It is too old, or from an earlier process of its node; or the clocks differ.
    #[error("stale")]
    Stale,
    /// It, or a later one, has been heard.
    #[error("replayed")]
    Replayed,
    /// There is no room for it.
    #[error("full")]
    Full,
    /// Its sender says too much.
    #[error("rate")]
    Rate,
}

impl DropReason {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Foreign,
        Self::Truncated,
        Self::Oversized,
        Self::Forged,
        Self::Malformed,
        Self::Stale,
        Self::Replayed,
        Self::Full,
        Self::Rate,
    ];
}

/// How many announcements were taken, and dropped by reason.
#[derive(Debug, Default)]
pub struct AnnouncementCounts {
    accepted: AtomicU64,
    dropped: [AtomicU64; DropReason::ALL.len()],
}

impl AnnouncementCounts {
    /// Counts one.
    pub fn count<T>(&self, outcome: &Result<T, DropReason>) {
        let counter = match outcome {
            Ok(_) => &self.accepted,
            Err(reason) => &self.dropped[*reason as usize],
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Those that were taken.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Those that were dropped for this reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize].load(Ordering::Relaxed)
    }
}
