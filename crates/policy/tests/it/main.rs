//! Integration tests of the policies.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod capabilities;
mod passing;
mod registry;
