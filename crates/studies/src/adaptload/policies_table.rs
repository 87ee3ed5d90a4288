//! The table of all policies.

use plimsoll_report::{Align, Section, Table};

use super::plan::{DayRun, SCAN_CACHES};
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
