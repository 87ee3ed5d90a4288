//! What is known of a log beside its requests.

/// What is known of a log beside its requests.
pub(crate) struct LogTraits {
    pub(crate) backends: usize,
    /// Groups of requests by path and parameters.
    pub(crate) groups: usize,
    pub(crate) resolution: TimeResolution,
    pub(crate) workers: Option<u32>,
}

/// To what all times so far are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeResolution {
    pub(crate) begins_ns: u64,
    pub(crate) takes_ns: u64,
}

const RESOLUTIONS_NS: [u64; 5] = [1_000_000_000, 10_000_000, 1_000_000, 1000, 1];

impl Default for TimeResolution {
    fn default() -> Self {
        Self { begins_ns: RESOLUTIONS_NS[0], takes_ns: RESOLUTIONS_NS[0] }
    }
}

/// The coarsest of some units, up to that so far, of which all times are multiples.
pub(crate) fn coarsest(so_far_ns: u64, time_ns: u64) -> u64 {
    if time_ns.is_multiple_of(so_far_ns) {
        return so_far_ns;
    }
    RESOLUTIONS_NS
        .into_iter()
        .find(|unit_ns| *unit_ns <= so_far_ns && time_ns.is_multiple_of(*unit_ns))
        .unwrap_or(1)
}
