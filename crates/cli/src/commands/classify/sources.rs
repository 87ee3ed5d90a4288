//! Where durations come from.

/// Where the durations come from.
#[derive(Debug, Default)]
pub(super) struct DurationSources {
    /// Requests with a time of the back-end alone.
    pub(super) of_backend: u64,
    /// Requests with a time of the whole request only.
    pub(super) of_request: u64,
    /// Requests with other statuses than 200 to 299.
    pub(super) not_successful: u64,
    /// Measured, not from a log.
    pub(super) live: bool,
}
