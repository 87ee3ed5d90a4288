//! The claims of the sections without a figure: speeds in section 4, footnotes 3 and 4, K and α, and the parts of section 8.
//!
//! Words with one bound in both studies have its reason in `judge.rs`.

use plimsoll_report::PerBackend;

use super::claims::EVEN;
use super::cluster::{FAST_BACKENDS, FAST_SPEED};
use super::explain::{ALONE, CONNECTIONS, NOT_EXPLAINED, SAMPLING, UNEQUAL};
use super::measures::{DAY, least};
use super::plan::{ADAPTLOAD, ALPHAS, BATCHES, Contender, DayRun, IMPROVED_CACHE, JSQ, LARD_BEST};
use super::results::{AdaptLoadResults, spread};
use super::rule::PaperReference::Section;
use super::rule::{AHEAD, AdaptLoadClaimSpec, EQUAL, MATCHES, NEAR, Over, Rule};

/// Slowdown with this K and this α in per cent.
fn with_alpha(r: &AdaptLoadResults, batch: u32, alpha: u32) -> Option<f64> {
    r.slowdown(DayRun::day(Contender::Sampling(batch, alpha), 15))
}

/// Slowdown with this K and the best α.
fn best(r: &AdaptLoadResults, batch: u32) -> Option<f64> {
    let all: Option<Vec<f64>> = ALPHAS.into_iter().map(|alpha| with_alpha(r, batch, alpha)).collect();
    least(all?.into_iter())
}

/// Share of all that is sent that the fast back-ends send, in per cent.
fn fast_share(r: &AdaptLoadResults) -> Option<f64> {
    let run = &r.get(DayRun::unequal(ADAPTLOAD, true))?.run;
    let sent = |(b, backend): (usize, &PerBackend)| {
        backend.cpu * if b < usize::from(FAST_BACKENDS) { FAST_SPEED } else { 1.0 }
    };
    let sent: Vec<f64> = run.per_backend.iter().enumerate().map(sent).collect();
    let all: f64 = sent.iter().sum();
    (all > 0.0).then(|| 100.0 * sent.iter().take(usize::from(FAST_BACKENDS)).sum::<f64>() / all)
}

/// Slowdown of `a` over that of `b` on back-ends of unequal speed.
fn unequal(r: &AdaptLoadResults, a: (Contender, bool), b: (Contender, bool)) -> Option<f64> {
    let of = |(contender, weighted)| r.slowdown(DayRun::unequal(contender, weighted));
    Some(of(a)? / of(b)?)
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
        id: "a74",
        place: Section("4", Some(6)),
        over: Over::Points,
        statement: "with two back-ends twice as fast as the other two, and speeds as weights, AdaptLoad allocates 2/6 of the load to each of the fast ones (share of what both send)",
        paper: Some(200.0 / 3.0),
        paper_text: "b_n / Σ b_i: 66.7 %",
        unit: "%",
        // The share is what the policy computes, not what comes of it: it must match.
        rule: Rule::Within(MATCHES),
        value: fast_share,
        explanation: UNEQUAL,
    },
    AdaptLoadClaimSpec {
        id: "a75",
        place: Section("4", Some(6)),
        over: Over::Points,
        statement: "so their networks are evenly used (the same measure as a14; follows from section 4, the paper has no experiment)",
        paper: None,
        paper_text: "(evenly)",
        unit: "",
        // As a14.
        rule: Rule::AtMost(EVEN),
        value: |r| r.mean_within(DayRun::unequal(ADAPTLOAD, true), DAY, |p| spread(&p.cpu)),
        explanation: UNEQUAL,
    },
    AdaptLoadClaimSpec {
        id: "a76",
        place: Section("4", Some(6)),
        over: Over::Day,
        statement: "and slowdowns are lower than without weights (without over with; likewise)",
        paper: None,
        paper_text: "(lower)",
        unit: "×",
        // The paper names no amount: slowdowns must be lower.
        rule: AHEAD,
        value: |r| unequal(r, (ADAPTLOAD, false), (ADAPTLOAD, true)),
        explanation: UNEQUAL,
    },
    AdaptLoadClaimSpec {
        id: "a77",
        place: Section("4", Some(6)),
        over: Over::Day,
        statement: "and AdaptLoad stays ahead of JSQ, which knows the weights (JSQ over AdaptLoad; likewise)",
        paper: None,
        paper_text: "(outperforms)",
        unit: "×",
        // The paper names no amount: AdaptLoad must be ahead.
        rule: AHEAD,
        value: |r| unequal(r, (JSQ, true), (ADAPTLOAD, true)),
        explanation: UNEQUAL,
    },
    AdaptLoadClaimSpec {
        id: "a66",
        place: Section("5", None),
        over: Over::Day,
        statement: "JSWQ's performance is very close to JSQ's or worse (slowdown at 15 %, JSWQ over JSQ)",
        paper: None,
        paper_text: "very close or worse",
        unit: "×",
        // "Very close or worse": no upper end.
        rule: Rule::AtLeast(1.0 - MATCHES),
        value: |r| r.ratio(Contender::Jswq, JSQ, 15),
        explanation: NOT_EXPLAINED,
    },
    AdaptLoadClaimSpec {
        id: "a67",
        place: Section("6", None),
        over: Over::Day,
        statement: "with K = 32,768 the optimal α is very close to 0 (slowdown with 0 over the least of 0, 0.5 and 0.9, caches of 15 %)",
        paper: Some(1.0),
        paper_text: "very close to 0",
        unit: "×",
        // As good as the best, whichever of them is by a hair.
        rule: Rule::AtMost(1.0 + EQUAL),
        value: |r| Some(with_alpha(r, BATCHES[1], 0)? / best(r, BATCHES[1])?),
        explanation: SAMPLING,
    },
    AdaptLoadClaimSpec {
        id: "a68",
        place: Section("6", None),
        over: Over::Day,
        statement: "with K = 512 it is closer to 1 (the least slowdown with 0 and 0.5, over that with 0.9)",
        paper: None,
        paper_text: "closer to 1",
        unit: "×",
        // "Closer to 1": 0.9 must be ahead of both 0 and 0.5.
        rule: AHEAD,
        value: |r| {
            Some(
                f64::min(with_alpha(r, BATCHES[0], 0)?, with_alpha(r, BATCHES[0], 50)?)
                    / with_alpha(r, BATCHES[0], 90)?,
            )
        },
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
        // "Rather insensitive" is as much as "largely unaffected": near, in either direction.
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
        // "Qualitatively the same": no order may change.
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
        // "Improves" names no amount: more than runs differ by themselves.
        rule: AHEAD,
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
        // As a71.
        rule: AHEAD,
        value: |r| r.ratio(ADAPTLOAD, Contender::OffLoading, IMPROVED_CACHE),
        explanation: ALONE,
    },
];

#[cfg(test)]
mod tests {
    use plimsoll_report::Run;

    use super::super::testing::{done, results};
    use super::*;

    /// Slowdowns of AdaptLoad, JSQ and LARD without the cost of connections, and with it.
    fn orders(without: [f64; 3], with: [f64; 3]) -> Option<f64> {
        let [a, j, l] = [ADAPTLOAD, JSQ, LARD_BEST].map(|c| DayRun::day(c, 15));
        let [ac, jc, lc] = [ADAPTLOAD, JSQ, LARD_BEST].map(DayRun::connections);
        let pairs = [a, j, l].into_iter().zip(without).chain([ac, jc, lc].into_iter().zip(with));
        let runs: Vec<_> = pairs.map(|(cell, slowdown)| (cell, done(slowdown))).collect();
        changed_orders(&results::<6>(runs.try_into().ok()?))
    }

    #[test]
    fn orders_that_change_are_counted() {
        assert_eq!(orders([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]), Some(0.0));
        assert_eq!(orders([1.0, 2.0, 3.0], [20.0, 10.0, 30.0]), Some(1.0), "AdaptLoad and JSQ");
        assert_eq!(orders([1.0, 2.0, 3.0], [30.0, 20.0, 10.0]), Some(3.0), "all three");
        assert_eq!(orders([1.0, 2.0, 3.0], [1.005, 1.0, 3.0]), Some(0.0), "as good as equal is no order");
        assert_eq!(changed_orders(&results([(DayRun::day(JSQ, 15), done(1.0))])), None, "runs are missing");
    }

    #[test]
    fn what_fast_back_ends_send_is_their_use_times_their_speed() {
        let per_backend =
            [0.5, 0.5, 0.25, 0.75].map(|cpu| PerBackend { cpu, ..crate::testing::backend(0.0, 1) });
        let run = Run { per_backend: per_backend.to_vec(), ..crate::testing::run() };
        let one =
            results([(DayRun::unequal(ADAPTLOAD, true), super::super::results::Done { run, ..done(1.0) })]);
        // 0.5 and 0.5 at twice the speed, of 3 in all.
        assert!((fast_share(&one).unwrap() - 200.0 / 3.0).abs() < 1e-9);
        let idle = results([(DayRun::unequal(ADAPTLOAD, true), done(1.0))]);
        assert_eq!(fast_share(&idle), None, "nothing is sent");
    }

    #[test]
    fn unequal_back_ends_are_compared_with_weights_and_without() {
        let r = results([
            (DayRun::unequal(ADAPTLOAD, true), done(2.0)),
            (DayRun::unequal(ADAPTLOAD, false), done(5.0)),
            (DayRun::unequal(JSQ, true), done(3.0)),
        ]);
        let of = |id: &str| (SPECS.iter().find(|spec| spec.id == id).unwrap().value)(&r);
        assert_eq!((of("a76"), of("a77"), of("a75")), (Some(2.5), Some(1.5), None));
    }

    #[test]
    fn alphas_are_compared_with_the_best() {
        let sampling =
            |batch, alpha, slowdown| (DayRun::day(Contender::Sampling(batch, alpha), 15), done(slowdown));
        let r = results([
            sampling(32_768, 0, 2.0),
            sampling(32_768, 50, 1.6),
            sampling(32_768, 90, 3.0),
            sampling(512, 0, 4.0),
            sampling(512, 50, 3.0),
            sampling(512, 90, 2.0),
        ]);
        let of = |id: &str| (SPECS.iter().find(|spec| spec.id == id).unwrap().value)(&r);
        assert_eq!((of("a67"), of("a68"), of("a69")), (Some(1.25), Some(1.5), Some(1.25)));
        assert_eq!(best(&results([sampling(512, 0, 4.0)]), 512), None, "runs are missing");
    }
}
