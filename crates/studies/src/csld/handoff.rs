//! Who distributes the requests of connections that stay: what Pai et al. (LARD, ASPLOS 1998) leave open in section 5.
//!
//! Their protocol hands a connection off once, or for each request. They had made no experiments with HTTP/1.1, and name no winner: so there are
//! measurements here, and no claims. The third way, back-ends that fetch from one another, is beside theirs.

use super::plan::{ConnectionLife, FrontEndKind, WebRun, WebStrategy};
use super::published::TABLE_4;

/// What is asked for, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandoffLoad {
    /// Case 4 of table 4, whose load is mostly of dynamic requests: locality saves little.
    Case4,
    /// No dynamic requests, at a rate that saturates the disks without locality.
    Static,
}

/// Requests per second of [`HandoffLoad::Static`].
const STATIC_RATE_RPS: u32 = 10_000;

pub(super) const LOADS: [HandoffLoad; 2] = [HandoffLoad::Case4, HandoffLoad::Static];

pub(super) const LIVES: [ConnectionLife; 2] = [ConnectionLife::Persistent, ConnectionLife::AllPersistent];

/// One that chooses by load alone, and one by locality, too.
pub(super) const STRATEGIES: [WebStrategy; 2] = [WebStrategy::LeastConnections, WebStrategy::LardR];

pub(super) const FRONT_ENDS: [(FrontEndKind, &str); 3] = [
    (FrontEndKind::OneHandoff, "one handoff"),
    (FrontEndKind::MultipleHandoff, "multiple handoff"),
    (FrontEndKind::Forwarding, "forwarding"),
];

impl HandoffLoad {
    /// Classes and share in thousandths of dynamic requests, and requests per second.
    fn asked(self) -> ((u64, u32), u32) {
        let case = &TABLE_4[3];
        match self {
            Self::Case4 => ((case.classes, case.dynamic_permille), case.rate_rps),
            Self::Static => ((case.classes, 0), STATIC_RATE_RPS),
        }
    }

    /// In words.
    pub(super) fn title(self) -> String {
        let what = if self == Self::Case4 { "case 4" } else { "no dynamic requests" };
        format!("{what}, {} requests per second", self.asked().1)
    }
}

pub(super) fn run(
    strategy: WebStrategy,
    front_end: FrontEndKind,
    load: HandoffLoad,
    connections: ConnectionLife,
) -> WebRun {
    let (mix, rate_rps) = load.asked();
    WebRun { connections, front_end, ..WebRun::table(strategy, mix, rate_rps) }
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

#[cfg(test)]
mod tests {
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
}
