//! The runs of figures 7 to 11, by the share of dynamic requests.

use super::cells::MIX_FIGURES;
use super::plan::{WebRun, WebStrategy as S};
use super::results::CsldResults;

/// Shares of dynamic requests of a figure for which there are runs, in thousandths.
pub(super) fn shares(r: &CsldResults, number: u32) -> Vec<u32> {
    let figure = MIX_FIGURES.iter().find(|figure| figure.number == number);
    let of = |&permille: &u32| r.latency_s(of_figure(S::RoundRobin, number, permille)).is_some();
    figure.map_or(Vec::new(), |figure| figure.permille.iter().copied().filter(of).collect())
}

/// A run of a figure.
pub(super) fn of_figure(strategy: S, number: u32, permille: u32) -> WebRun {
    let classes =
        MIX_FIGURES.iter().find(|figure| figure.number == number).map_or(0, |figure| figure.classes);
    WebRun::figure(strategy, (classes, permille))
}
