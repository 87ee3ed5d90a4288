//! How a claim is judged, declared with the claim and shown with the verdict.

use plimsoll_report::{Claim, Measured, Verdict};

use super::plan::Family;
use super::results::{Results, View};

/// When a measured value agrees with the paper.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// Within this share of the paper's figure.
    Within(f64),
    /// At least.
    AtLeast(f64),
    /// At most.
    AtMost(f64),
    /// From the first to the second.
    Between(f64, f64),
}

impl Rule {
    fn agrees(self, value: f64, paper: Option<f64>) -> bool {
        match self {
            Self::Within(share) => paper.is_some_and(|p| (value - p).abs() <= share * p.abs()),
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
            Self::Between(least, most) => (least..=most).contains(&value),
        }
    }

    fn words(self) -> String {
        match self {
            Self::Within(share) => format!("within {:.0} %", 100.0 * share),
            Self::AtLeast(least) => format!("≥ {least}"),
            Self::AtMost(most) => format!("≤ {most}"),
            Self::Between(least, most) => format!("{least} … {most}"),
        }
    }
}

/// Where the paper claims something.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    Figure(u32),
    /// A section, with the figure whose discussion the claim belongs to.
    Section(&'static str, Option<u32>),
}

impl Place {
    fn words(self) -> String {
        match self {
            Self::Figure(number) => format!("figure {number}"),
            Self::Section(number, _) => format!("section {number}"),
        }
    }

    /// The figure that is to be asked for to see the claim.
    fn figure(self) -> Option<u32> {
        match self {
            Self::Figure(number) => Some(number),
            Self::Section(_, figure) => figure,
        }
    }
}

/// A claim of the paper, and how it is measured on one workload.
pub(super) struct Spec {
    pub(super) id: &'static str,
    pub(super) place: Place,
    pub(super) statement: &'static str,
    pub(super) paper: Option<f64>,
    pub(super) paper_text: &'static str,
    pub(super) unit: &'static str,
    pub(super) rule: Rule,
    pub(super) family: fn(Family) -> bool,
    pub(super) value: fn(&View<'_>) -> Option<f64>,
    /// Shown when the claim does not hold on every workload.
    pub(super) explanation: &'static str,
}

/// The claims that belong to the figure, or all, in their order.
pub(super) fn wanted<'a>(specs: &'a [&[Spec]], figure: Option<u32>) -> impl Iterator<Item = &'a Spec> {
    let wanted = move |spec: &&Spec| figure.is_none() || spec.place.figure() == figure;
    specs.iter().copied().flatten().filter(wanted)
}

/// Measures the claims that belong to the figure, or all, in their order.
pub(super) fn evaluate(specs: &[&[Spec]], figure: Option<u32>, results: &Results) -> Vec<Claim> {
    wanted(specs, figure).filter_map(|spec| measure(spec, results)).collect()
}

/// Measures the claim on every workload of its family; `None` when none of its runs was made.
fn measure(spec: &Spec, results: &Results) -> Option<Claim> {
    let measured: Vec<Measured> = results
        .instances(spec.family)
        .into_iter()
        .filter_map(|instance| {
            let value = (spec.value)(&results.on(instance))?;
            Some(Measured { workload: instance.name(), seed: instance.seed, value })
        })
        .collect();
    let finding = Finding {
        id: spec.id,
        place: spec.place,
        statement: spec.statement,
        paper: spec.paper,
        paper_text: spec.paper_text,
        unit: spec.unit,
        rule: spec.rule,
        measured,
        explanation: spec.explanation,
    };
    finding.claim()
}

/// A claim with what was measured for it, not yet judged.
pub(super) struct Finding {
    pub(super) id: &'static str,
    pub(super) place: Place,
    pub(super) statement: &'static str,
    pub(super) paper: Option<f64>,
    pub(super) paper_text: &'static str,
    pub(super) unit: &'static str,
    pub(super) rule: Rule,
    pub(super) measured: Vec<Measured>,
    /// Shown when the claim does not hold by every measurement.
    pub(super) explanation: &'static str,
}

impl Finding {
    /// The claim with its verdict; `None` when nothing was measured.
    pub(super) fn claim(self) -> Option<Claim> {
        let agreeing = self.measured.iter().filter(|m| self.rule.agrees(m.value, self.paper)).count();
        let verdict = match agreeing {
            _ if self.measured.is_empty() => return None,
            n if n == self.measured.len() => Verdict::Holds,
            0 => Verdict::Fails,
            _ => Verdict::Partly,
        };
        let mut rule = self.rule.words();
        if verdict == Verdict::Partly {
            rule = format!("{rule} ({agreeing} of {})", self.measured.len());
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
            explanation: if verdict == Verdict::Holds { String::new() } else { self.explanation.to_owned() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_by_hand() {
        assert!(Rule::Within(0.2).agrees(3.2, Some(3.9)));
        assert!(!Rule::Within(0.1).agrees(3.2, Some(3.9)));
        assert!(!Rule::Within(0.1).agrees(3.2, None));
        assert!(Rule::AtMost(2.0).agrees(2.0, None) && !Rule::AtMost(2.0).agrees(2.1, None));
        assert!(Rule::Between(1.0, 2.0).agrees(1.0, None) && !Rule::Between(1.0, 2.0).agrees(f64::NAN, None));
    }
}
