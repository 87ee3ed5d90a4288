//! Which runs make which table, figure and section.

use super::handoff;
use super::plan::{ConnectionLife, NODES, WebArrivals, WebRun, WebSite, WebStrategy};
use super::published::{PublishedCase, TABLE_4, TABLE_5, TABLE_5_MIX};
use crate::lard::Effort;

/// A part of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsldPart {
    /// Everything.
    All,
    /// Table 4 or 5.
    Table(u32),
    /// Figure 6 to 11.
    Figure(u32),
    /// What sections 4.2.2 and 4.3 say without a figure, negative controls, and what goes beyond the paper.
    Robustness,
    /// What section 5 of the LARD paper leaves open: connections that stay, handed off once, several times, or with forwarding.
    Handoff,
}

impl CsldPart {
    /// Whether something of this part is wanted.
    pub(super) fn wants(self, part: Self) -> bool {
        self == Self::All || self == part
    }
}

/// Figures 7 to 11: number, classes, and dynamic requests among a thousand. Up to where the peak saturates the cluster, and a little beyond.
pub(super) struct MixFigure {
    pub(super) number: u32,
    pub(super) classes: u64,
    pub(super) permille: &'static [u32],
    /// Those of the quick form.
    pub(super) quick: &'static [u32],
}

pub(super) const MIX_FIGURES: [MixFigure; 5] = [
    MixFigure {
        number: 7,
        classes: 3,
        permille: &[10, 20, 30, 40, 50, 60, 80, 100, 120, 136],
        quick: &[20, 40, 120, 136],
    },
    MixFigure {
        number: 8,
        classes: 12345,
        permille: &[10, 20, 40, 60, 80, 100, 120, 136],
        quick: &[20, 120],
    },
    MixFigure { number: 9, classes: 4, permille: &[10, 20, 40, 60, 80, 95, 103], quick: &[20, 95] },
    MixFigure {
        number: 10,
        classes: 5,
        permille: &[5, 10, 15, 20, 25, 30, 40, 55, 70, 82],
        quick: &[10, 20, 70],
    },
    MixFigure { number: 11, classes: 24680, permille: &[5, 10, 20, 30, 40, 50, 60, 68], quick: &[20, 60] },
];

/// Class, and dynamic requests among a thousand, "very high" for the peak day: half of what saturates its peak, that, and a little more.
pub(super) const CHEAP_MIXES: [(u64, u32); 6] = [(1, 190), (1, 380), (1, 400), (2, 95), (2, 190), (2, 200)];

/// Standard deviations of dynamic costs, in per cent of their means.
pub(super) const DEVIATIONS_PERCENT: [u32; 3] = [20, 30, 40];

/// The shorter mean round trip: a country's, not the world's.
pub(super) const SHORT_TRIP_MS: u32 = 20;

/// Cluster sizes, at the rate per server of case 4.
pub(super) const CLUSTER_SIZES: [usize; 5] = [4, 8, 12, 16, 32];

/// Other periods of `WRR_p`, in milliseconds.
pub(super) const POLL_PERIODS_MS: [u32; 3] = [200, 1000, 2000];

/// The heavy cases of table 4.
pub(super) const HEAVY: [u32; 3] = [2, 4, 6];

/// The light ones.
pub(super) const LIGHT: [u32; 3] = [1, 3, 5];

/// A case of table 4; numbers count from 1.
pub(super) const fn case(number: u32) -> &'static PublishedCase {
    &TABLE_4[number as usize - 1]
}

/// A run of a case of table 4.
pub(super) const fn of_case(strategy: WebStrategy, number: u32) -> WebRun {
    let case = case(number);
    WebRun::table(strategy, (case.classes, case.dynamic_permille), case.rate_rps)
}

/// A run of table 5 and figure 6.
pub(super) const fn of_rate(strategy: WebStrategy, rate_rps: u32) -> WebRun {
    WebRun::table(strategy, TABLE_5_MIX, rate_rps)
}

/// Case 4 on so many servers.
pub(super) const fn of_size(strategy: WebStrategy, nodes: usize) -> WebRun {
    let run = of_case(strategy, 4);
    let rate_rps = case(4).rate_rps * nodes as u32 / NODES as u32;
    WebRun { nodes, arrivals: WebArrivals::Exponential { rate_rps }, ..run }
}

pub(super) const fn deviating(strategy: WebStrategy, number: u32, deviation_percent: u32) -> WebRun {
    WebRun { deviation_percent, ..of_case(strategy, number) }
}

pub(super) const fn short_trips(strategy: WebStrategy, number: u32) -> WebRun {
    WebRun { round_trip_ms: SHORT_TRIP_MS, ..of_case(strategy, number) }
}

pub(super) const fn low_locality(strategy: WebStrategy, number: u32) -> WebRun {
    WebRun { site: WebSite::LowLocality, ..of_case(strategy, number) }
}

pub(super) const fn persistent(strategy: WebStrategy, number: u32) -> WebRun {
    WebRun { connections: ConnectionLife::Persistent, ..of_case(strategy, number) }
}

/// Least connections, counted from the SYN on.
pub(super) const fn counted_from_syn(number: u32) -> WebRun {
    WebRun { counted_from_syn: true, ..of_case(WebStrategy::LeastConnections, number) }
}

/// The runs of a part, in order and each once.
pub(super) fn cells(effort: Effort, part: CsldPart) -> Vec<WebRun> {
    let quick = effort == Effort::Quick;
    let mut cells = Vec::new();
    if part.wants(CsldPart::Table(4)) {
        for case in TABLE_4 {
            cells.extend(WebStrategy::TABLE_4.map(|strategy| of_case(strategy, case.number)));
        }
    }
    for wanted in [CsldPart::Table(5), CsldPart::Figure(6)] {
        if part.wants(wanted) {
            cells.extend(TABLE_5.map(|(rate_rps, _)| of_rate(WebStrategy::RoundRobin, rate_rps)));
        }
    }
    if part.wants(CsldPart::Figure(6)) {
        for (rate_rps, _) in TABLE_5 {
            cells.extend(WebStrategy::FIGURES.map(|strategy| of_rate(strategy, rate_rps)));
        }
    }
    for figure in MIX_FIGURES.iter().filter(|figure| part.wants(CsldPart::Figure(figure.number))) {
        for &permille in if quick { figure.quick } else { figure.permille } {
            let mix = (figure.classes, permille);
            cells.extend(WebStrategy::FIGURES.map(|strategy| WebRun::figure(strategy, mix)));
        }
    }
    if part.wants(CsldPart::Robustness) {
        cells.extend(robustness(quick));
        cells.extend(beyond(quick));
    }
    if part.wants(CsldPart::Handoff) {
        cells.extend(handoff::runs(quick));
    }
    cells.sort_unstable();
    cells.dedup();
    cells
}

/// Runs for what the paper says beside its tables and figures.
fn robustness(quick: bool) -> Vec<WebRun> {
    let some = |all: &'static [u32]| if quick { &all[1..2] } else { all };
    let mut cells = Vec::new();
    for mix in if quick { &CHEAP_MIXES[1..2] } else { &CHEAP_MIXES[..] } {
        cells.extend(WebStrategy::FIGURES.map(|strategy| WebRun::figure(strategy, *mix)));
    }
    for &number in some(&HEAVY) {
        let pairs = [WebStrategy::WrrA, WebStrategy::Csld];
        cells.extend(pairs.into_iter().flat_map(|s| DEVIATIONS_PERCENT.map(|sd| deviating(s, number, sd))));
        cells.extend(POLL_PERIODS_MS.map(|period_ms| of_case(WebStrategy::WrrPolls { period_ms }, number)));
        cells.push(of_case(WebStrategy::WRR_P, number));
    }
    for number in [1, 4] {
        for strategy in WebStrategy::FIGURES.into_iter().chain([WebStrategy::LeastConnections]) {
            cells.extend([short_trips(strategy, number), of_case(strategy, number)]);
        }
        cells.extend(WebStrategy::FIGURES.map(|strategy| low_locality(strategy, number)));
    }
    for &number in some(&HEAVY) {
        let adapted = [WebStrategy::WrrAHalf, WebStrategy::CsldAdaptive];
        for strategy in WebStrategy::FIGURES.into_iter().chain(adapted) {
            cells.extend([persistent(strategy, number), of_case(strategy, number)]);
        }
    }
    for nodes in if quick { &CLUSTER_SIZES[1..2] } else { &CLUSTER_SIZES[..] } {
        cells.extend(WebStrategy::FIGURES.map(|strategy| of_size(strategy, *nodes)));
    }
    cells
}

/// Readings that must fail, and the paper's future work.
fn beyond(quick: bool) -> Vec<WebRun> {
    let mut cells = Vec::new();
    for &number in if quick { &HEAVY[1..2] } else { &HEAVY[..] } {
        cells.extend(
            [WebStrategy::Csld, WebStrategy::CsldRunsOn, WebStrategy::CsldUncleared, WebStrategy::CsldFine]
                .map(|strategy| of_case(strategy, number)),
        );
        cells.extend([
            of_case(WebStrategy::RoundRobin, number),
            of_case(WebStrategy::LeastConnections, number),
        ]);
        cells.extend([counted_from_syn(number), of_case(WebStrategy::WrrDearLate, number)]);
        cells.extend([WebStrategy::WrrA, WebStrategy::WrrDearA].map(|strategy| of_case(strategy, number)));
    }
    let future =
        [WebStrategy::Csld, WebStrategy::CsldAdaptive, WebStrategy::CsldStamped, WebStrategy::CsldHits];
    for case in TABLE_4.iter().filter(|case| !quick || case.number == 4) {
        cells.extend(future.map(|strategy| of_case(strategy, case.number)));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_in_the_whole_and_quick_is_less() {
        let whole = cells(Effort::Full, CsldPart::All);
        let parts =
            [CsldPart::Table(4), CsldPart::Table(5), CsldPart::Robustness, CsldPart::Handoff].into_iter();
        let mut of_parts: Vec<WebRun> = parts
            .chain((6..=11).map(CsldPart::Figure))
            .flat_map(|part| {
                let cells = cells(Effort::Full, part);
                assert!(!cells.is_empty(), "{part:?}");
                cells
            })
            .collect();
        of_parts.sort_unstable();
        of_parts.dedup();
        assert_eq!(of_parts, whole);
        let quick = cells(Effort::Quick, CsldPart::All);
        assert!(quick.len() < whole.len() && quick.iter().all(|run| whole.contains(run)));
    }

    #[test]
    fn clusters_grow_at_one_rate_per_server() {
        let rate = |nodes| match of_size(WebStrategy::Csld, nodes).arrivals {
            WebArrivals::Exponential { rate_rps } => rate_rps,
            WebArrivals::PeakDay => 0,
        };
        assert_eq!((rate(4), rate(16), rate(32)), (1200, 4800, 9600));
        assert_eq!(of_size(WebStrategy::Csld, NODES), of_case(WebStrategy::Csld, 4));
    }
}
