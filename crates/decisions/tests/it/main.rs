//! Integration tests of the decision log.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod counterfactual;
mod damage;
mod files;
mod live;
mod replay;
mod round_trip;
