//! Parts of the data: which one a request is for, and which ones a back-end holds.

use plimsoll_config::{Config, PartitionBy};
use plimsoll_policy::{TargetId, partition_of};

/// How requests follow partitions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Partitioning {
    count: u16,
    pub(crate) by: PartitionBy,
}

impl Partitioning {
    /// The one that the configuration asks for; `None` where each back-end can answer each request.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        let partitions = config.partitions.as_ref()?;
        let count = u16::try_from(partitions.count).unwrap_or(u16::MAX).min(PartitionSet::MOST);
        (count > 1).then_some(Self { count, by: partitions.by })
    }

    /// How many partitions there are.
    pub(crate) fn count(self) -> u16 {
        self.count
    }

    /// The partition of a target whose identity has no secret in it, so that whoever lays data out finds the same.
    pub(crate) fn partition_of(self, target: TargetId) -> u16 {
        // Below the count.
        partition_of(target, usize::from(self.count)) as u16
    }
}

/// A path up to its second slash, without the query: what `segment` goes by.
pub(crate) fn first_segment(path_query: &[u8]) -> &[u8] {
    let ends = |(at, &byte): (usize, &u8)| (byte == b'?' || byte == b'/' && at > 0).then_some(at);
    let end = path_query.iter().enumerate().find_map(ends);
    &path_query[..end.unwrap_or(path_query.len())]
}

/// Partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartitionSet(u64);

impl PartitionSet {
    /// The most partitions.
    pub(crate) const MOST: u16 = 64;
    /// All of them, however many there are.
    pub(crate) const ALL: Self = Self(u64::MAX);
    /// None of them.
    pub(crate) const NONE: Self = Self(0);

    /// These; numbers that there cannot be are left out.
    pub(crate) fn of(partitions: impl IntoIterator<Item = u16>) -> Self {
        let bits = partitions.into_iter().filter(|&partition| partition < Self::MOST);
        Self(bits.fold(0, |set, partition| set | 1 << partition))
    }

    /// Those that a back-end of the configuration holds: all, where it names none.
    pub(crate) fn held(named: &[u16]) -> Self {
        if named.is_empty() { Self::ALL } else { Self::of(named.iter().copied()) }
    }

    /// Whether this one is among them.
    pub(crate) fn has(self, partition: u16) -> bool {
        partition < Self::MOST && self.0 >> partition & 1 == 1
    }

    /// Those of either.
    #[must_use]
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of both.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those below `count`.
    #[must_use]
    pub(crate) fn below(self, count: u16) -> Self {
        if count >= Self::MOST { self } else { Self(self.0 & ((1 << count) - 1)) }
    }

    /// How many they are.
    pub(crate) fn len(self) -> u32 {
        self.0.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_segment() {
        for (path, segment) in [
            ("/alice/photo.jpg?size=2", "/alice"),
            ("/alice?a/b", "/alice"),
            ("/alice", "/alice"),
            ("/", "/"),
            ("//a", "/"),
            ("*", "*"),
            ("", ""),
        ] {
            assert_eq!(first_segment(path.as_bytes()), segment.as_bytes(), "{path}");
        }
    }

    #[test]
    fn sets_of_partitions() {
        let set = PartitionSet::of([0, 63, 64, 1000]);
        assert_eq!([0, 1, 63, 64, 1000].map(|p| set.has(p)), [true, false, true, false, false]);
        assert_eq!((set.len(), set.below(63).len(), set.below(64).len()), (2, 1, 2));
        assert_eq!(PartitionSet::held(&[]), PartitionSet::ALL);
        assert_eq!(PartitionSet::held(&[2]).with(PartitionSet::of([1])), PartitionSet::of([1, 2]));
    }
}
