//! Files that may still stand in a circle. The list only gets shorter.

pub(super) const IN_CIRCLES: &[&str] = &[
    "crates/balancer/src/mechanism/handoff/leaving.rs",
    "crates/balancer/src/mechanism/handoff/link.rs",
    "crates/balancer/src/mechanism/handoff/messages.rs",
    "crates/balancer/src/mechanism/handoff/mod.rs",
    "crates/balancer/src/mechanism/handoff/recover.rs",
    "crates/balancer/src/mechanism/handoff/registry.rs",
    "crates/balancer/src/mechanism/handoff/system.rs",
    "crates/balancer/src/mechanism/handoff/table.rs",
];
