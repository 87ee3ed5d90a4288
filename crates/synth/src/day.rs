//! Sizes of the World Cup day: fitted to the published means and medians of files and requests.
//!
//! Three steps: [`fit_files`] gives the drawn sizes the published median, total and maximum of the
//! files; [`pair`] chooses which popularity gets which size, so that half of the requests go to
//! files up to the published median request and the mean request comes out; [`fit_day`] removes
//! the small differences that are left.

use super::sizes::{Copula, bisect, round_with_carry};
use rand_pcg::Pcg64;

/// Published size statistics that the fit must meet.
#[derive(Debug, Clone, Copy)]
pub(super) struct DayFigures {
    /// Bytes of all files.
    pub(super) total_bytes: f64,
    /// Median size of a file.
    pub(super) file_median_bytes: f64,
    /// Size of the largest file.
    pub(super) file_max_bytes: f64,
    /// Mean size of a request.
    pub(super) request_mean_bytes: f64,
    /// Median size of a request.
    pub(super) request_median_bytes: f64,
}

/// Gives `ascending` sizes the median, the total and the maximum of the figures, keeping their
/// order: sizes up to the median are scaled, the excess over it is scaled by another factor.
/// Returns these two factors relative to one another, or why the total cannot be reached.
pub(super) fn fit_files(ascending: &mut [f64], figures: &DayFigures) -> Result<f64, String> {
    let last = ascending.len() - 1;
    let middle = last / 2;
    let median = ascending[middle];
    let scale = figures.file_median_bytes / median;
    let below: f64 = ascending[..=middle].iter().map(|size| size * scale).sum();
    let excess: f64 = ascending[middle + 1..last].iter().map(|size| size - median).sum();
    let above = last.saturating_sub(middle + 1) as f64;
    let left = figures.total_bytes - below - figures.file_max_bytes - above * figures.file_median_bytes;
    let slope = left / excess;
    if slope.is_nan() || slope <= 0.0 || slope.is_infinite() {
        return Err(format!(
            "files of {:.0} bytes in all cannot have a median of {} and a maximum of {} bytes",
            figures.total_bytes, figures.file_median_bytes, figures.file_max_bytes
        ));
    }
    for size in ascending.iter_mut() {
        *size = if *size <= median {
            *size * scale
        } else {
            (figures.file_median_bytes + (*size - median) * slope).min(figures.file_max_bytes)
        };
    }
    ascending[last] = figures.file_max_bytes;
    Ok(slope / scale)
}

/// Gives each rank one of the `ascending` sizes. `counts` holds the requests by rank.
///
/// First the files up to the published median request are given to ranks that have half of all
/// requests together, then the larger files to the others so that the mean request is met: both
/// by a Gaussian copula whose correlation is found by bisection.
pub(super) fn pair(ascending: &[f64], counts: &[u64], figures: &DayFigures, rng: &mut Pcg64) -> Vec<f64> {
    let small = ascending.partition_point(|&size| size <= figures.request_median_bytes);
    let requests = counts.iter().sum::<u64>() as f64;
    let classes = Copula::draw(counts.len(), rng);
    let share = |correlation: f64| {
        let order = classes.order(correlation, 0.0);
        order[..small].iter().map(|&rank| counts[rank] as f64).sum::<f64>() / requests
    };
    let correlation = bisect(|correlation| share(correlation) < 0.5);
    let mut order = classes.order(correlation, 0.0);
    let mut large = order.split_off(small);
    let mut sizes = vec![0.0; counts.len()];
    for (&rank, &size) in order.iter().zip(ascending) {
        sizes[rank] = size;
    }
    let transferred: f64 = order.iter().map(|&rank| sizes[rank] * counts[rank] as f64).sum();
    let wanted = figures.request_mean_bytes * requests - transferred;
    large.sort_unstable();
    let within = Copula::draw(large.len(), rng);
    let bytes = |correlation: f64| -> f64 {
        let paired = within.pair(&ascending[small..], correlation, 0.0);
        large.iter().zip(paired).map(|(&rank, size)| size * counts[rank] as f64).sum()
    };
    let correlation = bisect(|correlation| bytes(correlation) > wanted);
    let paired = within.pair(&ascending[small..], correlation, 0.0);
    for (&rank, size) in large.iter().zip(paired) {
        sizes[rank] = size;
    }
    sizes
}

/// The drawn sizes at which the transformation bends.
struct Knots {
    request_median: f64,
    file_median: f64,
    /// Nine tenths of the files are no larger.
    file_p90: f64,
}

/// Transforms sizes, keeping their order, so that they meet the figures.
///
/// The transformation rises in straight pieces: the drawn median of the requests goes to the
/// published one, and so does the median of the files; above, the slopes up to and beyond the
/// ninth decile follow from the two linear equations for the bytes of all files and of all
/// requests; the largest file has the published size. Returns the slopes of the four pieces
/// relative to a mere change of scale (near 1 where the drawn sizes already fitted), or the reason
/// why no such transformation exists.
pub(super) fn fit_day(sizes: &mut [f64], counts: &[u64], figures: &DayFigures) -> Result<Vec<f64>, String> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|&a, &b| sizes[a].total_cmp(&sizes[b]));
    let knots = Knots {
        request_median: sizes[weighted_median(&order, counts)],
        file_median: sizes[order[(order.len() - 1) / 2]],
        file_p90: sizes[order[(order.len() - 1) * 9 / 10]],
    };
    let increasing = knots.request_median < knots.file_median
        && knots.file_median < knots.file_p90
        && figures.request_median_bytes < figures.file_median_bytes;
    if !increasing {
        return Err(format!(
            "half of the requests go to files of up to {:.0} bytes as drawn, which is not below \
             the median file of {:.0} bytes; a larger correlation makes popular files smaller",
            knots.request_median, knots.file_median
        ));
    }
    let (middle, tail) = slopes(sizes, counts, &order, &knots, figures)?;
    let low = figures.request_median_bytes / knots.request_median;
    let rise = (figures.file_median_bytes - figures.request_median_bytes)
        / (knots.file_median - knots.request_median);
    for size in sizes.iter_mut() {
        *size = if *size <= knots.request_median {
            *size * low
        } else if *size <= knots.file_median {
            figures.request_median_bytes + (*size - knots.request_median) * rise
        } else {
            let (near, far) = excess(*size, &knots);
            figures.file_median_bytes + middle * near + tail * far
        };
    }
    let largest = order[order.len() - 1];
    sizes[largest] = figures.file_max_bytes;
    let second = order.get(order.len().wrapping_sub(2)).map_or(0.0, |&target| sizes[target]);
    if second > figures.file_max_bytes {
        return Err(format!("the second largest file would have {second:.0} bytes, more than the largest"));
    }
    // Each is rounded by itself: a carry would move the two medians.
    for target in order {
        round_with_carry(sizes, &[target]);
    }
    let scale = figures.file_median_bytes / knots.file_median;
    Ok([low, rise, middle, tail].iter().map(|slope| slope / scale).collect())
}

/// The target at which half of the requests, by rising size, is reached.
fn weighted_median(order: &[usize], counts: &[u64]) -> usize {
    let requests: u64 = counts.iter().sum();
    let mut seen = 0;
    for &target in order {
        seen += counts[target];
        if seen * 2 >= requests {
            return target;
        }
    }
    order[order.len() - 1]
}

/// Drawn bytes above the median of the files: up to the ninth decile, and beyond it.
fn excess(size: f64, knots: &Knots) -> (f64, f64) {
    (size.min(knots.file_p90) - knots.file_median, (size - knots.file_p90).max(0.0))
}

/// Slopes between median and ninth decile, and beyond, that give the published bytes of all files
/// and of all requests.
fn slopes(
    sizes: &[f64],
    counts: &[u64],
    order: &[usize],
    knots: &Knots,
    figures: &DayFigures,
) -> Result<(f64, f64), String> {
    let requests: u64 = counts.iter().sum();
    let mut rest = [figures.total_bytes, figures.request_mean_bytes * requests as f64];
    let (mut near_sum, mut far_sum) = ([0.0; 2], [0.0; 2]);
    let low = figures.request_median_bytes / knots.request_median;
    let rise = (figures.file_median_bytes - figures.request_median_bytes)
        / (knots.file_median - knots.request_median);
    for (at, &target) in order.iter().enumerate() {
        let size = sizes[target];
        let weights = [1.0, counts[target] as f64];
        let (fixed, near, far) = if at + 1 == order.len() {
            (figures.file_max_bytes, 0.0, 0.0)
        } else if size <= knots.request_median {
            (size * low, 0.0, 0.0)
        } else if size <= knots.file_median {
            (figures.request_median_bytes + (size - knots.request_median) * rise, 0.0, 0.0)
        } else {
            let (near, far) = excess(size, knots);
            (figures.file_median_bytes, near, far)
        };
        for row in 0..2 {
            rest[row] -= weights[row] * fixed;
            near_sum[row] += weights[row] * near;
            far_sum[row] += weights[row] * far;
        }
    }
    let determinant = near_sum[0] * far_sum[1] - near_sum[1] * far_sum[0];
    let middle = (rest[0] * far_sum[1] - rest[1] * far_sum[0]) / determinant;
    let tail = (near_sum[0] * rest[1] - near_sum[1] * rest[0]) / determinant;
    if middle > 0.0 && tail > 0.0 && middle.is_finite() && tail.is_finite() {
        Ok((middle, tail))
    } else {
        Err(format!(
            "with this popularity no sizes above the median give both files of {:.0} bytes in all \
             and a mean request of {} bytes; a different exponent or size_sigma may",
            figures.total_bytes, figures.request_mean_bytes
        ))
    }
}
