//! `plimsoll simulate --scenario FILE.toml`: the options of `simulate`, kept in a file.
//!
//! The file is turned into arguments and parsed as such, so that one declaration serves both. Keys are the long names of
//! the options, with `traces` for the traces (relative to the file) and a table `set` for the parameters. What is on the
//! command line wins over the file.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use clap::Command;
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
    let simulate = cli.find_subcommand("simulate");
    let known: Vec<&str> =
        simulate.into_iter().flat_map(Command::get_arguments).filter_map(|arg| arg.get_long()).collect();
    let mut out = args[..=at].to_vec();
    let scenario = Scenario { path, text: &text, known, rest: &rest };
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
    known: Vec<&'a str>,
    /// What else is on the command line.
    rest: &'a [OsString],
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
            ("traces", value) => {
                // Traces on the command line replace those of the file.
                if self.has_trace() {
                    return Ok(());
                }
                for trace in self.scalars(value, at)? {
                    out.push(self.trace(&trace));
                }
            }
            ("set", DeValue::Table(table)) => {
                for (key, value) in table {
                    for value in self.scalars(value.get_ref(), key.span().start)? {
                        out.extend(["--set".into(), format!("{}={value}", key.get_ref()).into()]);
                    }
                }
            }
            ("set", _) => return Err(self.wrong(at, "`set` is a table, e.g. [set] with \"lard.t_low\" = 25")),
            (name, _) if !self.known.contains(&name) || name == "scenario" => {
                let known = self.known.iter().copied().chain(["traces"]);
                let hint = nearest(name, known).map_or_else(
                    || "the keys are the long options of `plimsoll simulate --help`".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                );
                return Err(self.wrong(at, &format!("no option `{name}`; {hint}")));
            }
            (name, _) if self.is_given(name) => {}
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

    /// Whether the option is on the command line, by its long or short name.
    fn is_given(&self, name: &str) -> bool {
        let (long, prefix) = (format!("--{name}"), format!("--{name}="));
        let short = match name {
            "policy" | "backends" | "model" | "out" => format!("-{}", &name[..1]),
            _ => String::from("\0"),
        };
        self.rest.iter().any(|arg| {
            let arg = arg.to_string_lossy();
            arg == long || arg.starts_with(&prefix) || (arg.starts_with(&short) && !arg.starts_with("--"))
        })
    }

    /// Whether the rest of the command line starts with a trace: the only arguments that are not options or values.
    fn has_trace(&self) -> bool {
        self.rest.first().is_some_and(|arg| arg == "-" || !arg.to_string_lossy().starts_with('-'))
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
