//! A World Cup log's totals compared with the `.check` file that is published with it.

use std::fmt;
use std::fs;
use std::path::Path;

use plimsoll_report::format::count;
use plimsoll_trace::ReadReport;
use serde::Serialize;

use crate::error::CliError;

/// The lines of a published `.check` file.
#[derive(Debug)]
pub(super) struct Published {
    path: String,
    lines: Vec<String>,
}

impl Published {
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let name = path.display().to_string();
        let text = fs::read(path).map_err(|error| {
            CliError::Failed(format!(
                "cannot read the check file {name}: {error}; give the .check file that is published with the log"
            ))
        })?;
        Ok(Self { path: name, lines: lines(&String::from_utf8_lossy(&text)) })
    }

    /// Compares line by line with the totals of the log that was read.
    ///
    /// # Errors
    /// When what was read is not a World Cup log.
    pub(super) fn compare(self, report: &ReadReport) -> Result<CheckComparison, CliError> {
        let Some(totals) = &report.world_cup else {
            let format = report.format.map_or("a synthetic workload", |format| format.name());
            return Err(CliError::Usage(format!(
                "--check {} goes with a World Cup 98 log, whose totals are published in such files, but the trace is \
                 {format}; leave out --check, or name the format with --format worldcup98",
                self.path
            )));
        };
        let found = lines(&totals.to_string());
        let all = self.lines.len().max(found.len());
        let differences = (0..all)
            .filter(|&at| self.lines.get(at) != found.get(at))
            .map(|at| LineDifference {
                line: at + 1,
                published: self.lines.get(at).cloned(),
                found: found.get(at).cloned(),
            })
            .collect::<Vec<_>>();
        Ok(CheckComparison { equal: differences.is_empty(), file: self.path, lines: all, differences })
    }
}

/// Lines without the blanks at their ends, which editors and mail change.
fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// A line that differs from the published one.
#[derive(Debug, Serialize)]
struct LineDifference {
    line: usize,
    published: Option<String>,
    found: Option<String>,
}

/// The result of comparing a log with its `.check` file.
#[derive(Debug, Serialize)]
pub(super) struct CheckComparison {
    file: String,
    equal: bool,
    lines: usize,
    differences: Vec<LineDifference>,
}

impl CheckComparison {
    /// # Errors
    /// When a line differs.
    pub(super) fn verdict(&self) -> Result<(), CliError> {
        if self.equal {
            return Ok(());
        }
        Err(CliError::Failed(format!(
            "the totals of the log differ from {} in {} of {} lines: the log is not the one the file was published \
             with, or not all of it",
            self.file,
            count(self.differences.len() as u64),
            count(self.lines as u64)
        )))
    }
}

impl fmt::Display for CheckComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.equal {
            return writeln!(f, "Check: equal to {}, all {} lines.", self.file, self.lines);
        }
        writeln!(
            f,
            "Check: {} of {} lines differ from {} (- published, + this log)",
            self.differences.len(),
            self.lines,
            self.file
        )?;
        for difference in &self.differences {
            for (sign, side) in [("-", &difference.published), ("+", &difference.found)] {
                let text = side.as_deref().map_or_else(|| "(no such line)".to_owned(), printable);
                writeln!(f, "  line {:>3} {sign} {text}", difference.line)?;
            }
        }
        Ok(())
    }
}

/// A line of a file, safe for a terminal: control characters become visible, long lines are cut.
fn printable(line: &str) -> String {
    let mut text: String = line.chars().take(200).flat_map(shown).collect();
    if line.chars().count() > 200 {
        text.push('…');
    }
    text
}

fn shown(c: char) -> Vec<char> {
    if c.is_control() { c.escape_default().collect() } else { vec![c] }
}
