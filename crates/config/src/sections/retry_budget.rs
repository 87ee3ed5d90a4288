//! How many retries there may be.

use crate::declare::keys;
use crate::keys::Default::Is;
use crate::keys::KeyKind::{Integer, Number};
use crate::sections::health::Permille;

keys! {
    /// How many retries there may be over all requests of the last 10 s, so that they do not multiply the load of back-ends that fail because
    /// of their load. See `limits.retries` for those of a single request.
    ["retry_budget"] pub struct RetryBudgetConfig {
        /// Retries as a share of the requests, besides one for each that is under way; with 1 there is no bound, with 0 none of both.
        "share" share_permille: u16 = Is("0.2"), Number { min: 0.0, max: 1.0 } => Permille;
        /// Retries for each second besides, so that rare requests can be retried, too.
        "least_per_s" least_per_s: u32 = Is("10"), Integer { min: 0, max: 1_000_000 };
    }
}
