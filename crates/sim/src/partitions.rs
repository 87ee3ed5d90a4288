//! Parts of the targets that only some back-ends host: a request for a target may only go to a back-end that hosts its partition,
//! whatever the policy.
//!
//! Sources: Pai et al. (LARD), ASPLOS 1998, section 2.1, on partitioning a database too large for every back-end; Shen et al.
//! (fine-grain services), IPDPS 2002, section 3, on service partitions and their replicas.

use plimsoll_policy::{BackendId, TargetId, partition_of};

/// Partitions and their back-ends, as a scenario gives them for any number of back-ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PartitionPlan {
    /// Every back-end hosts every target.
    #[default]
    Whole,
    /// So many partitions: back-end b hosts partition b modulo their number.
    InTurn(u16),
    /// The back-ends of each partition.
    Listed(Vec<Vec<u16>>),
}

/// Why partitions do not fit a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// More partitions than back-ends, or none.
    #[error("there are 1 to {backends} partitions for {backends} back-ends, not {partitions}")]
    Count {
        /// As given.
        partitions: usize,
        /// How many back-ends there are.
        backends: usize,
    },
    /// A partition without a back-end.
    #[error("partition {0} is hosted by no back-end; give each partition at least one, such as 0-3/4-7")]
    Empty(usize),
    /// A back-end that does not exist.
    #[error(
        "partition {partition} names back-end {backend}, but there are only {backends} (numbered from 0)"
    )]
    NoSuchBackend {
        /// The partition.
        partition: usize,
        /// As named.
        backend: u16,
        /// How many there are.
        backends: usize,
    },
    /// A back-end that would never get a request.
    #[error("back-end {0} hosts no partition; name it in one of them")]
    Idle(usize),
}

impl PartitionPlan {
    /// The partitions of a cluster of so many back-ends.
    ///
    /// # Errors
    /// When they do not fit it.
    pub fn on(&self, backends: usize) -> Result<Partitions, PartitionError> {
        let listed = match self {
            Self::Whole => return Ok(Partitions::default()),
            Self::InTurn(count) if (1..=backends).contains(&usize::from(*count)) => {
                let count = usize::from(*count);
                let of = |partition| (partition..backends).step_by(count);
                return Ok(Partitions::of((0..count).map(of), backends));
            }
            Self::InTurn(count) => {
                return Err(PartitionError::Count { partitions: usize::from(*count), backends });
            }
            Self::Listed(listed) => listed,
        };
        let hosted = |backend: usize| listed.iter().flatten().any(|&b| usize::from(b) == backend);
        for (partition, hosts) in listed.iter().enumerate() {
            if hosts.is_empty() {
                return Err(PartitionError::Empty(partition));
            }
            if let Some(&backend) = hosts.iter().find(|&&b| usize::from(b) >= backends) {
                return Err(PartitionError::NoSuchBackend { partition, backend, backends });
            }
        }
        match (0..backends).find(|&b| !hosted(b)) {
            _ if listed.is_empty() => Err(PartitionError::Count { partitions: 0, backends }),
            Some(idle) => Err(PartitionError::Idle(idle)),
            None => {
                Ok(Partitions::of(listed.iter().map(|hosts| hosts.iter().map(|&b| usize::from(b))), backends))
            }
        }
    }
}

/// Which back-ends host which partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitions {
    /// By partition and back-end; one empty row where every back-end hosts everything.
    hosts: Vec<Vec<bool>>,
}

impl Default for Partitions {
    fn default() -> Self {
        Self { hosts: vec![Vec::new()] }
    }
}

impl Partitions {
    fn of(partitions: impl Iterator<Item = impl Iterator<Item = usize>>, backends: usize) -> Self {
        let row = |hosts: &mut dyn Iterator<Item = usize>| {
            let mut row = vec![false; backends];
            hosts.for_each(|b| row[b] = true);
            row
        };
        Self { hosts: partitions.map(|mut hosts| row(&mut hosts)).collect() }
    }

    /// How many there are, at least 1.
    #[must_use]
    #[inline]
    pub fn count(&self) -> usize {
        self.hosts.len()
    }

    /// The partition of a target ([`partition_of`]).
    #[must_use]
    pub fn of_target(&self, target: TargetId) -> usize {
        partition_of(target, self.hosts.len())
    }

    /// Whether a back-end hosts a partition.
    #[must_use]
    pub fn hosts(&self, partition: usize, b: BackendId) -> bool {
        self.hosts[partition].get(b.index()).copied().unwrap_or(true)
    }

    /// Whether a back-end hosts several of them.
    #[must_use]
    pub fn overlap(&self) -> bool {
        let backends = self.hosts.first().map_or(0, Vec::len);
        (0..backends).any(|b| self.hosts.iter().filter(|row| row[b]).count() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosted(partitions: &Partitions, backends: usize) -> Vec<Vec<usize>> {
        let of = |p| (0..backends).filter(|&b| partitions.hosts(p, BackendId::new(b))).collect();
        (0..partitions.count()).map(of).collect()
    }

    #[test]
    fn back_ends_host_partitions_in_turn_or_as_listed() {
        assert_eq!(hosted(&PartitionPlan::Whole.on(3).unwrap(), 3), [[0, 1, 2]]);
        let in_turn = PartitionPlan::InTurn(2).on(5).unwrap();
        assert_eq!(hosted(&in_turn, 5), [vec![0, 2, 4], vec![1, 3]]);
        assert!(!in_turn.overlap());
        let listed = PartitionPlan::Listed(vec![vec![0, 1], vec![1, 2]]).on(3).unwrap();
        assert_eq!(hosted(&listed, 3), [[0, 1], [1, 2]]);
        assert!(listed.overlap());
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let error = |plan: PartitionPlan| plan.on(3).unwrap_err();
        let listed = |hosts: &[&[u16]]| PartitionPlan::Listed(hosts.iter().map(|h| h.to_vec()).collect());
        assert_eq!(error(PartitionPlan::InTurn(4)), PartitionError::Count { partitions: 4, backends: 3 });
        assert_eq!(error(PartitionPlan::InTurn(0)), PartitionError::Count { partitions: 0, backends: 3 });
        assert_eq!(error(listed(&[])), PartitionError::Count { partitions: 0, backends: 3 });
        assert_eq!(error(listed(&[&[0, 1, 2], &[]])), PartitionError::Empty(1));
        let wrong = PartitionError::NoSuchBackend { partition: 0, backend: 3, backends: 3 };
        assert_eq!(error(listed(&[&[3], &[0, 1, 2]])), wrong);
        assert_eq!(error(listed(&[&[0], &[2]])), PartitionError::Idle(1));
    }
}
