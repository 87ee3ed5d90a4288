//! Integration tests of the report crate.

mod bottleneck;
mod data;
mod golden;
mod page;
mod sample;
mod sample_claims;
mod text;
