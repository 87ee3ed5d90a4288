//! What discarding slow answers improves, as table 2 has it.

/// Mean times of one way of asking, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeanTimes {
    /// From arrival to answer, polling included.
    pub(super) response_s: f64,
    /// From arrival until a server was chosen.
    pub(super) polling_s: f64,
}

/// By how many per cent `kept`, where slow answers are discarded, is better than `all`: with the polling time, or without it. Both are
/// shares of the whole response time, as in table 2: (51.6 − 2.7 − 47.3 + 1.1) / 51.6 is its 5.2 %.
pub(super) fn improvement(all: MeanTimes, kept: MeanTimes, with_polling: bool) -> f64 {
    let polling_s = if with_polling { 0.0 } else { all.polling_s - kept.polling_s };
    100.0 * (all.response_s - kept.response_s - polling_s) / all.response_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_table_2() {
        let ms =
            |response: f64, polling: f64| MeanTimes { response_s: response / 1e3, polling_s: polling / 1e3 };
        for (all, kept, with, without) in [
            (ms(282.1, 2.6), ms(283.1, 1.0), -0.4, -0.9),
            (ms(81.8, 2.7), ms(79.2, 1.1), 3.2, 1.2),
            (ms(51.6, 2.7), ms(47.3, 1.1), 8.3, 5.2),
        ] {
            assert!((improvement(all, kept, true) - with).abs() < 0.05);
            assert!((improvement(all, kept, false) - without).abs() < 0.05);
        }
    }
}
