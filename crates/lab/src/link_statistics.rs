//! What became of the frames of a link.

use std::time::Duration;

/// What the emulator counted on a link since it was put in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Of the frames that the node sent.
    pub from_node: DirectionStatistics,
    /// Of the frames to the node.
    pub to_node: DirectionStatistics,
}

/// What the emulator counted in one direction. `frames + duplicated` is `delivered + lost + overflowed + undeliverable +
/// held_frames`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirectionStatistics {
    /// Frames that came.
    pub frames: u64,
    /// Their bytes, Ethernet headers included.
    pub bytes: u64,
    /// Frames that left, copies included.
    pub delivered: u64,
    /// Frames lost by chance.
    pub lost: u64,
    /// Frames lost because as many were held as may be.
    pub overflowed: u64,
    /// Frames that the kernel dropped because they came faster than the emulator could read them. They are not in `frames`.
    pub missed: u64,
    /// Frames that the kernel did not take when they were due.
    pub undeliverable: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Frames that left after one that had come later (RFC 4737).
    pub reordered: u64,
    /// Frames held now.
    pub held_frames: u64,
    /// Bytes held now.
    pub held_bytes: u64,
    /// Time from coming to leaving.
    pub delay: TimeQuantiles,
    /// Time by which frames left after they were due.
    pub lateness: TimeQuantiles,
}

/// Quantiles of times, to one per cent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeQuantiles {
    /// Half of the times are not longer.
    pub median: Duration,
    /// 90 % of the times are not longer.
    pub p90: Duration,
    /// 99 % of the times are not longer.
    pub p99: Duration,
    /// The longest.
    pub longest: Duration,
}
