//! Integration tests of the trace crate: one binary.

mod synth;
