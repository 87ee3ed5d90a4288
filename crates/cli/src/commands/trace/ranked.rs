//! Targets by falling number of requests, and curves over them.

use plimsoll_trace::Trace;

/// A target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ranked {
    /// Number of the target in the trace.
    pub(super) id: u32,
    /// Number of requests for it.
    pub(super) requests: u64,
    /// Size of its document in bytes.
    pub(super) size_bytes: u64,
    /// Requests for it and for those before it.
    pub(super) requests_so_far: u64,
    /// Bytes of it and of those before it.
    pub(super) bytes_so_far: u64,
}

/// The targets of a trace by falling number of requests, among equals the first in the trace first.
pub(super) fn ranked(trace: &Trace) -> Vec<Ranked> {
    let targets = &trace.targets;
    let mut all: Vec<Ranked> = (0..targets.len() as u32)
        .map(|id| Ranked {
            id,
            requests: targets.requests(id),
            size_bytes: targets.document_size_bytes(id),
            requests_so_far: 0,
            bytes_so_far: 0,
        })
        .filter(|target| target.requests > 0)
        .collect();
    all.sort_by_key(|target| std::cmp::Reverse(target.requests));
    let (mut requests, mut bytes) = (0, 0u64);
    for target in &mut all {
        requests += target.requests;
        bytes = bytes.saturating_add(target.size_bytes);
        (target.requests_so_far, target.bytes_so_far) = (requests, bytes);
    }
    all
}

/// About `wanted` of the places 0 to `len - 1` in rising order, the first and the last among them: evenly apart, or
/// evenly apart on a logarithmic scale.
pub(super) fn places(len: usize, wanted: usize, log: bool) -> Vec<usize> {
    let Some(last) = len.checked_sub(1) else {
        return Vec::new();
    };
    if len <= wanted {
        return (0..len).collect();
    }
    let mut places: Vec<usize> = (0..wanted)
        .map(|step| {
            let share = step as f64 / (wanted - 1) as f64;
            let place = if log { (len as f64).powf(share) - 1.0 } else { share * last as f64 };
            (place.round() as usize).min(last)
        })
        .collect();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_reach_both_ends() {
        assert_eq!(places(0, 10, false), [0usize; 0]);
        assert_eq!(places(3, 10, true), [0, 1, 2]);
        assert_eq!(places(101, 5, false), [0, 25, 50, 75, 100]);
        assert_eq!(places(10_000, 5, true), [0, 9, 99, 999, 9_999]);
        let many = places(1_000_000, 400, true);
        assert!(many.is_sorted() && many.len() > 200);
        assert_eq!(many.last(), Some(&999_999));
    }
}
