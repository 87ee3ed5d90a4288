//! Times that several files of this mechanism share.

use std::time::Duration;

use crate::worker::Worker;

/// How long the front-end keeps forwarding packets of a connection that is over, and the pause before it looks again at a
/// client that was not quiet.
pub(super) const LINGER: Duration = Duration::from_secs(2);

/// How long a client has to be quiet before its flow is forgotten or the client is reset.
pub(super) const QUIET: Duration = Duration::from_secs(1);

/// Replaces [`QUIET`] where less is enough: when the front-end stops, and when the agent of a flow that an earlier process left
/// has offered all its connections. Not zero, as the kernel beside a dead agent may still send what that agent left.
pub(super) const SHORT_QUIET: Duration = Duration::from_millis(200);

/// The times that are configured, when a reload has removed the section.
pub(super) const DEFAULT_TAKE_OVER: Duration = Duration::from_millis(500);
const DEFAULT_LINK_TIMEOUT: Duration = Duration::from_millis(1500);
pub(super) const DEFAULT_LOST_GRACE: Duration = Duration::from_millis(1250);

/// How long an agent may be silent before its link is given up.
pub(super) fn link_timeout(worker: &Worker) -> Duration {
    worker.config().handoff.as_ref().map_or(DEFAULT_LINK_TIMEOUT, |h| h.link_timeout)
}
