//! What policies that share their state have seen: the load of each size of document (AdaptLoad's two-level form).

use std::collections::BTreeMap;

use plimsoll_policy::{ClusterView, TargetId};
use plimsoll_wire::codec::{FieldError, Message, within};
use serde::{Deserialize, Serialize};

/// Sizes in a message at most: as many as a histogram can have bins.
const MOST_SIZES: usize = 65_535;

/// Bytes of a message at most: an integer takes up to 10.
pub const MOST_MESSAGE_BYTES: usize = 1 + 3 * 10 + 3 + MOST_SIZES * 2 * 10;

/// The load that a front-end has seen, by size. Fields are encoded in this order; another order is another version of the
/// handoff protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Random for each process of a front-end.
    pub instance: u64,
    /// Grows with each message of one process.
    pub number: u64,
    /// Its view of the cluster: equal if the same back-ends with the same weights take requests.
    pub cluster: u64,
    /// Largest sizes, ascending, and bytes.
    pub load: Vec<(u64, u64)>,
}

impl Message<'_> for Sizes {
    const EXCHANGE: u8 = 3;

    fn check(&self) -> Result<(), FieldError> {
        within("sizes", self.load.len(), MOST_SIZES)?;
        let ascend = self.load.is_sorted_by(|(before, _), (after, _)| before < after);
        if ascend { Ok(()) } else { Err(FieldError::Unordered { field: "sizes" }) }
    }
}

/// What takes requests, as a number: equal for those that have the same back-ends with the same weights.
#[must_use]
pub fn cluster_number(view: &ClusterView) -> u64 {
    let mut back_ends: Vec<(u64, u32)> =
        view.eligible_ids().map(|b| (view.key(b), view.weight(b).steps())).collect();
    back_ends.sort_unstable();
    let bytes: Vec<u8> = back_ends
        .iter()
        .flat_map(|(key, steps)| key.to_le_bytes().into_iter().chain(steps.to_le_bytes()))
        .collect();
    TargetId::from_key(&bytes).0
}

/// What another one has told last, and when.
#[derive(Debug, Default)]
pub struct SizesSeen(Option<(Sizes, u64)>);

impl SizesSeen {
    /// It has told this at `now_ns`; what overtook it stays.
    pub fn hear(&mut self, sizes: Sizes, now_ns: u64) {
        // A process that was started anew counts from the beginning.
        let later = |old: &Sizes| old.instance != sizes.instance || old.number <= sizes.number;
        if self.0.as_ref().is_none_or(|(old, _)| later(old)) {
            self.0 = Some((sizes, now_ns));
        }
    }

    /// What it has told last, and for how many nanoseconds that is known.
    #[must_use]
    pub fn last(&self, now_ns: u64) -> Option<(&Sizes, u64)> {
        self.0.as_ref().map(|(sizes, at_ns)| (sizes, now_ns.saturating_sub(*at_ns)))
    }

    /// `own` and what each of the others has told within `keep_ns`, added up by size. Sums of whole numbers are the same in
    /// whatever order.
    pub fn sum<'a>(
        own: &[(u64, u64)],
        others: impl IntoIterator<Item = &'a Self>,
        now_ns: u64,
        keep_ns: u64,
    ) -> Vec<(u64, u64)> {
        let mut sum: BTreeMap<u64, u64> = own.iter().copied().collect();
        for (told, age_ns) in others.into_iter().filter_map(|other| other.last(now_ns)) {
            if age_ns <= keep_ns {
                for &(size_bytes, bytes) in &told.load {
                    let all = sum.entry(size_bytes).or_default();
                    *all = all.saturating_add(bytes);
                }
            }
        }
        sum.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_wire::codec::DecodeError;

    #[test]
    fn there_and_back_and_nothing_else() {
        let load = vec![(1, 2), (300, 4), (u64::MAX, 5)];
        let sizes = Sizes { instance: 9, number: 7, cluster: u64::MAX - 1, load };
        let mut bytes = Vec::new();
        sizes.encode(&mut bytes).unwrap();
        assert_eq!(Sizes::decode(&bytes).unwrap(), sizes);
        for length in 0..bytes.len() {
            assert_eq!(Sizes::decode(&bytes[..length]), Err(DecodeError::Short), "{length}");
        }
        let mut other = bytes;
        other[0] = 1;
        assert_eq!(Sizes::decode(&other), Err(DecodeError::Exchange { found: 1, expected: 3 }));
        // No more sizes than a histogram has, each above the one before, on either side.
        let ascending = |count: u64| (0..count).map(|size| (size, 1)).collect();
        assert!(Sizes { load: ascending(65_535), ..Sizes::default() }.encode(&mut Vec::new()).is_ok());
        for wrong in [vec![(300, 1), (300, 1)], vec![(2, 1), (1, 1)], ascending(65_536)] {
            assert!(Sizes { load: wrong.clone(), ..Sizes::default() }.encode(&mut Vec::new()).is_err());
            let bytes = postcard::to_extend(&(3_u8, 9_u64, 7_u64, 5_u64, wrong), Vec::new()).unwrap();
            assert!(matches!(Sizes::decode(&bytes), Err(DecodeError::Field(_))));
        }
    }

    #[test]
    fn what_was_told_lately_adds_up() {
        let sizes =
            |number, load: &[(u64, u64)]| Sizes { instance: 1, number, cluster: 0, load: load.to_vec() };
        let (mut one, mut other) = (SizesSeen::default(), SizesSeen::default());
        one.hear(sizes(2, &[(10, 1), (20, 5)]), 100);
        one.hear(sizes(1, &[(10, 900)]), 110);
        other.hear(sizes(7, &[(20, u64::MAX)]), 50);
        let own = [(5, 3), (10, 4)];
        assert_eq!(SizesSeen::sum(&own, [&one, &other], 120, 30), [(5, 3), (10, 5), (20, 5)]);
        assert_eq!(SizesSeen::sum(&own, [&one, &other], 120, 70), [(5, 3), (10, 5), (20, u64::MAX)]);
        // Another process counts anew.
        one.hear(Sizes { instance: 2, ..sizes(1, &[(7, 7)]) }, 130);
        assert_eq!(SizesSeen::sum(&[], [&one], 130, 0), [(7, 7)]);
    }
}
