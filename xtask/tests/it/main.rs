//! What of the repository itself is more than text.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod pgo;
