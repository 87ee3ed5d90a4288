//! Waiting for a time that there may not be.

use tokio::time::{Instant, sleep_until};

/// Waits until `time`; for ever without one.
pub(super) async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
