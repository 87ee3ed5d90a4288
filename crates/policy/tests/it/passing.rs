//! Requests that pass, and metrics of back-ends, from drawn numbers.

use plimsoll_policy::{BackendId, HostMetrics, Nanos, SniffedKind, SniffedRequest, TargetId};

/// A request on its way to `backend`, of the kind with this number.
pub(crate) fn sniffed(backend: BackendId, kind: u8, of: u64) -> SniffedRequest {
    use SniffedKind::{Conditional, Connection, Dynamic, Invalid, Static};
    SniffedRequest {
        backend,
        kind: [Connection, Static, Dynamic, Conditional, Invalid][usize::from(kind)],
        target: TargetId(of % 40),
        class: (of % 7) as u16,
        size_bytes: of.is_multiple_of(3).then_some(of >> 40),
        round_trip: Nanos::new(of >> 34),
    }
}

/// Metrics of a back-end with so many connections that wait.
pub(crate) fn metrics(backend: BackendId, pending: u32) -> HostMetrics {
    let probe_time = pending.is_multiple_of(2).then_some(Nanos::from_millis(pending.into()));
    HostMetrics { backend, probe_time, pending, at_disk: 1, serving_static: 2, serving_dynamic: 3 }
}
