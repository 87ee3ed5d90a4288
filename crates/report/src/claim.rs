//! Published claims and their measurements, for the studies.

use crate::{
    format::{NOT_APPLICABLE, number},
    table::{Cell, Table, Tone},
    table_column::{Align, TableColumn},
};

/// Whether a published claim is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Confirmed.
    Holds,
    /// Confirmed in part, e.g. in its direction and not in its size.
    Partly,
    /// Not confirmed.
    Fails,
}

impl Verdict {
    /// The verdict as a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Partly => "partly",
            Self::Fails => "fails",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Holds => Tone::Good,
            Self::Partly => Tone::Warning,
            Self::Fails => Tone::Bad,
        }
    }
}

/// One measurement for a claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The workload's name.
    pub workload: String,
    /// The seed of the workload and the run.
    pub seed: u64,
    /// Under what condition, where a claim is measured under several; else empty.
    pub condition: String,
    /// The value in the claim's unit.
    pub value: f64,
}

/// A claim of a paper with our measurements and verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Short name, unique in its study, e.g. `7a`.
    pub id: String,
    /// Figure, table or section of the paper.
    pub figure: String,
    /// What the paper claims.
    pub statement: String,
    /// The paper's figure in `unit`; `None` where it gives no number.
    pub paper: Option<f64>,
    /// The paper's figure in its own words, e.g. `2 to 4 times`; may be empty where `paper` says it all.
    pub paper_text: String,
    /// Unit of the values; may be empty.
    pub unit: String,
    /// Our measurements.
    pub measured: Vec<Measured>,
    /// Whether it holds.
    pub verdict: Verdict,
    /// When a measurement agrees with the paper, in a few words, e.g. `within 20 %`.
    pub rule: String,
    /// Why it does not hold, or what else a reader must know; may be empty.
    pub explanation: String,
}

impl Claim {
    /// Median of the values under the first condition; `None` without any.
    pub fn median(&self) -> Option<f64> {
        median(&self.values())
    }

    /// Smallest value under the first condition; `None` without any.
    pub fn min(&self) -> Option<f64> {
        smallest(&self.values())
    }

    /// Largest value under the first condition; `None` without any.
    pub fn max(&self) -> Option<f64> {
        largest(&self.values())
    }

    fn values(&self) -> Vec<f64> {
        let first = self.measured.first().map_or("", |measured| &measured.condition);
        let values = self.measured.iter().filter(|measured| measured.condition == first);
        values.map(|measured| measured.value).filter(|value| value.is_finite()).collect()
    }

    /// The conditions under which it was measured, in that order.
    fn conditions(&self) -> Vec<&str> {
        let mut conditions: Vec<&str> = Vec::new();
        for measured in &self.measured {
            if !conditions.contains(&measured.condition.as_str()) {
                conditions.push(&measured.condition);
            }
        }
        conditions
    }

    /// The same claim with the measurements that `keep` accepts.
    fn only(&self, keep: impl Fn(&Measured) -> bool) -> Self {
        let measured = self.measured.iter().filter(|measured| keep(measured)).cloned().collect();
        Self { measured, ..self.clone() }
    }

    /// The paper's figure as text.
    fn paper_cell(&self) -> String {
        if !self.paper_text.is_empty() {
            return self.paper_text.clone();
        }
        self.paper.map_or_else(|| NOT_APPLICABLE.to_owned(), |value| self.with_unit(&number(value)))
    }

    fn ours_cell(&self) -> String {
        self.median().map_or_else(|| NOT_APPLICABLE.to_owned(), |median| self.with_unit(&number(median)))
    }

    /// From the smallest to the largest value; `-` for fewer than two values.
    fn spread_cell(&self) -> String {
        match (self.min(), self.max()) {
            (Some(min), Some(max)) if self.values().len() > 1 => format!("{} … {}", number(min), number(max)),
            _ => NOT_APPLICABLE.to_owned(),
        }
    }

    fn with_unit(&self, value: &str) -> String {
        if self.unit.is_empty() { value.to_owned() } else { format!("{value} {}", self.unit) }
    }
}

/// The claims as a table: the paper's figure, ours as median with spread and number of measurements, the rule
/// of agreement, the verdict, and below a row its explanation. A claim that is measured under several conditions
/// has one verdict, and a row without id for each further condition.
pub fn claims_table(claims: &[Claim]) -> Table {
    let column = TableColumn::new;
    let mut table = Table::new([
        column("id", Align::Left),
        column("where", Align::Left).rank(4).meaning("figure or section of the paper"),
        column("claim", Align::Left).wraps_at(26).meaning("what the paper says"),
        column("paper", Align::Right).wraps_at(12).meaning("the paper's figure"),
        column("ours", Align::Right).meaning("median of our measurements"),
        column("min … max", Align::Right).rank(2).meaning("our smallest and largest measurement"),
        column("n", Align::Right).rank(1).meaning("number of our measurements"),
        column("agrees when", Align::Left)
            .rank(3)
            .wraps_at(14)
            .meaning("the rule by which each measurement is judged"),
        column("verdict", Align::Left)
            .meaning("holds: all measurements agree; partly: some do; fails: none does"),
    ]);
    table.reflows = true;
    for claim in claims {
        let statement = match claim.conditions().first() {
            Some(condition) if !condition.is_empty() => format!("{}, {condition}", claim.statement),
            _ => claim.statement.clone(),
        };
        table.row_with_detail(
            [
                Cell::from(claim.id.as_str()),
                Cell::from(claim.figure.as_str()),
                Cell::from(statement),
                Cell::from(claim.paper_cell()),
                Cell::from(claim.ours_cell()),
                Cell::from(claim.spread_cell()),
                Cell::from(claim.values().len().to_string()),
                Cell::from(claim.rule.as_str()),
                Cell::toned(claim.verdict.word(), claim.verdict.tone()),
            ],
            claim.explanation.clone(),
        );
        for condition in claim.conditions().into_iter().skip(1) {
            let part = claim.only(|measured| measured.condition == condition);
            let count = part.values().len().to_string();
            table.row(["", "", condition, "", &part.ours_cell(), &part.spread_cell(), &count, "", ""]);
        }
    }
    table
}

/// The measurements of each claim on each workload, in the order measured: median and spread over the seeds.
pub fn measurements_table(claims: &[Claim]) -> Table {
    let mut table = Table::new([
        ("id", Align::Left),
        ("workload", Align::Left),
        ("median", Align::Right),
        ("min … max", Align::Right),
        ("n", Align::Right),
    ]);
    for claim in claims {
        let mut groups: Vec<(&str, &str)> = Vec::new();
        for measured in &claim.measured {
            let group = (measured.workload.as_str(), measured.condition.as_str());
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        for (workload, condition) in groups {
            let part = claim.only(|m| m.workload == workload && m.condition == condition);
            let count = part.values().len().to_string();
            let comma = if condition.is_empty() { "" } else { ", " };
            let group = format!("{workload}{comma}{condition}");
            table.row([part.id.as_str(), &group, &part.ours_cell(), &part.spread_cell(), &count]);
        }
    }
    table
}

/// How many claims hold, hold in part and fail, in words.
pub fn claims_conclusion(claims: &[Claim]) -> String {
    conclusion("Published claims", claims)
}

/// The same for readings that are changed and for what goes beyond the paper.
pub fn controls_conclusion(controls: &[Claim]) -> String {
    conclusion("Controls and future work", controls)
}

fn conclusion(of: &str, claims: &[Claim]) -> String {
    let number_of = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let plural = |number: usize| if number == 1 { "s" } else { "" };
    let (hold, partly, fail) =
        (number_of(Verdict::Holds), number_of(Verdict::Partly), number_of(Verdict::Fails));
    format!(
        "{of}: {hold} hold{}, {partly} hold{} in part, {fail} fail{}.",
        plural(hold),
        plural(partly),
        plural(fail)
    )
}

/// Median: the middle value, or the mean of the two in the middle; `None` for no values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The smallest value; `None` for no values.
pub(crate) fn smallest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}

/// The largest value; `None` for no values.
pub(crate) fn largest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim measured under these conditions.
    fn measured(values: [(&str, f64); 4]) -> Claim {
        let one = |(seed, (condition, value)): (u64, (&str, f64))| Measured {
            workload: "day".to_owned(),
            seed,
            condition: condition.to_owned(),
            value,
        };
        Claim {
            id: "a4".to_owned(),
            figure: "figure 5".to_owned(),
            statement: "first is best".to_owned(),
            paper: None,
            paper_text: "best".to_owned(),
            unit: String::new(),
            measured: (1..).zip(values).map(one).collect(),
            verdict: Verdict::Partly,
            rule: "≥ 1".to_owned(),
            explanation: String::new(),
        }
    }

    #[test]
    fn conditions_share_a_verdict_and_have_their_own_values() {
        let claim = measured([("cold", 2.0), ("cold", 4.0), ("warm", 7.0), ("warm", 9.0)]);
        assert_eq!((claim.median(), claim.min(), claim.max()), (Some(3.0), Some(2.0), Some(4.0)));
        let table = claims_table(std::slice::from_ref(&claim));
        let text = |row: usize, cell: usize| table.rows[row].cells[cell].text.clone();
        assert_eq!(table.rows.len(), 2);
        assert_eq!(
            [text(0, 2), text(0, 4), text(0, 8)],
            ["first is best, cold", "3", "partly"].map(str::to_owned)
        );
        assert_eq!([text(1, 0), text(1, 2), text(1, 4), text(1, 8)], ["", "warm", "8", ""]);
        assert_eq!(measurements_table(&[claim]).rows.len(), 2);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }
}
