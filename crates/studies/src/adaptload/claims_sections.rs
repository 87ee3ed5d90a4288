//! The claims of the sections without a figure: footnotes 3 and 4, K and α, and the parts of section 8.

use super::explain::{ALONE, CONNECTIONS, NOT_EXPLAINED, SAMPLING};
use super::measures::least;
use super::plan::{ADAPTLOAD, ALPHAS, BATCHES, Contender, DayRun, IMPROVED_CACHE, JSQ, LARD_BEST};
use super::results::AdaptLoadResults;
use super::rule::PaperReference::Section;
use super::rule::{AdaptLoadClaimSpec, EQUAL, NEAR, Over, Rule};

/// Slowdown with each α and this K.
fn slowdowns(r: &AdaptLoadResults, batch: u32) -> Option<Vec<(f64, f64)>> {
    let one = |alpha| {
        let slowdown = r.slowdown(DayRun::day(Contender::Sampling(batch, alpha), 15))?;
        Some((f64::from(alpha) / 100.0, slowdown))
    };
    ALPHAS.into_iter().map(one).collect()
}

/// The best α with this K.
fn best_alpha(r: &AdaptLoadResults, batch: u32) -> Option<f64> {
    slowdowns(r, batch)?.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(alpha, _)| alpha)
}

/// Slowdown with the best α.
fn best(r: &AdaptLoadResults, batch: u32) -> Option<f64> {
    least(slowdowns(r, batch)?.into_iter().map(|(_, slowdown)| slowdown))
}

/// Pairs of policies of which one is ahead without the cost of connections, and the other with it. Policies that are
/// as good as equal are in no order.
fn changed_orders(r: &AdaptLoadResults) -> Option<f64> {
    let mut changed = 0;
    for (a, b) in [(ADAPTLOAD, JSQ), (ADAPTLOAD, LARD_BEST), (LARD_BEST, JSQ)] {
        let order = |cell: fn(Contender) -> DayRun| {
            let ratio = r.slowdown(cell(a))? / r.slowdown(cell(b))?;
            Some(if (ratio - 1.0).abs() <= EQUAL {
                0
            } else if ratio > 1.0 {
                1
            } else {
                -1
            })
        };
        changed += i32::from(order(|c| DayRun::day(c, 15))? * order(DayRun::connections)? < 0);
    }
    Some(f64::from(changed))
}

pub(super) const SPECS: &[AdaptLoadClaimSpec] = &[
    AdaptLoadClaimSpec {
        id: "a66",
        place: Section("5", None),
        over: Over::Day,
        statement: "JSWQ's performance is very close to JSQ's or worse (slowdown at 15 %, JSWQ over JSQ)",
        paper: None,
        paper_text: "very close or worse",
        unit: "×",
        rule: Rule::AtLeast(1.0 - NEAR),
        value: |r| r.ratio(Contender::Jswq, JSQ, 15),
        explanation: NOT_EXPLAINED,
    },
    AdaptLoadClaimSpec {
        id: "a67",
        place: Section("6", None),
        over: Over::Day,
        statement: "with K = 32,768 the optimal α is very close to 0 (the best of 0, 0.5 and 0.9, caches of 15 %)",
        paper: Some(0.0),
        paper_text: "very close to 0",
        unit: "",
        // Of the values tried only 0 is close to 0.
        rule: Rule::AtMost(0.1),
        value: |r| best_alpha(r, BATCHES[1]),
        explanation: SAMPLING,
    },
    AdaptLoadClaimSpec {
        id: "a68",
        place: Section("6", None),
        over: Over::Day,
        statement: "with K = 512 it is closer to 1",
        paper: None,
        paper_text: "closer to 1",
        unit: "",
        rule: Rule::MoreThan(0.5),
        value: |r| best_alpha(r, BATCHES[0]),
        explanation: SAMPLING,
    },
    AdaptLoadClaimSpec {
        id: "a69",
        place: Section("9", None),
        over: Over::Day,
        statement: "AdaptLoad is rather insensitive to the frequency of sampling (K = 512 over K = 32,768, each with its best α)",
        paper: Some(1.0),
        paper_text: "rather insensitive",
        unit: "×",
        rule: Rule::Within(NEAR),
        value: |r| Some(best(r, BATCHES[0])? / best(r, BATCHES[1])?),
        explanation: SAMPLING,
    },
    AdaptLoadClaimSpec {
        id: "a70",
        place: Section("5", None),
        over: Over::Day,
        statement: "the cost of connections changes no order (pairs of AdaptLoad, JSQ and LARD that change it, of three)",
        paper: Some(0.0),
        paper_text: "qualitatively the same",
        unit: "",
        rule: Rule::AtMost(0.0),
        value: changed_orders,
        explanation: CONNECTIONS,
    },
    AdaptLoadClaimSpec {
        id: "a71",
        place: Section("8", Some(14)),
        over: Over::Day,
        statement: "the second scan alone improves AdaptLoad (caches of 60 %, original over it; the paper shows both parts together)",
        paper: None,
        paper_text: "equalizes queues",
        unit: "×",
        rule: Rule::MoreThan(1.0 + EQUAL),
        value: |r| r.ratio(ADAPTLOAD, Contender::SecondScan, IMPROVED_CACHE),
        explanation: ALONE,
    },
    AdaptLoadClaimSpec {
        id: "a72",
        place: Section("8", Some(14)),
        over: Over::Day,
        statement: "off-loading to idle back-ends alone improves AdaptLoad (likewise)",
        paper: None,
        paper_text: "equalizes utilization",
        unit: "×",
        rule: Rule::MoreThan(1.0 + EQUAL),
        value: |r| r.ratio(ADAPTLOAD, Contender::OffLoading, IMPROVED_CACHE),
        explanation: ALONE,
    },
];
