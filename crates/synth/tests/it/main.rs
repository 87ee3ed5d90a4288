//! Integration tests of the synthetic workloads.

#[cfg(test)]
mod workloads;
