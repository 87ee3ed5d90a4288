//! Units of the published figures.

/// Bytes of a "MB" in the figures: 2²⁰, the unit in which memory, and so the papers' caches of
/// 32 MB, is counted.
pub(crate) const MIB: f64 = 1_048_576.0;
