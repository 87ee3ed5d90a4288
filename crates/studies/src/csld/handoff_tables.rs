//! Tables of connections that stay.

use plimsoll_report::{Section, Table};

use super::handoff::{FRONT_ENDS, HandoffLoad, LIVES, LOADS, STRATEGIES, run};
use super::plan::ConnectionLife;
use super::results::columns;
use super::results::{CsldResults, seed_cell};

fn table(seeds: &[CsldResults], load: HandoffLoad, life: ConnectionLife) -> Table {
    let whose = if life == ConnectionLife::AllPersistent { "by all clients" } else { "as the log has it" };
    let names = [
        "server latency, s",
        "user latency, s",
        "CPUs busy, %",
        "disk reads per request, %",
        "requests per connection",
        "refused, %",
    ];
    let mut table =
        columns(names.map(str::to_owned)).captioned(format!("HTTP/1.1 {whose}, {}", load.title()));
    for (strategy, (front_end, how)) in STRATEGIES.into_iter().flat_map(|s| FRONT_ENDS.map(|f| (s, f))) {
        let of = run(strategy, front_end, load, life);
        table.row([
            format!("{}, {how}", strategy.title()),
            seed_cell(seeds, (1.0, 4), |r| r.latency_s(of)),
            seed_cell(seeds, (1.0, 4), |r| r.user_latency_s(of)),
            seed_cell(seeds, (1.0, 1), |r| r.cpu_percent(of)),
            seed_cell(seeds, (1.0, 2), |r| r.miss_percent(of)),
            seed_cell(seeds, (1.0, 2), |r| r.requests_per_connection(of)),
            seed_cell(seeds, (1.0, 3), |r| r.refused_percent(of)),
        ]);
    }
    table
}

/// The tables of what was run.
pub(super) fn section(seeds: &[CsldResults]) -> Section {
    let text = "Measured, without a verdict: Pai et al., ASPLOS 1998, section 5, leave open how requests of connections that stay are best \
                distributed. One handoff: the first request of a connection decides for all. Multiple handoff: each request is chosen for \
                anew, and the connection moves. Forwarding: the connection stays, and its back-end fetches answers from the one chosen.";
    let mut section = Section::new("HTTP/1.1: connection handoff").paragraph(text);
    for (load, life) in LOADS.into_iter().flat_map(|load| LIVES.map(|life| (load, life))) {
        let of = run(STRATEGIES[0], FRONT_ENDS[0].0, load, life);
        if seeds.iter().any(|r| r.latency_s(of).is_some()) {
            section = section.table(table(seeds, load, life));
        }
    }
    section
}

#[cfg(test)]
mod tests {
    use plimsoll_report::Report;

    use super::super::handoff::runs;
    use super::*;

    #[test]
    fn a_section_has_tables_of_what_was_run_alone() {
        let mut results = CsldResults { seed: 1, runs: Default::default() };
        let page = |results: &CsldResults| {
            Report::new("", "").section(section(std::slice::from_ref(results))).to_html()
        };
        assert_eq!(page(&results).matches("forwarding").count(), 0);
        for of in runs(true) {
            results.runs.insert(of, (crate::testing::run(), Default::default()));
        }
        assert_eq!(page(&results).matches("LARD/R, forwarding").count(), 1);
    }
}
