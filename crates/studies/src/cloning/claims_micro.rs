//! Claims of section 4.1: figure 8.

use super::explain_micro as explain;
use super::micro::{LARGE_BYTES, MicroLoad, MicroMechanism as M, SIZES_BYTES, SMALL_BYTES};
use super::results::MicroResults;
use super::rule::{CloningClaimSpec, Conditioned, once};
use super::summary::{least, most};
use crate::judge::PaperReference::Figure;
use crate::judge::{AHEAD, BEHIND, NEAR, Rule};

type Spec = CloningClaimSpec<MicroResults>;

const fn figure(
    id: &'static str,
    (statement, paper_text): (&'static str, &'static str),
    rule: Rule,
    values: fn(&MicroResults) -> Vec<Conditioned>,
    explanation: fn(&[MicroResults]) -> String,
) -> Spec {
    let place = Figure(8);
    CloningClaimSpec { id, place, statement, paper: None, paper_text, unit: "×", rule, values, explanation }
}

/// Values for each load: the paper does not say how many requests were under way.
fn by_load(value: impl Fn(MicroLoad) -> Option<f64>) -> Vec<Conditioned> {
    MicroLoad::ALL.map(|load| (load.title().to_owned(), value(load))).to_vec()
}

fn sizes(wanted: impl Fn(u64) -> bool) -> impl Iterator<Item = u64> {
    SIZES_BYTES.into_iter().filter(move |&size| wanted(size))
}

/// What is read off a logarithmic axis is right within a factor of two.
const ABOUT: Rule = Rule::Between(0.5, 2.0);

pub(super) const SPECS: &[Spec] = &[
    figure(
        "e1",
        ("SC achieves nearly 100 % for large files (efficiency from 64 KB on, the least)", "nearly 100 %"),
        Rule::AtLeast(0.95),
        |r| by_load(|load| least(sizes(|s| s >= LARGE_BYTES).map(|s| r.efficiency(M::Cloning, load, s)))),
        explain::stages,
    ),
    figure(
        "e2",
        ("LARD achieves less than 80 % (efficiency from 64 KB on, the most)", "less than 80 %"),
        Rule::LessThan(0.8),
        |r| by_load(|load| most(sizes(|s| s >= LARGE_BYTES).map(|s| r.efficiency(M::Handoff, load, s)))),
        explain::acknowledgments,
    ),
    figure(
        "e3",
        ("CF stays about the same below one kilobyte (at 1 KB over that at 64 B)", "about the same"),
        Rule::Between(1.0 - NEAR, 1.0 + NEAR),
        |r| {
            by_load(|load| {
                let at = |size| r.efficiency(M::Forwarding, load, size);
                Some(at(SMALL_BYTES)? / at(SIZES_BYTES[0])?)
            })
        },
        explain::stages,
    ),
    Spec {
        paper: Some(0.5),
        ..figure(
            "e4",
            ("and drops to about 50 % for larger files (efficiency at 1 MB)", "about 50 %"),
            Rule::Within(NEAR),
            |r| by_load(|load| r.efficiency(M::Forwarding, load, SIZES_BYTES[SIZES_BYTES.len() - 1])),
            explain::stages,
        )
    },
    figure(
        "e5",
        ("the crossover of CF and LARD is at about 3 KB (ours over that)", "about 3 KB"),
        ABOUT,
        |r| by_load(|load| Some(r.crossing_bytes(load)? / (3.0 * 1024.0))),
        explain::crossing,
    ),
    figure(
        "e6",
        (
            "the setup cost of LARD is larger than the others' (efficiency at 64 B over the lesser of theirs)",
            "smaller",
        ),
        BEHIND,
        |r| {
            by_load(|load| {
                let at = |m| r.efficiency(m, load, SIZES_BYTES[0]);
                Some(at(M::Handoff)? / least([at(M::Cloning), at(M::Forwarding)])?)
            })
        },
        explain::stages,
    ),
    figure(
        "e7",
        (
            "SC incurs less overhead than both (efficiency over the better of theirs, the least of all sizes)",
            "less",
        ),
        AHEAD,
        |r| {
            by_load(|load| {
                let lead = |size| {
                    let at = |m| r.efficiency(m, load, size);
                    Some(at(M::Cloning)? / most([at(M::Forwarding), at(M::Handoff)])?)
                };
                least(sizes(|_| true).map(lead))
            })
        },
        explain::stages,
    ),
];

/// What the paper leaves open, changed.
pub(super) const CONTROLS: &[Spec] = &[
    figure(
        "x1",
        (
            "acknowledgments that take 90 µs to rewrite bring LARD below 80 % (efficiency from 64 KB on, the most)",
            "control",
        ),
        Rule::LessThan(0.8),
        |r| {
            let value = most(
                sizes(|s| s >= LARGE_BYTES).map(|s| r.efficiency(M::DearHandoff, MicroLoad::Saturated, s)),
            );
            once(value)
        },
        explain::acknowledgments,
    ),
    figure(
        "x2",
        (
            "on the Pentium II a clone is as efficient (over that on the Pentium III, from 64 B to 1 MB)",
            "control",
        ),
        Rule::Between(1.0 - NEAR, 1.0 + NEAR),
        |r| {
            let over = |size| {
                let load = MicroLoad::Saturated;
                Some(r.efficiency(M::SlowCloning, load, size)? / r.efficiency(M::Cloning, load, size)?)
            };
            sizes(|_| true).map(|size| (String::new(), over(size))).collect()
        },
        explain::machines,
    ),
];
