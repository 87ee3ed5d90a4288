//! `plimsoll simulate --scenario FILE.toml`: the options of `simulate`, kept in a file.
//!
//! The file is turned into arguments and parsed as such, so that one declaration serves both. Keys are the long names of
//! the options, with `traces` for the traces (relative to the file) and a table `set` for the parameters. What is on the
//! command line wins over the file.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use clap::Command;
use clap::parser::ValueSource;
use plimsoll_policy::params::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::CliError;

/// Replaces `simulate --scenario FILE …` by what the file says and the rest.
///
/// # Errors
/// When the file cannot be read, is not TOML, or has a key that is no option.
pub(crate) fn expand(args: Vec<OsString>, cli: &Command) -> Result<Vec<OsString>, CliError> {
    let Some(at) = args.iter().position(|arg| arg == "simulate") else { return Ok(args) };
    let Some((file, rest)) = take_option(&args[at + 1..], "scenario") else { return Ok(args) };
    let path = Path::new(&file);
    let text = fs::read_to_string(path)
        .map_err(|e| CliError::Failed(format!("cannot read the scenario {}: {e}", path.display())))?;
    let table = DeTable::parse(&text).map_err(|e| {
        CliError::Usage(format!("{}: not valid TOML: {}", path.display(), e.to_string().trim_end()))
    })?;
    let Some(simulate) = cli.find_subcommand("simulate") else { return Ok(args) };
    let options: Vec<(&str, &str)> =
        simulate.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg.get_id().as_str()))).collect();
    // What is wrong with the rest is said when all is parsed together.
    let rest_alone = simulate.clone().ignore_errors(true).no_binary_name(true).try_get_matches_from(&rest);
    let given = |id: &str| {
        let matches = rest_alone.as_ref().ok();
        matches.and_then(|m| m.value_source(id)) == Some(ValueSource::CommandLine)
    };
    let scenario = Scenario { path, text: &text, options, given: &given };
    let mut out = args[..=at].to_vec();
    for (key, value) in table.get_ref() {
        scenario.add(key, value, &mut out)?;
    }
    out.extend(rest);
    Ok(out)
}

/// Finds `--name VALUE` or `--name=VALUE`; returns the value and the arguments without it.
fn take_option(args: &[OsString], name: &str) -> Option<(OsString, Vec<OsString>)> {
    let (flag, prefix) = (format!("--{name}"), format!("--{name}="));
    let at = args.iter().position(|arg| {
        let arg = arg.to_string_lossy();
        arg == flag || arg.starts_with(&prefix)
    })?;
    let text = args[at].to_string_lossy();
    let mut rest = args.to_vec();
    if let Some(value) = text.strip_prefix(&prefix) {
        rest.remove(at);
        return Some((value.into(), rest));
    }
    // Without a value the option stays, and clap says what is missing.
    let value = args.get(at + 1)?.clone();
    rest.drain(at..at + 2);
    Some((value, rest))
}

struct Scenario<'a> {
    path: &'a Path,
    text: &'a str,
    /// Long name and identity of every option.
    options: Vec<(&'a str, &'a str)>,
    /// Whether the argument of this identity is on the command line.
    given: &'a dyn Fn(&str) -> bool,
}

impl Scenario<'_> {
    fn wrong(&self, at: usize, why: &str) -> CliError {
        let line = self.text[..at.min(self.text.len())].matches('\n').count() + 1;
        CliError::Usage(format!("{} line {line}: {why}", self.path.display()))
    }

    fn add(
        &self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        out: &mut Vec<OsString>,
    ) -> Result<(), CliError> {
        let name = key.get_ref().as_ref();
        let at = key.span().start;
        match (name, value.get_ref()) {
            // What is on the command line replaces what is in the file.
            ("traces", _) if (self.given)("traces") => {}
            ("traces", value) => {
                for trace in self.scalars(value, at)? {
                    out.push(self.trace(&trace));
                }
            }
            ("set", DeValue::Table(table)) => self.settings("", table, out)?,
            ("set", _) => return Err(self.wrong(at, "`set` is a table, e.g. [set] with lard.t_low = 25")),
            (name, _) if name == "scenario" || self.options.iter().all(|(long, _)| *long != name) => {
                let known = self.options.iter().map(|(long, _)| *long).chain(["traces"]);
                let hint = nearest(name, known).map_or_else(
                    || "the keys are the long options of `plimsoll simulate --help`".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                );
                return Err(self.wrong(at, &format!("no option `{name}`; {hint}")));
            }
            (name, _) if self.options.iter().any(|(long, id)| *long == name && (self.given)(id)) => {}
            (name, DeValue::Boolean(true)) => out.push(format!("--{name}").into()),
            (_, DeValue::Boolean(false)) => {}
            (name, value) => {
                for value in self.scalars(value, at)? {
                    out.push(format!("--{name}={value}").into());
                }
            }
        }
        Ok(())
    }

    /// The table `set`: `"lard.t_low" = 25` and `lard.t_low = 25`, which TOML reads as a table in the table, are the same.
    fn settings(&self, owner: &str, table: &DeTable<'_>, out: &mut Vec<OsString>) -> Result<(), CliError> {
        for (key, value) in table {
            match value.get_ref() {
                DeValue::Table(inner) if owner.is_empty() => {
                    self.settings(&format!("{}.", key.get_ref()), inner, out)?;
                }
                value => {
                    for value in self.scalars(value, key.span().start)? {
                        out.extend(["--set".into(), format!("{owner}{}={value}", key.get_ref()).into()]);
                    }
                }
            }
        }
        Ok(())
    }

    /// Relative to the file, unless it is no path.
    fn trace(&self, trace: &str) -> OsString {
        if trace == "-" || trace.starts_with("synth:") {
            return trace.into();
        }
        self.path.parent().unwrap_or(Path::new("")).join(trace).into()
    }

    fn scalars(&self, value: &DeValue<'_>, at: usize) -> Result<Vec<String>, CliError> {
        match value {
            DeValue::String(s) => Ok(vec![s.to_string()]),
            DeValue::Integer(n) => Ok(vec![n.to_string()]),
            DeValue::Float(x) => Ok(vec![x.to_string()]),
            DeValue::Boolean(b) => Ok(vec![b.to_string()]),
            DeValue::Array(items) => {
                let mut all = Vec::new();
                for item in items {
                    all.extend(self.scalars(item.get_ref(), item.span().start)?);
                }
                Ok(all)
            }
            DeValue::Datetime(_) | DeValue::Table(_) => {
                Err(self.wrong(at, "expected text, a number, true or false, or an array of these"))
            }
        }
    }
}
