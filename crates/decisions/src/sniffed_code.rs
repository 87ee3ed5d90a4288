//! The encoding of what a layer-4 front-end sees pass, and of what is measured at back-ends.

use plimsoll_policy::{BackendId, HostMetrics, Nanos, SniffedKind, SniffedRequest, TargetId};

use crate::bytes::{ByteCursor, Malformed, put_varint};

/// The kinds in the order of their codes.
const KINDS: [SniffedKind; 5] = [
    SniffedKind::Connection,
    SniffedKind::Static,
    SniffedKind::Dynamic,
    SniffedKind::Conditional,
    SniffedKind::Invalid,
];

pub(crate) fn put_sniffed(out: &mut Vec<u8>, sniffed: &SniffedRequest) {
    let SniffedRequest { backend, kind, target, class, size_bytes, round_trip } = *sniffed;
    out.push(KINDS.iter().position(|&known| known == kind).unwrap_or_default() as u8);
    put_varint(out, u64::from(backend.0));
    out.extend_from_slice(&target.0.to_le_bytes());
    put_varint(out, u64::from(class));
    put_varint(out, size_bytes.map_or(0, |size| size.saturating_add(1)));
    put_varint(out, round_trip.as_nanos());
}

pub(crate) fn read_sniffed(cursor: &mut ByteCursor<'_>) -> Result<SniffedRequest, Malformed> {
    let kind =
        KINDS.get(usize::from(cursor.byte()?)).ok_or(Malformed("a sniffed request is of no known kind"))?;
    Ok(SniffedRequest {
        kind: *kind,
        backend: BackendId(cursor.small()?),
        target: TargetId(cursor.word()?),
        class: cursor.small()?,
        size_bytes: cursor.varint()?.checked_sub(1),
        round_trip: Nanos::new(cursor.varint()?),
    })
}

pub(crate) fn put_metrics(out: &mut Vec<u8>, metrics: &HostMetrics) {
    let HostMetrics { backend, probe_time, pending, at_disk, serving_static, serving_dynamic } = *metrics;
    put_varint(out, u64::from(backend.0));
    put_varint(out, probe_time.map_or(0, |time| time.as_nanos().saturating_add(1)));
    [pending, at_disk, serving_static, serving_dynamic].iter().for_each(|&n| put_varint(out, u64::from(n)));
}

pub(crate) fn read_metrics(cursor: &mut ByteCursor<'_>) -> Result<HostMetrics, Malformed> {
    Ok(HostMetrics {
        backend: BackendId(cursor.small()?),
        probe_time: cursor.varint()?.checked_sub(1).map(Nanos::new),
        pending: cursor.small()?,
        at_disk: cursor.small()?,
        serving_static: cursor.small()?,
        serving_dynamic: cursor.small()?,
    })
}
