//! Output shared by the commands: progress, files, decisions.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Write as _, stdout};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use plimsoll_sim::DecisionMade;
use plimsoll_studies::Workload;
use plimsoll_studies::matrix::{DecisionSink, Progress};

use crate::error::CliError;

/// One progress bar over all runs, on a terminal only.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new(requests: u64) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(requests), target);
        let template = "{bar:40} {percent:>3} % of {human_len} requests, {speed}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("speed", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                // The bar is a convenience, so ignore failures to format it.
                let _ = write!(out, "{:.1} million/s", state.per_sec() / 1e6);
            }));
        }
        Self(bar)
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn advance(&self, requests: u64) {
        self.0.inc(requests);
    }
}

/// Prints a text, ending in one line feed.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

/// Columns for tables: those of the terminal, within reason, or 80 without one.
pub(crate) fn width() -> u16 {
    width_up_to(160)
}

/// Where the rows and columns of runs are that were not printed.
pub(crate) fn more(has_report: bool) -> &'static str {
    if has_report { "the report has them." } else { "--out DIR writes a report with them." }
}

/// A sentence broken into lines of at most `width` characters where its words allow, all but the first indented.
pub(crate) fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > indent && column + 1 + length > width {
            out = out.trim_end().to_owned() + "\n" + &" ".repeat(indent);
            column = indent;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}

/// Columns of the terminal that standard output is, 40 at least and `most` at most, or 80 without a terminal.
pub(crate) fn width_up_to(most: u16) -> u16 {
    terminal_size::terminal_size_of(stdout()).map_or(80, |(width, _)| width.0.clamp(40, most))
}

/// Makes a directory with its parents.
pub(crate) fn make_dir(dir: &Path) -> Result<(), CliError> {
    fs::create_dir_all(dir)
        .map_err(|e| CliError::Failed(format!("cannot make the directory {}: {e}", dir.display())))
}

/// Writes a whole file, or leaves things as they were: a part would look like a result.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let is_new = path.symlink_metadata().is_err();
    let partial = path.with_added_extension("partial");
    let written = if is_new {
        fs::write(&partial, text).and_then(|()| fs::rename(&partial, path)).inspect_err(|_| {
            // Whether it can be removed or not, the failure is told.
            let _ = fs::remove_file(&partial);
        })
    } else {
        // What is there may be a device, a link, or not to be replaced.
        fs::write(path, text)
    };
    written.map_err(|error| CliError::writing(path, &error))
}

/// The path of this program, to start more processes of it.
pub(crate) fn this_program() -> Result<PathBuf, CliError> {
    std::env::current_exe().map_err(|e| CliError::Failed(format!("cannot find this program: {e}")))
}

/// The command line, quoted for repetition.
pub(crate) fn command_line() -> String {
    let mut words = vec!["plimsoll".to_owned()];
    words.extend(std::env::args().skip(1).map(|arg| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c);
        if !arg.is_empty() && arg.chars().all(plain) {
            arg
        } else {
            format!("'{}'", arg.replace('\'', r"'\''"))
        }
    }));
    words.join(" ")
}

/// The decision file of one run, with its error, if any.
struct DecisionFile {
    path: PathBuf,
    file: BufWriter<File>,
    failure: Option<io::Error>,
}

/// Decision files of runs: CSV `request,time_s,target,backend`.
pub(crate) struct DecisionFiles(Vec<Mutex<DecisionFile>>);

impl DecisionFiles {
    /// One file per run: `path` itself for a single run, else with the run's label before the extension.
    pub(crate) fn create(path: &Path, labels: &[String]) -> Result<Self, CliError> {
        let name = |label: &String| {
            if labels.len() == 1 {
                return path.to_owned();
            }
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let extension = path.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
            path.with_file_name(format!("{stem}-{label}{extension}"))
        };
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            make_dir(dir)?;
        }
        let open = |label| {
            let path = name(label);
            let mut file =
                File::create(&path).map(BufWriter::new).map_err(|e| CliError::writing(&path, &e))?;
            let failure = file.write_all(b"request,time_s,target,backend\n").err();
            Ok::<_, CliError>(Mutex::new(DecisionFile { path, file, failure }))
        };
        Ok(Self(labels.iter().map(open).collect::<Result<_, _>>()?))
    }

    /// The sink for the decisions of run `index`.
    pub(crate) fn sink<'a>(&'a self, index: usize, workload: &'a Workload) -> Option<DecisionSink<'a>> {
        let file = self.0.get(index)?;
        Some(Box::new(move |d: DecisionMade| {
            let mut out = lock(file);
            if out.failure.is_none() {
                let target = String::from_utf8_lossy(workload.trace.targets.name(d.target));
                let line = writeln!(out.file, "{},{},{},{}", d.request, d.time, quoted(&target), d.backend.0);
                out.failure = line.err();
            }
        }))
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// The first failure of any of the files.
    pub(crate) fn finish(&self) -> Result<(), CliError> {
        for file in &self.0 {
            let mut out = lock(file);
            let failure = out.failure.take().or_else(|| out.file.flush().err());
            if let Some(error) = failure {
                return Err(CliError::writing(&out.path, &error));
            }
        }
        Ok(())
    }
}

/// A poisoned lock means that another thread panicked; its data is still usable for reports.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A CSV field (RFC 4180): quoted where it must be.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_within_the_width() {
        assert_eq!(wrapped("a bc def", 5, 2), "a bc\n  def\n");
        assert_eq!(wrapped("unbreakable", 5, 2), "unbreakable\n");
        assert_eq!(wrapped("ab cd", 2, 0), "ab\ncd\n");
    }
}
