//! A kind of request, what it costs, and how the kind of a request is drawn.

use plimsoll_policy::Rng;

/// Requests of one kind. Costs of single requests deviate by up to 20 %.
pub(crate) struct RequestKind {
    pub(crate) name: &'static str,
    /// Share of all requests.
    pub(crate) share: f64,
    /// Mean CPU time in seconds.
    pub(crate) cpu_s: f64,
    /// Mean time of disk accesses in seconds.
    pub(crate) disk_s: f64,
    /// Bytes of an answer.
    pub(crate) answer_bytes: usize,
    /// Whether it is computed, and no document.
    pub(crate) is_dynamic: bool,
}

/// The mean over all requests of what `part` says of their kind.
pub(crate) fn mean(kinds: &[RequestKind], part: impl Fn(&RequestKind) -> f64) -> f64 {
    kinds.iter().map(|kind| kind.share * part(kind)).sum()
}

/// The place among `kinds` of request `number` of the run with this seed, and which of `documents` of that kind it asks for.
pub(crate) fn draw(kinds: &[RequestKind], documents: u64, seed: u64, number: u64) -> (usize, u64) {
    let mut rng = Rng::new(seed, number);
    let mut left = rng.unit();
    let kind = kinds.iter().position(|kind| {
        left -= kind.share;
        left < 0.0
    });
    // Few are asked for often, many rarely.
    (kind.unwrap_or(0), (documents as f64 * rng.unit() * rng.unit()) as u64)
}
