//! Geometric bins of sizes: bin f holds the sizes above C^(f-1) and up to C^f.
//!
//! Source: Zhang, Riska, Sun, Smirni and Ciardo, "Workload-aware load balancing for clustered web servers" (AdaptLoad),
//! section 4. Bin 0 holds 0 and 1; sizes above C^(F-1) are counted in the last bin.

/// Buckets per power of two in the table that finds a bin.
const BUCKETS: usize = 64;
const BUCKET_BITS: u32 = BUCKETS.trailing_zeros();

/// Bins and a table that finds the one of a size in constant time.
#[derive(Debug, Clone)]
pub struct SizeBins {
    /// The largest size of each bin; the last one takes everything.
    last_of_bin: Vec<u64>,
    /// The bin of the smallest size of each bucket.
    first_bin: Vec<u16>,
}

impl SizeBins {
    /// `bins` bins, each `base` times as wide as the one before.
    ///
    /// # Panics
    /// When `bins` is 0 or above 65,535, or `base` is not above 1.
    #[must_use]
    pub fn new(bins: usize, base: f64) -> Self {
        assert!(
            (1..=usize::from(u16::MAX)).contains(&bins) && base > 1.0,
            "bins that grow, and not too many"
        );
        let mut edge = 1.0;
        let mut last_of_bin = Vec::with_capacity(bins);
        for _ in 1..bins {
            // Truncating is right: whole sizes up to the edge. Beyond 2^64 it saturates.
            last_of_bin.push(edge as u64);
            edge *= base;
        }
        last_of_bin.push(u64::MAX);
        let mut bins = Self { last_of_bin, first_bin: Vec::new() };
        bins.first_bin = (0..BUCKETS * 64).map(|bucket| bins.search(smallest_in(bucket))).collect();
        bins
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.last_of_bin.len()
    }

    /// Always false; clippy wants it beside `len`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last_of_bin.is_empty()
    }

    /// The bin of a size.
    #[inline]
    #[must_use]
    pub fn bin(&self, size_bytes: u64) -> usize {
        let mut bin = usize::from(self.first_bin[bucket_of(size_bytes)]);
        // The base is at least 1.01 in practice, so this takes a step or two.
        while size_bytes > self.last_of_bin[bin] {
            bin += 1;
        }
        bin
    }

    /// The largest size of a bin in bytes.
    #[must_use]
    pub fn last_bytes(&self, bin: usize) -> u64 {
        self.last_of_bin[bin]
    }

    fn search(&self, size_bytes: u64) -> u16 {
        self.last_of_bin.partition_point(|&last| last < size_bytes) as u16
    }
}

/// The bucket of a size: its power of two and the bits that follow the highest one.
#[inline]
fn bucket_of(size_bytes: u64) -> usize {
    let size = size_bytes.max(1);
    let power = size.ilog2();
    let rest =
        if power >= BUCKET_BITS { size >> (power - BUCKET_BITS) } else { size << (BUCKET_BITS - power) };
    (power as usize) * BUCKETS + (rest as usize & (BUCKETS - 1))
}

/// The smallest size of a bucket.
fn smallest_in(bucket: usize) -> u64 {
    let (power, rest) = ((bucket / BUCKETS) as u32, (bucket % BUCKETS + BUCKETS) as u64);
    if power >= BUCKET_BITS { rest << (power - BUCKET_BITS) } else { rest >> (BUCKET_BITS - power) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bins_of_base_two() {
        let bins = SizeBins::new(5, 2.0);
        let of = |sizes: &[u64]| sizes.iter().map(|&s| bins.bin(s)).collect::<Vec<_>>();
        assert_eq!(of(&[0, 1, 2, 3, 4, 5, 8, 9, 16, 17, u64::MAX]), [0, 0, 1, 2, 2, 3, 3, 4, 4, 4, 4]);
        assert_eq!((bins.len(), bins.last_bytes(2)), (5, 4));
    }

    proptest! {
        #[test]
        fn the_table_finds_what_a_search_finds(
            size_bits in 0u32..64, rest in any::<u64>(), base in 1.005f64..3.0, bins in 1usize..3000,
        ) {
            let size = (1u64 << size_bits) | (rest & ((1 << size_bits) - 1));
            let bins = SizeBins::new(bins, base);
            for size in [size, size - 1, size.saturating_add(1)] {
                prop_assert_eq!(bins.bin(size), usize::from(bins.search(size)));
            }
        }
    }
}
