//! Memory that the most frequently requested targets need: the curve of figures 5 and 6 of the
//! LARD paper (section 3.2).

/// Bytes of the most frequently requested targets that together cover at least each share of the
/// requests.
///
/// `counts[i]` is the number of requests of target `i` and `sizes[i]` its size in bytes (a target
/// without a size counts as 0 bytes). Targets are taken by falling count, among equals the lower
/// index first. `shares` are fractions of all requests (0.97 for 97 %), in any order; the answer
/// has one entry per share. A share above 1 asks for everything; without requests, or for a share
/// of 0 or less, the answer is 0.
#[must_use]
pub fn coverage_bytes(counts: &[u64], sizes: &[u64], shares: &[f64]) -> Vec<u64> {
    let order = by_falling_count(counts);
    shares
        .iter()
        .map(|&share| {
            let covering = covering_targets(counts, &order, share);
            order[..covering].iter().map(|&target| sizes.get(target).copied().unwrap_or(0)).sum()
        })
        .collect()
}

/// Indices of `counts` by falling count, among equals the lower index first.
pub(crate) fn by_falling_count(counts: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    // The sort is stable, so equal counts keep the order of their indices.
    order.sort_by_key(|&target| std::cmp::Reverse(counts[target]));
    order
}

/// How many targets from the front of `order` cover at least `share` of all requests.
pub(crate) fn covering_targets(counts: &[u64], order: &[usize], share: f64) -> usize {
    let requests: u64 = order.iter().map(|&target| counts[target]).sum();
    // A product such as 0.97 × 100 lies just above 97 as a binary fraction. Without the allowance, one target
    // too many would count.
    let goal = share * requests as f64 * (1.0 - 1e-12);
    let mut covered = 0_u64;
    for (taken, &target) in order.iter().enumerate() {
        if covered as f64 >= goal {
            return taken;
        }
        covered += counts[target];
    }
    order.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        // 100 requests; by falling count the targets are 2 (50), 0 (30), 3 (17), 1 (3).
        let counts = [30, 3, 50, 17];
        let sizes = [1_000, 20, 7, 400];
        let bytes = coverage_bytes(&counts, &sizes, &[0.5, 0.51, 0.8, 0.97, 0.98, 1.0]);
        assert_eq!(bytes, [7, 1_007, 1_007, 1_407, 1_427, 1_427]);
    }

    #[test]
    fn equal_counts_take_the_lower_index_first() {
        assert_eq!(coverage_bytes(&[5, 5, 5], &[1, 10, 100], &[0.3, 0.6]), [1, 11]);
    }

    #[test]
    fn edges_are_defined() {
        assert_eq!(coverage_bytes(&[], &[], &[0.5]), [0]);
        assert_eq!(coverage_bytes(&[0, 0], &[4, 4], &[0.5]), [0]);
        assert_eq!(coverage_bytes(&[1, 1], &[4, 4], &[0.0, 2.0, -1.0]), [0, 8, 0]);
        assert_eq!(coverage_bytes(&[2, 1], &[4], &[1.0]), [4]);
    }
}
