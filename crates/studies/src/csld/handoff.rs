//! Who distributes the requests of connections that stay: what Pai et al. (LARD, ASPLOS 1998) leave open in section 5.
//!
//! Their protocol hands a connection off once, or for each request. They had made no experiments with HTTP/1.1, and name no winner: so there are
//! measurements here, and no claims. The third way, back-ends that fetch from one another, is beside theirs.

use plimsoll_report::{Section, Table};

use super::plan::{ConnectionLife, FrontEndKind, WebArrivals, WebRun, WebStrategy};
use super::published::{PublishedCase, TABLE_4};
use super::results::{CsldResults, columns, seed_cell};

/// What is asked for, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandoffLoad {
    /// Case 4 of table 4, whose load is mostly of dynamic requests: locality saves little.
    Case4,
    /// No dynamic requests, at a rate at which least connections keep the disks busy: locality saves much.
    Static,
}

/// Requests per second of [`HandoffLoad::Static`].
const STATIC_RATE_RPS: u32 = 10_000;

const LOADS: [HandoffLoad; 2] = [HandoffLoad::Case4, HandoffLoad::Static];

const LIVES: [ConnectionLife; 2] = [ConnectionLife::Persistent, ConnectionLife::AllPersistent];

/// One that chooses by load alone, and one by locality, too.
const STRATEGIES: [WebStrategy; 2] = [WebStrategy::LeastConnections, WebStrategy::LardR];

const FRONT_ENDS: [(FrontEndKind, &str); 3] = [
    (FrontEndKind::OneHandoff, "one handoff"),
    (FrontEndKind::MultipleHandoff, "multiple handoff"),
    (FrontEndKind::Forwarding, "forwarding"),
];

const CASE_4: &PublishedCase = &TABLE_4[3];

const fn case_4(strategy: WebStrategy) -> WebRun {
    WebRun::table(strategy, (CASE_4.classes, CASE_4.dynamic_permille), CASE_4.rate_rps)
}

fn run(
    strategy: WebStrategy,
    front_end: FrontEndKind,
    load: HandoffLoad,
    connections: ConnectionLife,
) -> WebRun {
    let of_load = match load {
        HandoffLoad::Case4 => case_4(strategy),
        HandoffLoad::Static => {
            let arrivals = WebArrivals::Exponential { rate_rps: STATIC_RATE_RPS };
            WebRun { dynamic_permille: 0, arrivals, ..case_4(strategy) }
        }
    };
    WebRun { connections, front_end, ..of_load }
}

/// The runs; the quick form has those in which all clients use HTTP/1.1 in case 4.
pub(super) fn runs(quick: bool) -> Vec<WebRun> {
    let (loads, lives) = if quick { (&LOADS[..1], &LIVES[1..]) } else { (&LOADS[..], &LIVES[..]) };
    let mut runs = Vec::new();
    for (&load, &life) in loads.iter().flat_map(|load| lives.iter().map(move |life| (load, life))) {
        for strategy in STRATEGIES {
            runs.extend(FRONT_ENDS.map(|(front_end, _)| run(strategy, front_end, load, life)));
        }
    }
    runs
}

fn table(seeds: &[CsldResults], load: HandoffLoad, life: ConnectionLife) -> Table {
    let what = match load {
        HandoffLoad::Case4 => "case 4",
        HandoffLoad::Static => "no dynamic requests",
    };
    let rate_rps = if load == HandoffLoad::Case4 { CASE_4.rate_rps } else { STATIC_RATE_RPS };
    let whose = if life == ConnectionLife::AllPersistent { "by all clients" } else { "as the log has it" };
    let names = [
        "server latency, s",
        "user latency, s",
        "CPUs busy, %",
        "disk reads per request, %",
        "requests per connection",
        "refused, %",
    ];
    let mut table = columns(names.map(str::to_owned))
        .captioned(format!("HTTP/1.1 {whose}, {what}, {rate_rps} requests per second"));
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

    use super::*;

    #[test]
    fn runs_differ_and_the_quick_form_has_a_quarter() {
        let (mut all, quick) = (runs(false), runs(true));
        assert_eq!((all.len(), quick.len()), (24, 6));
        assert!(quick.iter().all(|run| all.contains(run)));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 24);
    }

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
