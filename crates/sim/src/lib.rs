//! Trace-driven simulation of a cluster under a policy.
