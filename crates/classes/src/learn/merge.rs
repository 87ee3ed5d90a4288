//! Merges groups of similar demand into classes.

use crate::learn::statistic::DemandSums;

/// A group with fewer requests forms no class; it goes to the nearest one.
const REQUESTS_LEAST: f64 = 10.0;

/// Groups closer than this part of the similar share are one from the beginning, which bounds the work.
const STEPS: f64 = 8.0;

/// Classes of groups.
pub(crate) struct MergedGroups {
    /// The class of each group, from 0, by rising mean demand.
    pub(crate) class_of: Vec<usize>,
    /// The demands of each class.
    pub(crate) classes: Vec<DemandSums>,
}

/// Merges groups whose mean demands differ by less than `similar`, or by what chance may be, and further ones until there are at most
/// `most`. Means below `least_s` are alike.
pub(crate) fn merge(groups: &[DemandSums], similar: f64, most: usize, least_s: f64) -> MergedGroups {
    let level = |sums: &DemandSums| sums.mean_s().max(least_s).ln();
    let width = (similar.max(0.01).ln_1p() / STEPS).max(1e-3);
    // Of groups at nearly the same level, sums; in order of the level.
    let mut bins: std::collections::BTreeMap<i64, DemandSums> = std::collections::BTreeMap::new();
    for sums in groups.iter().filter(|sums| sums.count >= REQUESTS_LEAST) {
        bins.entry((level(sums) / width).floor() as i64).or_default().merge(*sums);
    }
    if bins.is_empty() {
        let mut all = DemandSums::default();
        groups.iter().for_each(|sums| all.merge(*sums));
        return MergedGroups { class_of: vec![0; groups.len()], classes: vec![all] };
    }
    let mut classes: Vec<DemandSums> = bins.into_values().collect();
    let threshold = similar.max(0.0).ln_1p();
    while classes.len() > 1 {
        let distance = |pair: &[DemandSums]| {
            let chance = (pair[0].relative_error().powi(2) + pair[1].relative_error().powi(2)).sqrt();
            (level(&pair[1]) - level(&pair[0])).max(0.0) / (threshold + 2.0 * chance).max(1e-9)
        };
        let cost = |pair: &[DemandSums]| {
            let (a, b) = (pair[0].count, pair[1].count);
            (level(&pair[1]) - level(&pair[0])).powi(2) * a * b / (a + b)
        };
        let least = |measure: &dyn Fn(&[DemandSums]) -> f64| {
            let pairs = classes.windows(2).map(measure).enumerate();
            pairs.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::INFINITY))
        };
        let (mut at, nearest) = least(&distance);
        if nearest >= 1.0 {
            if classes.len() <= most.max(1) {
                break;
            }
            at = least(&cost).0;
        }
        let taken = classes.remove(at + 1);
        classes[at].merge(taken);
    }
    // In order, so the nearest class changes half way between two.
    classes.sort_by(|a, b| a.mean_s().total_cmp(&b.mean_s()));
    let levels: Vec<f64> = classes.iter().map(level).collect();
    let nearest = |sums: &DemandSums| {
        let far = |at: &usize| (levels[*at] - level(sums)).abs();
        (0..levels.len()).min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(0)
    };
    let class_of: Vec<usize> = groups.iter().map(nearest).collect();
    let mut final_classes = vec![DemandSums::default(); classes.len()];
    for (sums, class) in groups.iter().zip(&class_of) {
        final_classes[*class].merge(*sums);
    }
    MergedGroups { class_of, classes: final_classes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(mean_s: f64, count: u32) -> DemandSums {
        let mut sums = DemandSums::default();
        for n in 0..count {
            sums.add(mean_s * if n % 2 == 0 { 0.9 } else { 1.1 });
        }
        sums
    }

    #[test]
    fn similar_groups_are_one_class_and_classes_rise() {
        let groups =
            [group(0.02, 1000), group(0.01, 1000), group(0.0101, 1000), group(0.0195, 1000), group(0.05, 3)];
        let found = merge(&groups, 0.2, 100, 1e-6);
        assert_eq!(found.class_of, [1, 0, 0, 1, 1]);
        assert_eq!(found.classes.len(), 2);
        assert_eq!(merge(&groups, 0.2, 1, 1e-6).class_of, [0; 5]);
        assert_eq!(merge(&groups, 0.01, 100, 1e-6).classes.len(), 3);
    }

    #[test]
    fn few_requests_make_one_class() {
        let found = merge(&[group(0.01, 2), group(0.5, 3)], 0.2, 100, 1e-6);
        assert_eq!((found.class_of, found.classes.len()), (vec![0, 0], 1));
        assert_eq!(merge(&[], 0.2, 100, 1e-6).classes.len(), 1);
    }
}
