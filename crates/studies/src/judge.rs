//! Rules that judge claims: declared with the claim and shown with the verdict.

use plimsoll_report::{Claim, Measured, Verdict};

/// When a measured value agrees with the paper.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// Within this share of the paper's figure.
    Within(f64),
    /// At least.
    AtLeast(f64),
    /// At most.
    AtMost(f64),
    /// From the first to the second.
    Between(f64, f64),
    /// More than this, for sentences that name a winner: equality is none.
    MoreThan(f64),
    /// Less than this.
    LessThan(f64),
}

/// A ratio of two runs that are as good as equal: below 1 % ties, and requests still under way at the end of
/// a trace, make the difference.
pub(crate) const EQUAL: f64 = 0.01;

/// How far "slightly", "close", "similar" and "largely unaffected" reach: 15 %. The LARD paper says of what
/// has 85 % of something that it "comes within 15 %" of it, and it reports 3.9 and 4.5 times as two figures,
/// which are 15.4 % apart.
pub(crate) const NEAR: f64 = 0.15;

/// What is ahead is ahead by more than runs that are as good as equal differ by; likewise what is behind.
pub(crate) const AHEAD: Rule = Rule::MoreThan(1.0 + EQUAL);
pub(crate) const BEHIND: Rule = Rule::LessThan(1.0 - EQUAL);

/// "Matches", "no gain", "very close": 5 %, a third of what is only near. Where the paper has these words, it
/// has no figure but drawn curves, and a twentieth of a curve's height is about the least that two of them
/// can be told apart by.
pub(crate) const MATCHES: f64 = 0.05;

/// "Clearly", "significantly", "substantial": a fifth more or less, so that nothing is both near and clearly
/// apart.
pub(crate) const CLEARLY_MORE: f64 = 1.2;
pub(crate) const CLEARLY_LESS: f64 = 0.8;

/// "Mild": a quarter more at most. It reaches further than "slightly" (15 %) and not nearly as far as
/// "greatly"; where between the two it ends is our choice.
pub(crate) const MILD: f64 = 1.25;

/// "Greatly", "fast": twice, the least that is told in multiples and not in per cent, and what can be read
/// off a logarithmic axis. What changes by no more is "maintained".
pub(crate) const GREATLY: f64 = 2.0;

/// "Slightly more": more, by no more than what is near.
pub(crate) const SLIGHTLY_MORE: Rule = Rule::Between(1.0 + EQUAL, 1.0 + NEAR);

impl Rule {
    fn agrees(self, value: f64, paper: Option<f64>) -> bool {
        match self {
            Self::Within(share) => paper.is_some_and(|p| (value - p).abs() <= share * p.abs()),
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
            Self::Between(least, most) => (least..=most).contains(&value),
            Self::MoreThan(least) => value > least,
            Self::LessThan(most) => value < most,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Within(share) => format!("within {} %", (1000.0 * share).round() / 10.0),
            Self::AtLeast(least) => format!("≥ {least}"),
            Self::AtMost(most) => format!("≤ {most}"),
            Self::Between(least, most) => format!("{least} … {most}"),
            Self::MoreThan(least) => format!("> {least}"),
            Self::LessThan(most) => format!("< {most}"),
        }
    }
}

/// The place of a claim in the paper.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PaperReference {
    Figure(u32),
    Table(u32),
    /// A section, with the figure whose discussion the claim belongs to.
    Section(&'static str, Option<u32>),
}

impl PaperReference {
    fn words(self) -> String {
        match self {
            Self::Figure(number) => format!("figure {number}"),
            Self::Table(number) => format!("table {number}"),
            Self::Section(number, _) => format!("section {number}"),
        }
    }

    /// The figure under which the claim is shown.
    pub(crate) fn figure(self) -> Option<u32> {
        match self {
            Self::Figure(number) => Some(number),
            Self::Table(_) => None,
            Self::Section(_, figure) => figure,
        }
    }
}

/// A value under some condition; of a run that was not made, `None`.
pub(crate) type Conditioned = (String, Option<f64>);

/// One value, under no condition.
pub(crate) fn once(value: Option<f64>) -> Vec<Conditioned> {
    vec![(String::new(), value)]
}

/// A claim's measurements, result by result: `origin` says of which workload and seed a result is. What was not measured is left
/// out.
pub(crate) fn measure_each<R>(
    results: &[R],
    origin: impl Fn(&R) -> (String, u64),
    values: fn(&R) -> Vec<Conditioned>,
) -> Vec<Measured> {
    let mut measured = Vec::new();
    for of in results {
        let (workload, seed) = origin(of);
        for (condition, value) in values(of) {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            measured.push(Measured { workload: workload.clone(), seed, condition, value });
        }
    }
    measured
}

/// A claim with its measurements, not yet judged.
pub(crate) struct MeasuredClaim {
    pub(crate) id: &'static str,
    pub(crate) place: PaperReference,
    pub(crate) statement: &'static str,
    pub(crate) paper: Option<f64>,
    pub(crate) paper_text: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) rule: Rule,
    pub(crate) measured: Vec<Measured>,
    /// Shown when the claim does not hold by every measurement.
    pub(crate) explanation: String,
}

impl MeasuredClaim {
    /// How many measurements agree, under each condition.
    fn counts(&self) -> String {
        let mut counts: Vec<(&str, usize, usize)> = Vec::new();
        for measured in &self.measured {
            let agrees = usize::from(self.rule.agrees(measured.value, self.paper));
            match counts.iter_mut().find(|(condition, ..)| *condition == measured.condition) {
                Some((_, agreeing, all)) => (*agreeing, *all) = (*agreeing + agrees, *all + 1),
                None => counts.push((&measured.condition, agrees, 1)),
            }
        }
        let words = counts.iter().map(|(condition, agreeing, all)| match *condition {
            "" => format!("{agreeing} of {all}"),
            _ => format!("{condition} {agreeing} of {all}"),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// The claim with its verdict; `None` when nothing was measured.
    pub(crate) fn claim(self) -> Option<Claim> {
        let agreeing = self.measured.iter().filter(|m| self.rule.agrees(m.value, self.paper)).count();
        let verdict = match agreeing {
            _ if self.measured.is_empty() => return None,
            n if n == self.measured.len() => Verdict::Holds,
            0 => Verdict::Fails,
            _ => Verdict::Partly,
        };
        let mut rule = self.rule.words();
        if verdict == Verdict::Partly {
            rule = format!("{rule} ({})", self.counts());
        }
        Some(Claim {
            id: self.id.to_owned(),
            figure: self.place.words(),
            statement: self.statement.to_owned(),
            paper: self.paper,
            paper_text: self.paper_text.to_owned(),
            unit: self.unit.to_owned(),
            measured: self.measured,
            verdict,
            rule,
            explanation: match verdict {
                Verdict::Holds => String::new(),
                _ if self.explanation.is_empty() => "Not explained.".to_owned(),
                _ => self.explanation,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_under_two_conditions_has_one_verdict() {
        let one = |(condition, value): (&str, f64)| Measured {
            workload: "day".to_owned(),
            seed: 1,
            condition: condition.to_owned(),
            value,
        };
        let judged = |values: &[(&str, f64)]| {
            let claim = MeasuredClaim {
                id: "a4",
                place: PaperReference::Figure(5),
                statement: "",
                paper: None,
                paper_text: "",
                unit: "",
                rule: Rule::AtLeast(1.0),
                measured: values.iter().copied().map(one).collect(),
                explanation: "because".to_owned(),
            };
            claim.claim().map(|claim| (claim.verdict, claim.rule, claim.explanation))
        };
        let (verdict, rule, explanation) = judged(&[("cold", 0.5), ("cold", 2.0), ("warm", 2.0)]).unwrap();
        assert_eq!((verdict, explanation.as_str()), (Verdict::Partly, "because"));
        assert_eq!(rule, "≥ 1 (cold 1 of 2, warm 1 of 1)");
        assert_eq!(judged(&[("cold", 0.5), ("warm", 0.7)]).unwrap().0, Verdict::Fails);
        assert_eq!(judged(&[("cold", 1.5), ("warm", 1.0)]).unwrap().0, Verdict::Holds);
        assert_eq!(judged(&[("", 0.5), ("", 1.0)]).unwrap().1, "≥ 1 (1 of 2)");
        assert!(judged(&[]).is_none());
    }

    #[test]
    fn rules_by_hand() {
        assert!(Rule::Within(0.2).agrees(3.2, Some(3.9)));
        assert!(!Rule::Within(0.1).agrees(3.2, Some(3.9)));
        assert!(!Rule::Within(0.1).agrees(3.2, None));
        assert!(Rule::AtMost(2.0).agrees(2.0, None) && !Rule::AtMost(2.0).agrees(2.1, None));
        assert!(Rule::MoreThan(1.0).agrees(1.1, None) && !Rule::MoreThan(1.0).agrees(1.0, None));
        assert!(Rule::LessThan(1.0).agrees(0.9, None) && !Rule::LessThan(1.0).agrees(1.0, None));
        assert!(SLIGHTLY_MORE.agrees(1.1, None) && !SLIGHTLY_MORE.agrees(1.0, None));
        assert!(Rule::Between(1.0, 2.0).agrees(1.0, None) && !Rule::Between(1.0, 2.0).agrees(f64::NAN, None));
    }
}
