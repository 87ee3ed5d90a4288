//! Defines the message between peers.

use plimsoll_wire::codec::{FieldError, Message, within};
use serde::{Deserialize, Serialize};

/// Sizes in a message at most: as many as a histogram can have bins.
const MOST_SIZES: usize = 65_535;

/// Bytes of a message at most: an integer takes up to 10.
pub(super) const MOST_MESSAGE_BYTES: usize = 1 + 3 * 10 + 3 + MOST_SIZES * 2 * 10;

/// The load that a front-end has seen, by size. Fields are encoded in this order; another order is another version of the
/// handoff protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sizes {
    /// Random for each process of a front-end.
    pub(super) instance: u64,
    /// Grows with each message of one process.
    pub(super) number: u64,
    /// Its view of the cluster: equal if the same back-ends with the same weights take requests.
    pub(super) cluster: u64,
    /// Largest sizes, ascending, and bytes.
    pub(super) load: Vec<(u64, u64)>,
}

impl Message<'_> for Sizes {
    const EXCHANGE: u8 = 3;

    fn check(&self) -> Result<(), FieldError> {
        within("sizes", self.load.len(), MOST_SIZES)?;
        let ascend = self.load.is_sorted_by(|(before, _), (after, _)| before < after);
        if ascend { Ok(()) } else { Err(FieldError::Unordered { field: "sizes" }) }
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
}
