//! The minimum of the back-ends' loads and its first index, kept in blocks that vectorised code scans.

/// Numbers per block: one or two vector registers' worth, so that a block's least needs no branch.
const BLOCK: usize = 16;

/// The least of an array of numbers that change one at a time. Unused places hold `u32::MAX`.
///
/// A change may recompute the minimum of its block; a query looks at the minimum of every block: one block
/// for up to 16 back-ends, 16 blocks for 256. A tournament tree does less work for large clusters, but its
/// unpredictable branches made the common small ones slower.
///
/// Kept as signed numbers in the same order: every x86-64 compares those many at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct MinBlocks {
    blocks: Vec<[i32; BLOCK]>,
    least: Vec<i32>,
}

#[inline]
fn to_signed(value: u32) -> i32 {
    (value ^ 1 << 31).cast_signed()
}

#[inline]
fn from_signed(value: i32) -> u32 {
    value.cast_unsigned() ^ 1 << 31
}

#[inline]
fn least_of(values: &[i32]) -> i32 {
    values.iter().fold(i32::MAX, |least, &v| least.min(v))
}

impl MinBlocks {
    /// Blocks over these values.
    pub(crate) fn new(values: &[u32]) -> Self {
        let mut blocks = vec![[i32::MAX; BLOCK]; values.len().div_ceil(BLOCK)];
        for (k, &value) in values.iter().enumerate() {
            blocks[k / BLOCK][k % BLOCK] = to_signed(value);
        }
        let least = blocks.iter().map(|block| least_of(block)).collect();
        Self { blocks, least }
    }

    /// Number `k`, `None` beyond the last block.
    #[inline]
    pub(crate) fn get(&self, k: usize) -> Option<u32> {
        self.blocks.get(k / BLOCK).map(|block| from_signed(block[k % BLOCK]))
    }

    /// Sets number `k`, unless it is `fixed`.
    #[inline]
    pub(crate) fn set_unless(&mut self, fixed: u32, k: usize, value: u32) {
        if self.blocks[k / BLOCK][k % BLOCK] != to_signed(fixed) {
            self.set(k, value);
        }
    }

    /// Sets number `k`.
    #[inline]
    pub(crate) fn set(&mut self, k: usize, value: u32) {
        let value = to_signed(value);
        let block = &mut self.blocks[k / BLOCK];
        let old = std::mem::replace(&mut block[k % BLOCK], value);
        let least = &mut self.least[k / BLOCK];
        // Only when the minimum itself rises must the block be scanned.
        if value <= *least {
            *least = value;
        } else if old == *least {
            *least = least_of(block);
        }
    }

    /// The least number; `u32::MAX` of none.
    #[inline]
    pub(crate) fn least(&self) -> u32 {
        from_signed(least_of(&self.least))
    }

    /// The first place at or after `from` that holds `least`; without one, the first place that does.
    #[inline]
    pub(crate) fn first_from(&self, from: usize, least: u32) -> Option<usize> {
        let least = to_signed(least);
        let start = (from / BLOCK).min(self.blocks.len());
        let holds = |v: &i32| *v == least;
        if let Some(block) = self.blocks.get(start)
            && let Some(at) = block[from % BLOCK..].iter().position(holds)
        {
            return Some(from + at);
        }
        let later = (start + 1).min(self.least.len())..self.least.len();
        let index = later.chain(0..(start + 1).min(self.least.len())).find(|&i| self.least[i] == least)?;
        self.blocks[index].iter().position(holds).map(|at| index * BLOCK + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIXED: u32 = 1 << 31;

    /// Few different ones, from both halves.
    fn numbers() -> impl Strategy<Value = u32> {
        (0u32..5, any::<bool>()).prop_map(|(n, upper)| if upper { FIXED - 2 + n } else { n })
    }

    proptest! {
        /// Against a scan.
        #[test]
        fn finds_what_a_scan_finds(
            mut values in prop::collection::vec(numbers(), 1..40),
            changes in prop::collection::vec((0usize..40, numbers()), 0..60),
            from in 0usize..40,
        ) {
            let mut blocks = MinBlocks::new(&values);
            for (k, value) in changes {
                let k = k % values.len();
                if values[k] != FIXED {
                    values[k] = value;
                }
                blocks.set_unless(FIXED, k, value);
                let least = values.iter().copied().min().unwrap();
                prop_assert_eq!(blocks.least(), least);
                let from = from % values.len();
                let holds = |k: &usize| values[*k] == least;
                let expected = (from..values.len()).chain(0..from).find(holds).unwrap();
                prop_assert_eq!(blocks.first_from(from, least), Some(expected));
            }
        }
    }
}
