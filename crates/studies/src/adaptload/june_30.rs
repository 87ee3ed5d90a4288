//! Another day of the World Cup: 30 June 1998, the site's busiest, beside the paper's 24 June.
//!
//! The paper calls its day representative, and has figures of no other. Of 30 June the Internet Traffic Archive publishes
//! requests and bytes: those of a day and an hour, but of all rows of the log, with answers without a body and errors. The
//! paper's transfers are fewer and larger than the rows of its own day; what it counts on 30 June is taken to differ from
//! the rows of the log in the same proportion. Number and sizes of files, and the median request, are those of 24 June, for
//! nothing is known of them. So are lives. There are no bursts, and the mix drifts by as much less as the log's mean
//! sizes differ less (c23).

/// Rows and bytes of the log of 24 June (day 60 of the archive), and of 30 June (day 66).
const LOG_24_JUNE: (u64, u64) = (48_414_512, 192_831_354_597);
const LOG_30_JUNE: (u64, u64) = (72_600_034, 210_139_453_439);
/// The paper's transfers and their mean size in bytes.
const PAPER_24_JUNE: (u64, f64) = (38_834_515, 5_124.85);

/// `surge` of the synthetic day: with 0.75 requests in quiet hours are larger than at the peak as in the log; with 24 June's 2
/// they are 2.6 times as large. Fitted to nothing else.
pub(super) const SURGE: &str = "0.75";

/// Rows of the log of 30 June in each hour from local midnight on, in thousands.
const HOURS: [u64; 24] = [
    1_305, 1_166, 1_152, 1_022, 891, 857, 752, 778, 940, 969, 945, 960, 988, 1_095, 1_281, 1_565, 3_355,
    7_675, 7_938, 5_087, 4_447, 7_193, 9_382, 10_859,
];

/// Transfers of 30 June.
pub(super) fn requests() -> u64 {
    (LOG_30_JUNE.0 as f64 * PAPER_24_JUNE.0 as f64 / LOG_24_JUNE.0 as f64).round() as u64
}

fn mean_bytes(log: (u64, u64)) -> f64 {
    log.1 as f64 / log.0 as f64
}

/// Their mean size.
pub(super) fn request_mean_bytes() -> f64 {
    PAPER_24_JUNE.1 * mean_bytes(LOG_30_JUNE) / mean_bytes(LOG_24_JUNE)
}

/// Requests of each minute: the hours' in straight lines from the middle of one to that of the next.
pub(super) fn profile() -> Vec<u64> {
    let minute = |minute: usize| {
        // In half minutes from the middle of the first hour.
        let at = (2 * minute + 1).saturating_sub(60).min(2 * 60 * (HOURS.len() - 1));
        let (hour, part) = (at / 120, (at % 120) as u64);
        let next = HOURS[(hour + 1).min(HOURS.len() - 1)];
        (HOURS[hour] * (120 - part) + next * part) * 1_000 / 120 / 60
    };
    (0..60 * HOURS.len()).map(minute).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hours_are_those_of_the_log() {
        let sum: u64 = HOURS.iter().sum();
        assert!(sum.abs_diff(LOG_30_JUNE.0 / 1_000) <= 12, "{sum}");
        assert_eq!(requests(), 58_234_339);
        assert!((request_mean_bytes() - 3_724.34).abs() < 0.01);
    }

    #[test]
    fn the_profile_goes_through_the_middles_of_the_hours() {
        let profile = profile();
        assert_eq!(profile.len(), 1_440);
        // The two minutes about the middle of an hour.
        for (hour, &thousands) in HOURS.iter().enumerate() {
            let middle = (profile[60 * hour + 29] + profile[60 * hour + 30]) / 2;
            let given = thousands * 1_000 / 60;
            assert!(middle.abs_diff(given) <= given / 50, "hour {hour}: {middle}, not {given}");
        }
        let per_hour = |hour: usize| profile[60 * hour..60 * (hour + 1)].iter().sum::<u64>();
        assert!((0..24).all(|h| per_hour(h).abs_diff(HOURS[h] * 1_000) <= HOURS[h] * 300), "a few tenths");
        assert_eq!(profile[1_439], 10_859_000 / 60);
    }
}
