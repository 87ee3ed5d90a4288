//! Defines the message between peers, and its encoding in the frames of a link.

use plimsoll_wire::codec::{DecodeError, Message, TooLong};

/// The kind of the message, which no message between front-end and agent has; another form gets another kind.
const SIZES: u8 = 130;
/// Sizes in a message at most: as many as a histogram can have bins.
const MOST_SIZES: usize = 65_535;
const HEADER_BYTES: usize = 1 + 8 + 8 + 8 + 4;
const ENTRY_BYTES: usize = 16;

/// The load that a front-end has seen, by size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let count = self.load.len();
        if count > MOST_SIZES {
            let (bytes, most) = (count * ENTRY_BYTES, MOST_SIZES * ENTRY_BYTES);
            return Err(TooLong { field: "sizes", bytes, most });
        }
        out.push(SIZES);
        out.extend_from_slice(&self.instance.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.cluster.to_le_bytes());
        out.extend_from_slice(&u32::try_from(count).unwrap_or(0).to_le_bytes());
        for (size_bytes, bytes) in &self.load {
            out.extend_from_slice(&size_bytes.to_le_bytes());
            out.extend_from_slice(&bytes.to_le_bytes());
        }
        Ok(())
    }

    fn decode_first(bytes: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        match bytes.first() {
            Some(&SIZES) => {}
            Some(&kind) => return Err(DecodeError::Kind(kind)),
            None => return Err(DecodeError::Short),
        }
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES).ok_or(DecodeError::Short)?;
        let count = u32::from_le_bytes(*header.last_chunk().ok_or(DecodeError::Short)?) as usize;
        if count > MOST_SIZES {
            let (bytes, most) = (count.saturating_mul(ENTRY_BYTES), MOST_SIZES * ENTRY_BYTES);
            return Err(TooLong { field: "sizes", bytes, most }.into());
        }
        let (entries, rest) = rest.split_at_checked(count * ENTRY_BYTES).ok_or(DecodeError::Short)?;
        let mut load: Vec<(u64, u64)> = Vec::with_capacity(count);
        for entry in entries.chunks_exact(ENTRY_BYTES) {
            let (size_bytes, bytes) = (number(entry, 0), number(entry, 8));
            if load.last().is_some_and(|&(before, _)| before >= size_bytes) {
                return Err(DecodeError::Value { field: "order of sizes", value: 0 });
            }
            load.push((size_bytes, bytes));
        }
        let (instance, cluster) = (number(header, 1), number(header, 17));
        Ok((Self { instance, number: number(header, 9), cluster, load }, rest))
    }
}

/// The number of eight bytes at `at`; 0 where there are not as many.
fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).copied().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_and_nothing_else() {
        let sizes = Sizes {
            instance: 9,
            number: 7,
            cluster: u64::MAX - 1,
            load: vec![(1, 2), (300, 4), (u64::MAX, 5)],
        };
        let mut bytes = Vec::new();
        sizes.encode(&mut bytes).unwrap();
        assert_eq!(Sizes::decode(&bytes).unwrap(), sizes);
        for length in 0..bytes.len() {
            assert_eq!(Sizes::decode(&bytes[..length]), Err(DecodeError::Short), "{length}");
        }
        let mut other = bytes.clone();
        other[0] = 1;
        assert_eq!(Sizes::decode(&other), Err(DecodeError::Kind(1)));
        let mut unordered = bytes.clone();
        unordered[HEADER_BYTES + ENTRY_BYTES + 1] = 0;
        unordered[HEADER_BYTES + ENTRY_BYTES] = 1;
        assert!(matches!(Sizes::decode(&unordered), Err(DecodeError::Value { .. })));
        let mut many = bytes;
        many[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(Sizes::decode(&many), Err(DecodeError::TooLong(_))));
        let long = Sizes { load: (0..65_536).map(|size| (size, 1)).collect(), ..Sizes::default() };
        assert!(long.encode(&mut Vec::new()).is_err());
    }
}
