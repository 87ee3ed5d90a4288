//! What the paper publishes in tables 4 and 5, as printed.

use super::plan::WebStrategy;

/// A row of table 4.
#[derive(Debug, Clone, Copy)]
pub(super) struct PublishedCase {
    /// Number of the case.
    pub(super) number: u32,
    /// `C_dreq`: the class of the dynamic requests.
    pub(super) classes: u64,
    /// `P_dreq`, in thousandths.
    pub(super) dynamic_permille: u32,
    /// `R_req`, requests per second.
    pub(super) rate_rps: u32,
    /// Mean server latencies in seconds, in the order of [`WebStrategy::TABLE_4`]; true where some connections were rejected.
    pub(super) latencies: [(f64, bool); 9],
}

const fn case(
    number: u32,
    (classes, dynamic_permille, rate_rps): (u64, u32, u32),
    latencies: [(f64, bool); 9],
) -> PublishedCase {
    PublishedCase { number, classes, dynamic_permille, rate_rps, latencies }
}

const fn all(latency_s: f64) -> (f64, bool) {
    (latency_s, false)
}

const fn some_rejected(latency_s: f64) -> (f64, bool) {
    (latency_s, true)
}

/// Table 4.
pub(super) const TABLE_4: [PublishedCase; 6] = [
    case(
        1,
        (3, 50, 4000),
        [
            all(0.0226),
            all(0.2172),
            all(0.0186),
            all(0.0209),
            all(0.0229),
            all(0.0219),
            all(0.0230),
            all(0.0245),
            all(0.0223),
        ],
    ),
    case(
        2,
        (3, 64, 6400),
        [
            all(0.3469),
            some_rejected(0.5041),
            all(0.1309),
            all(0.1759),
            all(0.1805),
            some_rejected(1.4940),
            all(0.2113),
            all(0.1835),
            all(0.1500),
        ],
    ),
    case(
        3,
        (4, 40, 4000),
        [
            all(0.0267),
            some_rejected(0.2247),
            all(0.0225),
            all(0.0254),
            all(0.0273),
            all(0.0256),
            all(0.0275),
            all(0.0298),
            all(0.0262),
        ],
    ),
    case(
        4,
        (4, 60, 4800),
        [
            all(0.1202),
            all(0.4606),
            all(0.0799),
            all(0.0932),
            all(0.1008),
            all(0.1003),
            all(0.1049),
            some_rejected(1.7166),
            all(0.0829),
        ],
    ),
    case(
        5,
        (5, 40, 4000),
        [
            all(0.0428),
            all(0.2674),
            all(0.0347),
            all(0.0363),
            all(0.0423),
            all(0.0370),
            all(0.0429),
            some_rejected(0.7917),
            all(0.0395),
        ],
    ),
    case(
        6,
        (5, 68, 4000),
        [
            all(0.9975),
            all(0.6065),
            all(0.2564),
            all(0.3802),
            all(0.4503),
            some_rejected(2.2888),
            all(0.8784),
            some_rejected(2.6801),
            all(0.3139),
        ],
    ),
];

impl PublishedCase {
    /// The mean server latency in seconds, and whether connections were rejected.
    pub(super) fn of(&self, strategy: WebStrategy) -> Option<(f64, bool)> {
        let place = WebStrategy::TABLE_4.iter().position(|known| *known == strategy)?;
        Some(self.latencies[place])
    }
}

/// `C_dreq` and `P_dreq` in thousandths of table 5 and figure 6.
pub(super) const TABLE_5_MIX: (u64, u32) = (4, 50);

/// Table 5: requests per second, and the mean server latency of round robin in seconds.
pub(super) const TABLE_5: [(u32, f64); 6] =
    [(3000, 0.0211), (4000, 0.0341), (5000, 0.0567), (6000, 0.1734), (6200, 0.4644), (6300, 1.5899)];

/// Rejected connections at the last rate of table 5, in per cent.
pub(super) const REJECTED_AT_PEAK: [(WebStrategy, f64); 4] = [
    (WebStrategy::RoundRobin, 3.6),
    (WebStrategy::WrrI, 1.8),
    (WebStrategy::WrrA, 3.9),
    (WebStrategy::Csld, 2.1),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Read off the paper's page, not off the table above.
    #[test]
    fn cells_stand_in_the_papers_columns() {
        let cell = |case: usize, strategy| TABLE_4[case - 1].of(strategy);
        assert_eq!(cell(1, WebStrategy::WRR_P), Some((0.0245, false)));
        assert_eq!(cell(2, WebStrategy::WrrDearA), Some((1.4940, true)));
        assert_eq!(cell(3, WebStrategy::LeastConnections), Some((0.2247, true)));
        assert_eq!(cell(4, WebStrategy::WrrB), Some((0.1008, false)));
        assert_eq!(cell(6, WebStrategy::Csld), Some((0.3139, false)));
        assert_eq!(cell(6, WebStrategy::CsldFine), None);
        let rejecting = TABLE_4.iter().flat_map(|case| case.latencies).filter(|cell| cell.1).count();
        assert_eq!(rejecting, 7);
    }
}
