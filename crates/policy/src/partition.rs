//! Which part of the data a target belongs to.
//!
//! Sources: Pai et al. (LARD), ASPLOS 1998, section 2.1, on partitioning a database too large for every back-end; Shen et al.
//! (fine-grain services), IPDPS 2002, section 3, on service partitions and their replicas.

use crate::request::TargetId;
use crate::rng::mix;

/// Keeps partitions apart from what policies make of the same target's hash.
const SALT: u64 = 0x7061_7274_6974_696F;

/// The partition of a target among so many, at least 1: by its hash, so that each has about the same number of targets.
#[must_use]
pub fn partition_of(target: TargetId, partitions: usize) -> usize {
    (mix(target.0 ^ SALT) % partitions as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_spread_evenly() {
        let mut counts = [0; 4];
        (0..10_000).for_each(|target| counts[partition_of(TargetId(target), 4)] += 1);
        // 2,500 each; five standard deviations are 217.
        assert!(counts.iter().all(|count: &i32| count.abs_diff(2_500) < 217), "{counts:?}");
    }

    #[test]
    fn the_partition_of_a_target_never_changes() {
        // Whoever lays data out by it finds it there later.
        let of = |path: &str| partition_of(TargetId::from_key(path.as_bytes()), 3);
        assert_eq!(["/a", "/b", "/c", "/d", "/e", "/f"].map(of), [0, 2, 1, 1, 0, 1]);
    }
}
