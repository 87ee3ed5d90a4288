//! Integration tests of the report crate.

mod sample;
mod sample_claims;
