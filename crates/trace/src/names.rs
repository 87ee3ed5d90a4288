//! Interning of byte strings into dense numbers.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// Numbers byte strings in order of first appearance and keeps each once, end to end, in an arena.
///
/// The hash table is only probed, never iterated, and its hash has a fixed seed, so that equal
/// input gives equal numbers on every run.
#[derive(Debug, Clone)]
pub(crate) struct Interner {
    /// Half of each name's hash, and its number, so that neither growing nor a miss reads the names.
    table: HashTable<(u32, u32)>,
    hasher: FixedState,
    bytes: Vec<u8>,
    /// End of each name in `bytes`; a name starts where the one before it ends.
    ends: Vec<usize>,
}

impl Default for Interner {
    fn default() -> Self {
        Self {
            table: HashTable::new(),
            hasher: FixedState::with_seed(0x706c_696d_736f_6c6c),
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl Interner {
    /// Number of `name`, new if it was not seen before; `None` when 32 bits are used up.
    pub(crate) fn intern(&mut self, name: &[u8]) -> Option<u32> {
        let Self { table, hasher, bytes, ends } = self;
        let half = hasher.hash_one(name) as u32;
        let same = |&(other, id): &(u32, u32)| other == half && name_at(bytes, ends, id) == name;
        if let Some(&(_, id)) = table.find(widen(half), same) {
            return Some(id);
        }
        let id = u32::try_from(ends.len()).ok().filter(|&id| id < u32::MAX)?;
        bytes.extend_from_slice(name);
        ends.push(bytes.len());
        table.insert_unique(widen(half), (half, id), |&(half, _)| widen(half));
        Some(id)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn name(&self, id: u32) -> &[u8] {
        name_at(&self.bytes, &self.ends, id)
    }
}

/// Spreads half a hash over 64 bits: the table takes its tags from the top and its places from the
/// bottom. The factor is 2^64 divided by the golden ratio, as in Fibonacci hashing.
#[inline]
fn widen(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline]
fn name_at<'a>(bytes: &'a [u8], ends: &[usize], id: u32) -> &'a [u8] {
    let index = id as usize;
    let start = if index == 0 { 0 } else { ends[index - 1] };
    &bytes[start..ends[index]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_first_appearance() {
        let mut names = Interner::default();
        let ids: Vec<_> =
            [&b"/b"[..], b"", b"/a", b"/b", b""].iter().map(|n| names.intern(n).unwrap()).collect();
        assert_eq!(ids, [0, 1, 2, 0, 1]);
        assert_eq!(names.len(), 3);
        assert_eq!((names.name(0), names.name(1), names.name(2)), (&b"/b"[..], &b""[..], &b"/a"[..]));
    }

    #[test]
    fn many_names_survive_growth() {
        let mut names = Interner::default();
        for round in 0..2 {
            for i in 0..20_000u32 {
                assert_eq!(names.intern(i.to_string().as_bytes()), Some(i), "round {round}");
            }
        }
        assert_eq!(names.len(), 20_000);
    }
}
