//! One value for several.

/// The least of some values; `None` where one is missing, or all are.
pub(super) fn least(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    all(values)?.into_iter().reduce(f64::min)
}

/// The greatest of some values; `None` where one is missing, or all are.
pub(super) fn most(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    all(values)?.into_iter().reduce(f64::max)
}

/// The median of some values, of an even number the mean of the two in the middle; `None` where one is missing, or all are.
pub(super) fn median(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let mut values = all(values)?;
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle)?;
    if values.len() % 2 == 1 { Some(*upper) } else { Some((values[middle - 1] + upper) / 2.0) }
}

/// Where a lead is lost for good, by the sizes in bytes at which it was found: between two of them in proportion to their logarithms. `None`
/// where there is a lead at all sizes or at none.
pub(super) fn crossing(leads: &[(f64, f64)]) -> Option<f64> {
    let last_ahead = leads.iter().rposition(|&(_, lead)| lead > 0.0)?;
    let (ahead, behind) = (leads[last_ahead], leads.get(last_ahead + 1)?);
    Some(ahead.0 * (behind.0 / ahead.0).powf(ahead.1 / (ahead.1 - behind.1)))
}

fn all(values: impl IntoIterator<Item = Option<f64>>) -> Option<Vec<f64>> {
    values.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_or_of_none() {
        let some = [3.0, 1.0, 2.0].map(Some);
        assert_eq!((least(some), most(some), median(some)), (Some(1.0), Some(3.0), Some(2.0)));
        assert_eq!(median([Some(4.0), Some(1.0)]), Some(2.5));
        for of in [least, most, median] as [fn(Vec<Option<f64>>) -> Option<f64>; 3] {
            assert_eq!((of(vec![Some(1.0), None]), of(Vec::new())), (None, None));
        }
    }
}
