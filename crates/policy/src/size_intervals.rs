//! Intervals of sizes, one for each back-end, with boundaries that may lie inside a bin.
//!
//! Source: AdaptLoad, section 4 and figure 4, steps 6 and 7. A boundary (`s_n`, `p_n`) ends the interval of back-end n: of
//! the requests in bin `s_n`, the share `p_n` goes to back-ends up to n and the rest to those behind. Several boundaries
//! share a bin that holds more than one back-end's part of the load.

use crate::rng::Rng;

/// One boundary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Boundary {
    /// The bin in which it lies, `s_n`.
    pub bin: usize,
    /// The share of that bin below it, `p_n`.
    pub share: f64,
}

/// The intervals of N back-ends: N - 1 boundaries in order.
#[derive(Debug, Clone, Default)]
pub struct Intervals {
    boundaries: Vec<Boundary>,
    /// For each bin, the first back-end whose interval reaches it.
    first_of_bin: Vec<u16>,
    /// Room for running sums of weights.
    below: Vec<f64>,
}

/// Each position's share of a histogram's weight before and after new boundaries, within rounding.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundaryChange {
    /// By the old intervals; `None` if there were none.
    pub before: Option<Vec<f64>>,
    /// By the new intervals.
    pub after: Vec<f64>,
}

impl Intervals {
    /// Cuts a histogram so that the back-ends get these parts of its total weight: `parts` add up to 1, within rounding,
    /// and there is at least one. `weights` are not negative, and of as many bins each time; `None`, and nothing changed, if
    /// all are 0.
    pub fn cut(&mut self, weights: &[f64], parts: &[f64]) -> Option<BoundaryChange> {
        self.sum_up(weights);
        let total = self.below.last().copied().unwrap_or(0.0);
        if total <= 0.0 || parts.is_empty() {
            return None;
        }
        let before = self.is_set().then(|| self.loads_by_sums(weights));
        self.boundaries.clear();
        let (mut bin, mut wanted) = (0, 0.0);
        for part in &parts[..parts.len() - 1] {
            wanted += part;
            let at = wanted * total;
            bin += self.below[bin + 1..].iter().take_while(|&&end| end <= at).count();
            if bin == weights.len() {
                break;
            }
            let share = ((at - self.below[bin]) / weights[bin]).clamp(0.0, 1.0);
            self.boundaries.push(Boundary { bin, share });
        }
        // Sums are rounded, so a boundary may fall at the very end.
        let last_loaded = weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0);
        self.boundaries.resize(parts.len() - 1, Boundary { bin: last_loaded, share: 1.0 });
        self.index(weights.len());
        Some(BoundaryChange { before, after: self.loads_by_sums(weights) })
    }

    fn sum_up(&mut self, weights: &[f64]) {
        self.below.clear();
        let mut below = 0.0;
        self.below.push(below);
        self.below.extend(weights.iter().map(|weight| {
            below += weight;
            below
        }));
    }

    /// [`Self::loads`] by the running sums of the weights.
    fn loads_by_sums(&self, weights: &[f64]) -> Vec<f64> {
        let cuts = self.boundaries.iter().map(|b| self.below[b.bin] + weights[b.bin] * b.share);
        let mut given = 0.0;
        let ends = cuts.chain(self.below.last().copied());
        ends.map(|end| {
            let load = end - given;
            given = end;
            load
        })
        .collect()
    }

    fn index(&mut self, bins: usize) {
        self.first_of_bin.clear();
        for (n, boundary) in self.boundaries.iter().enumerate() {
            self.first_of_bin.resize((boundary.bin + 1).max(self.first_of_bin.len()), n as u16);
        }
        self.first_of_bin.resize(bins, self.boundaries.len() as u16);
    }

    /// Whether there are intervals yet.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !self.first_of_bin.is_empty()
    }

    /// The position of the back-end that gets a request of this bin. Draws a number only where a boundary lies in the bin.
    #[inline]
    pub fn position(&self, bin: usize, rng: &mut Rng) -> usize {
        let first = usize::from(self.first_of_bin[bin]);
        match self.boundaries.get(first) {
            Some(boundary) if boundary.bin == bin => {
                let drawn = rng.unit();
                first + self.boundaries[first..].partition_point(|b| b.bin == bin && b.share <= drawn)
            }
            _ => first,
        }
    }

    /// The boundaries in order.
    #[must_use]
    pub fn boundaries(&self) -> &[Boundary] {
        &self.boundaries
    }

    /// Each back-end's share of a histogram's weight. A bin's weight counts once, however many boundaries
    /// share it.
    #[must_use]
    pub fn loads(&self, weights: &[f64]) -> Vec<f64> {
        let mut loads = vec![0.0; self.boundaries.len() + 1];
        let mut next = 0;
        for (bin, &weight) in weights.iter().enumerate() {
            let mut given = 0.0;
            while let Some(boundary) = self.boundaries.get(next).filter(|b| b.bin == bin) {
                loads[next] += weight * (boundary.share - given);
                given = boundary.share;
                next += 1;
            }
            loads[next] += weight * (1.0 - given);
        }
        loads
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{
        Just, Strategy, prop, prop_assert, prop_assert_eq, prop_assume, prop_oneof, proptest,
    };

    use super::*;

    fn cut(weights: &[f64], parts: &[f64]) -> Vec<(usize, f64)> {
        let mut intervals = Intervals::default();
        assert!(intervals.cut(weights, parts).is_some());
        intervals.boundaries().iter().map(|b| (b.bin, b.share)).collect()
    }

    /// Worked out by hand from figure 4.
    #[test]
    fn histograms_and_their_boundaries() {
        let quarters = [0.25; 4];
        // Each quarter, 4, is a bin: a boundary at a bin's end lies at the beginning of the next loaded one.
        assert_eq!(cut(&[4.0, 4.0, 4.0, 4.0], &quarters), [(1, 0.0), (2, 0.0), (3, 0.0)]);
        // 1 + 3/6 of the next bin is 4; 8 and 12 are in bins 2 and 3.
        assert_eq!(cut(&[1.0, 6.0, 4.0, 5.0], &quarters), [(1, 0.5), (2, 0.25), (3, 0.2)]);
        // A bin with nearly everything is shared by all.
        assert_eq!(cut(&[1.0, 0.0, 14.0, 1.0], &quarters), [(2, 3.0 / 14.0), (2, 0.5), (2, 11.0 / 14.0)]);
        // All sizes equal.
        assert_eq!(cut(&[0.0, 8.0, 0.0], &quarters), [(1, 0.25), (1, 0.5), (1, 0.75)]);
        // A back-end with three times the speed.
        assert_eq!(cut(&[2.0, 2.0, 2.0, 2.0], &[0.25, 0.75]), [(1, 0.0)]);
        assert_eq!(cut(&[3.0, 5.0], &[1.0]), []);
        // More back-ends than loaded bins.
        assert_eq!(cut(&[1.0, 1.0], &[0.2; 5]), [(0, 0.4), (0, 0.8), (1, 0.2), (1, 0.6)].map(near));
    }

    /// Sums of tenths are not exact.
    fn near((bin, share): (usize, f64)) -> (usize, f64) {
        let got = cut(&[1.0, 1.0], &[0.2; 5]);
        let found = got.into_iter().find(|(b, s)| *b == bin && (s - share).abs() < 1e-12);
        found.unwrap()
    }

    #[test]
    fn an_empty_histogram_changes_nothing() {
        let mut intervals = Intervals::default();
        assert!(intervals.cut(&[0.0; 3], &[0.5; 2]).is_none() && !intervals.is_set());
        assert!(intervals.cut(&[0.0, 1.0, 1.0], &[0.5; 2]).is_some() && intervals.is_set());
        let before = intervals.boundaries().to_vec();
        assert!(intervals.cut(&[0.0; 3], &[0.5; 2]).is_none());
        assert_eq!(intervals.boundaries(), before);
    }

    #[test]
    fn shared_bins_are_drawn_in_proportion() {
        let mut intervals = Intervals::default();
        intervals.cut(&[0.0, 10.0, 2.0], &[0.25; 4]);
        let mut rng = Rng::new(3, 0);
        let mut got = [0u32; 4];
        (0..40_000).for_each(|_| got[intervals.position(1, &mut rng)] += 1);
        // 3, 3, 3 and 1 of 10; five standard errors are below 500.
        for (n, want) in [12_000, 12_000, 12_000, 4_000].into_iter().enumerate() {
            assert!(got[n].abs_diff(want) < 500, "{got:?}");
        }
        assert_eq!((intervals.position(0, &mut rng), intervals.position(2, &mut rng)), (0, 3));
    }

    fn weight() -> impl Strategy<Value = f64> {
        prop_oneof![Just(0.0), 0.0..1e9]
    }

    proptest! {
        /// Each back-end gets its part of the weight, and each bin's weight is given out exactly once.
        #[test]
        fn parts_are_as_asked(
            (weights, later) in prop::collection::vec((weight(), weight()), 1..200).prop_map(|both| both.into_iter().unzip()),
            speeds in prop::collection::vec(prop_oneof![Just(0.0), 0.1f64..10.0], 1..20),
        ) {
            let (weights, later): (Vec<f64>, Vec<f64>) = (weights, later);
            prop_assume!(speeds.iter().any(|&speed| speed > 0.0));
            let total: f64 = weights.iter().sum();
            let speed: f64 = speeds.iter().sum();
            let parts: Vec<f64> = speeds.iter().map(|s| s / speed).collect();
            let mut intervals = Intervals::default();
            let cut = intervals.cut(&weights, &parts);
            prop_assert_eq!(cut.is_some(), total > 0.0);
            if let Some(cut) = cut {
                let loads = intervals.loads(&weights);
                prop_assert_eq!(cut.before, None);
                for (load, by_sums) in loads.iter().zip(&cut.after) {
                    prop_assert!((load - by_sums).abs() <= 1e-9 * total, "{loads:?} {:?}", cut.after);
                }
                prop_assert_eq!(loads.len(), parts.len());
                for (load, part) in loads.iter().zip(&parts) {
                    prop_assert!((load - part * total).abs() <= 1e-9 * total, "{loads:?}");
                }
                let in_order = |w: &[Boundary]| (w[0].bin, w[0].share) <= (w[1].bin, w[1].share);
                prop_assert!(intervals.boundaries().windows(2).all(in_order), "{:?}", intervals.boundaries());
                // The same load once more: nothing moves.
                let again = intervals.cut(&weights, &parts);
                prop_assert_eq!(again.map(|cut| (cut.before, cut.after)), Some((Some(cut.after.clone()), cut.after)));
                // Another load: what each has had of it.
                let by_bins = intervals.loads(&later);
                let all: f64 = later.iter().sum();
                if let Some(BoundaryChange { before: Some(before), .. }) = intervals.cut(&later, &parts) {
                    for (load, by_bins) in before.iter().zip(&by_bins) {
                        prop_assert!((load - by_bins).abs() <= 1e-9 * all, "{before:?} {by_bins:?}");
                    }
                }
            }
        }
    }
}
