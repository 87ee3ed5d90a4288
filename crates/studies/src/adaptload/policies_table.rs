//! The table of all policies, and that of their names.

use plimsoll_report::{Align, Section, Table};

use super::plan::{ADAPTLOAD, Contender, DayRun, JSQ, LARD_BEST, SCAN_CACHES};
use super::results::AdaptLoadResults;

/// Every contender at the caches of figure 5; LARD with all thresholds tried.
pub(super) fn section(r: &AdaptLoadResults) -> Section {
    let right = |text: &'static str| (text, Align::Right);
    let mut table = Table::new([
        right("cache, %"),
        ("policy", Align::Left),
        right("mean slowdown"),
        right("without cold start"),
        right("mean response time, ms"),
        right("without cold start, ms"),
        right("hit ratio, %"),
        right("network, %"),
        right("disk, %"),
    ]);
    let warm = r.warm();
    let is_day = |cell: &DayRun, cache| *cell == DayRun::day(cell.contender, cache);
    let at = |&cache| r.done.iter().filter(move |(cell, _)| is_day(cell, cache));
    for (cell, done) in SCAN_CACHES.iter().flat_map(at) {
        let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
        let percent = |share: Option<f64>| shown(share.map(|s| 100.0 * s));
        let ms = |r: &AdaptLoadResults| r.response_s(*cell).map(|s| 1e3 * s);
        table.row([
            cell.cache_percent.to_string(),
            cell.contender.name(),
            shown(r.slowdown(*cell)),
            shown(warm.as_ref().and_then(|warm| warm.slowdown(*cell))),
            shown(ms(r)),
            shown(warm.as_ref().and_then(ms)),
            percent(r.hit_ratio(*cell)),
            percent(Some(done.run.utilization.cpu)),
            percent(done.run.utilization.disk),
        ]);
    }
    Section::new("All policies, at the caches of figure 5").table(table)
}

/// The paper's names of the policies; a claim quotes them.
const PAPER_NAMES: [(&str, Contender); 6] = [
    ("AdaptLoad", ADAPTLOAD),
    ("AdaptLoad, improved (section 8)", Contender::Improved),
    ("JSQ", JSQ),
    ("LARD", LARD_BEST),
    ("JSWQ", Contender::Jswq),
    ("SITA-E", Contender::SitaE),
];

pub(super) fn names() -> Section {
    let mut table = Table::new([("in the paper and the claims", Align::Left), ("here", Align::Left)]);
    for (paper, ours) in PAPER_NAMES {
        table.row([paper.to_owned(), ours.name()]);
    }
    Section::new("Names").table(table)
}
