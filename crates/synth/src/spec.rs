//! The declaration of a workload, and the check of given parameters against it.

use super::error::{SynthError, did_you_mean};

/// The kind of a parameter's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParameterKind {
    /// Any number of the range.
    Number,
    /// A whole number of the range.
    Count,
    /// One of these words; a default counts from 0 in this list.
    Choice(&'static [&'static str]),
}

/// One parameter of a workload: the single declaration behind checks, command-line help and docs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Key under which it is set.
    pub name: &'static str,
    /// Unit, or "" for a bare number.
    pub unit: &'static str,
    /// What the value may be.
    pub kind: ParameterKind,
    /// Value where none is given and the generator sets none.
    pub default: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Meaning, as one line.
    pub help: &'static str,
}

impl Parameter {
    /// Declares a parameter with real values.
    pub(super) const fn number(
        name: &'static str,
        unit: &'static str,
        default: f64,
        range: (f64, f64),
        help: &'static str,
    ) -> Self {
        let kind = ParameterKind::Number;
        Self { name, unit, kind, default, min: range.0, max: range.1, help }
    }

    /// Declares a parameter with whole values.
    pub(super) const fn count(
        name: &'static str,
        unit: &'static str,
        default: f64,
        range: (f64, f64),
        help: &'static str,
    ) -> Self {
        let kind = ParameterKind::Count;
        Self { name, unit, kind, default, min: range.0, max: range.1, help }
    }

    /// Declares a choice; the first word is the default.
    pub(super) const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        let (kind, max) = (ParameterKind::Choice(words), words.len() as f64 - 1.0);
        Self { name, unit: "", kind, default: 0.0, min: 0.0, max, help }
    }

    /// A value as the user would write it: the word of a choice, else the number.
    #[must_use]
    pub fn written(&self, value: f64) -> String {
        match self.kind {
            ParameterKind::Choice(words) => {
                words.get(value as usize).map_or_else(String::new, ToString::to_string)
            }
            ParameterKind::Number | ParameterKind::Count => value.to_string(),
        }
    }

    /// The values that are accepted, in words.
    #[must_use]
    pub fn accepted(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        match self.kind {
            ParameterKind::Choice(words) => format!("one of {}", words.join(", ")),
            ParameterKind::Number => format!("a number from {} to {}{unit}", self.min, self.max),
            ParameterKind::Count => {
                format!("a whole number from {} to {}{unit}", self.min, self.max)
            }
        }
    }

    fn parse(&self, workload: &'static str, text: &str) -> Result<f64, SynthError> {
        let text = text.trim();
        let value = match self.kind {
            ParameterKind::Choice(words) => words.iter().position(|word| *word == text).map(|at| at as f64),
            ParameterKind::Number | ParameterKind::Count => text.parse::<f64>().ok(),
        };
        let whole = |value: f64| self.kind != ParameterKind::Count || value.fract() == 0.0;
        value
            // A NaN fails both comparisons, so it is refused here.
            .filter(|&value| value >= self.min && value <= self.max && whole(value))
            .ok_or_else(|| SynthError::BadValue {
                workload,
                parameter: self.name,
                given: text.to_owned(),
                accepted: self.accepted(),
                hint: match self.kind {
                    ParameterKind::Choice(words) => did_you_mean(text, words.iter().copied()),
                    _ => String::new(),
                },
            })
    }
}

/// One way to make a workload that meets the published figures: a set of parameter values that
/// replace the defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Generator {
    /// Value of the parameter `generator` that selects it.
    pub name: &'static str,
    /// What sets it apart, as one line.
    pub help: &'static str,
    /// Parameters and the values that replace their defaults.
    pub values: &'static [(&'static str, f64)],
}

/// How a published figure constrains the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureBound {
    /// The workload has this value, within the tolerance.
    Equal,
    /// The workload has at most this value.
    AtMost,
}

/// A statistic that the source publishes of the original trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedFigure {
    /// Key, such as `cover97_mib`.
    pub name: &'static str,
    /// Value in `unit`.
    pub value: f64,
    /// Unit, or "" for a share or a bare number.
    pub unit: &'static str,
    /// Whether the value is met or not exceeded.
    pub bound: FigureBound,
    /// Permitted relative deviation of a workload with default parameters.
    pub tolerance: f64,
    /// Meaning, as one line.
    pub help: &'static str,
}

/// Declaration of a workload: what it stands for, what is published of it, what can be set.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadSpec {
    /// Name on the command line.
    pub name: &'static str,
    /// What it stands for, as one line.
    pub help: &'static str,
    /// Where the figures are published.
    pub source: &'static str,
    /// Equally well calibrated ways to make it; the first is the default.
    pub generators: &'static [Generator],
    /// Everything that can be set.
    pub parameters: &'static [Parameter],
    /// What is published of the original.
    pub published: &'static [PublishedFigure],
}

impl WorkloadSpec {
    /// The declaration of a parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// Checks `overrides` and completes them with the generator's values and the defaults. Where
    /// one key is given twice, the later value counts.
    pub(super) fn resolve(&'static self, overrides: &[(&str, &str)]) -> Result<Parameters, SynthError> {
        let mut given = Vec::with_capacity(overrides.len());
        for (key, text) in overrides {
            let parameter = self.parameter(key).ok_or_else(|| SynthError::UnknownParameter {
                workload: self.name,
                given: (*key).to_owned(),
                hint: did_you_mean(key, self.parameters.iter().map(|known| known.name)),
                known: self.parameters.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
            })?;
            given.push((parameter.name, parameter.parse(self.name, text)?));
        }
        let last_of = |name: &str| given.iter().rev().find(|(key, _)| *key == name).map(|g| g.1);
        let generator = &self.generators[last_of("generator").unwrap_or(0.0) as usize];
        let values = self
            .parameters
            .iter()
            .map(|parameter| {
                let preset = generator.values.iter().find(|(key, _)| *key == parameter.name);
                let value =
                    last_of(parameter.name).or(preset.map(|(_, value)| *value)).unwrap_or(parameter.default);
                (*parameter, value)
            })
            .collect();
        Ok(Parameters { workload: self.name, values })
    }
}

/// The values of all parameters of a workload.
#[derive(Debug, Clone)]
pub(super) struct Parameters {
    workload: &'static str,
    values: Vec<(Parameter, f64)>,
}

impl Parameters {
    /// The value of a parameter; one that this workload does not declare counts as 0, which each
    /// use takes to mean "not wanted".
    pub(super) fn get(&self, name: &str) -> f64 {
        self.values.iter().find(|(parameter, _)| parameter.name == name).map_or(0.0, |found| found.1)
    }

    /// Every parameter with its value.
    pub(super) fn all(&self) -> &[(Parameter, f64)] {
        &self.values
    }

    /// The error for inconsistent values.
    pub(super) fn contradiction(&self, reason: String) -> SynthError {
        SynthError::Contradiction { workload: self.workload, reason }
    }
}
