//! `plimsoll simulate --scenario FILE.toml`: the options of `simulate`, kept in a file.
//!
//! Keys are the long names of the options, with `traces` for the traces (relative to the file, as the class file is) and a table
//! `set` for the parameters. Keys that determine the results fill a [`ScenarioSpec`], as the command line
//! does; the rest tell what to do with the results.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use plimsoll_policy::params::nearest;
use plimsoll_studies::scenario::ScenarioError;
use plimsoll_studies::spec::ScenarioSpec;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use crate::error::CliError;

/// What to do with the results.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct OutputSpec {
    /// Write every decision to this CSV file (one per run, when there are several).
    pub(crate) decisions: Option<PathBuf>,
    /// Write an HTML report and the data into this directory.
    pub(crate) out: Option<PathBuf>,
    /// Overwrite files of that directory that no report lists.
    pub(crate) force: bool,
    /// Print the rows of all policies.
    pub(crate) all_rows: bool,
    /// Print one JSON object per run instead of the table.
    pub(crate) json: bool,
    /// Fill in wall-clock times.
    pub(crate) timing: bool,
    /// Runs at once; by default one per CPU.
    pub(crate) jobs: Option<usize>,
}

/// Reads a scenario file.
///
/// # Errors
/// When the file cannot be read, is not TOML, has an unknown key, or a value that its option does not accept.
pub(crate) fn read(path: &Path) -> Result<(ScenarioSpec, OutputSpec), CliError> {
    let text = fs::read_to_string(path)
        .map_err(|e| CliError::Failed(format!("cannot read the scenario {}: {e}", path.display())))?;
    let file = File { path, text: &text };
    let table = DeTable::parse(&text).map_err(|e| {
        CliError::Usage(format!("{}: not valid TOML: {}", path.display(), e.to_string().trim_end()))
    })?;
    let span = table.span();
    let (of_runs, of_output) = (keys::<ScenarioSpec>(), keys::<OutputSpec>());
    let (mut runs, mut output) = (DeTable::new(), DeTable::new());
    for (key, value) in table.into_inner() {
        let is = |known: &String| **known == **key.get_ref();
        if of_output.iter().any(is) {
            output.insert(key, value);
        } else if of_runs.iter().any(is) {
            runs.insert(key, value);
        } else {
            let hint = nearest(key.get_ref(), of_runs.iter().chain(&of_output).map(String::as_str))
                .map_or_else(
                    || "the keys are the long options of `plimsoll simulate --help`".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                );
            return Err(file.wrong(key.span().start, &format!("no option `{}`; {hint}", key.get_ref())));
        }
    }
    let mut spec: ScenarioSpec = file.take(runs, span.clone())?;
    for trace in spec.traces.iter_mut().filter(|trace| *trace != "-" && !trace.starts_with("synth:")) {
        *trace = path.parent().unwrap_or(Path::new("")).join(&*trace).to_string_lossy().into_owned();
    }
    if let Some(classes) = &mut spec.classes {
        *classes = path.parent().unwrap_or(Path::new("")).join(&*classes);
    }
    Ok((spec, file.take(output, span)?))
}

/// What is wrong with the runs that this file asks for: with the place of the key that is to blame, unless the command line `gave` that option or no
/// single key is.
pub(crate) fn blame(path: &Path, error: ScenarioError, gave: impl Fn(&str) -> bool) -> CliError {
    let text = fs::read_to_string(path).unwrap_or_default();
    let CliError::Usage(why) = CliError::from(error) else {
        return CliError::Failed(format!("{}: the scenario cannot be run", path.display()));
    };
    let found = DeTable::parse(&text).ok().and_then(|table| {
        let all = places(table.get_ref(), "");
        all.into_iter().find(|(key, _)| is_about(&why, key) && !gave(&option_of(key)))
    });
    match found {
        Some((_, at)) => File { path, text: &text }.wrong(at, &why),
        None => CliError::Usage(format!("with the scenario {}: {why}", path.display())),
    }
}

/// The keys of a table and of those in it, such as `set.lard.t_low`, with their places.
fn places(table: &DeTable<'_>, before: &str) -> Vec<(String, usize)> {
    let mut out = Vec::new();
    for (key, value) in table {
        let name = format!("{before}{}", key.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) => out.extend(places(inner, &format!("{name}."))),
            _ => out.push((name, key.span().start)),
        }
    }
    out
}

/// Whether a message is about this key: it quotes a parameter by its name, with or without its owner's and its value, and an option with two dashes.
fn is_about(why: &str, key: &str) -> bool {
    if let Some(parameter) = key.strip_prefix("set.") {
        let last = parameter.rsplit('.').next().unwrap_or(parameter);
        return [parameter, last]
            .iter()
            .any(|name| why.contains(&format!("`{name}`")) || why.contains(&format!("`{name} = ")));
    }
    match key {
        "fault" => {
            ["a fault names", "speed=X:B@T", "memory=BYTES:B@T"].iter().any(|words| why.contains(words))
        }
        "partitions" => why.starts_with("partitions:"),
        "backends" => why.starts_with("a cluster has"),
        _ => why.split([' ', ':', ',']).any(|word| word == format!("--{key}")),
    }
}

/// The name by which clap knows the option of a key.
fn option_of(key: &str) -> String {
    match key {
        "fault" => "faults".to_owned(),
        "hot-spot" => "hot_spots".to_owned(),
        key if key.starts_with("set.") => String::new(),
        key => key.replace('-', "_"),
    }
}

/// The keys that this type has in a file.
fn keys<T: Serialize + Default>() -> Vec<String> {
    match serde_json::to_value(T::default()) {
        Ok(serde_json::Value::Object(fields)) => fields.into_iter().map(|(key, _)| key).collect(),
        _ => Vec::new(),
    }
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn take<T: DeserializeOwned>(&self, table: DeTable<'_>, span: Range<usize>) -> Result<T, CliError> {
        T::deserialize(Deserializer::from(Spanned::new(span, table)))
            .map_err(|e| self.wrong(e.span().map_or(0, |span| span.start), e.message()))
    }

    fn wrong(&self, at: usize, why: &str) -> CliError {
        let before = &self.text[..self.text.floor_char_boundary(at)];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        CliError::Usage(format!("{} line {line}, column {column}: {why}", self.path.display()))
    }
}
