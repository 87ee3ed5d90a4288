//! The directory of `--out`. Files that an earlier report lists as its own are replaced; other files of these names never are,
//! unless the user says so with `--force`.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use plimsoll_report::{MARK_WITHIN_BYTES, Report, ReportMark};

use crate::error::CliError;
use crate::output;

const REPORT: &str = "report.html";

/// A directory that may be written to.
pub(crate) struct OutDir {
    path: PathBuf,
    mark: ReportMark,
    /// Of the report that is there already.
    earlier: Option<ReportMark>,
}

impl OutDir {
    /// Makes the directory, with its parents, for the report of a command and these files beside it.
    ///
    /// # Errors
    /// When it cannot be made, when it is a file, and, without `force`, when it has a file of one of these names that no report there
    /// lists.
    pub(crate) fn open(path: &Path, command: &str, data: &[&str], force: bool) -> Result<Self, CliError> {
        if fs::metadata(path).is_ok_and(|found| !found.is_dir()) {
            return Err(CliError::Usage(format!(
                "{} is no directory, and a report needs one; give another name with --out",
                path.display()
            )));
        }
        let files: Vec<&str> = [REPORT].into_iter().chain(data.iter().copied()).collect();
        let earlier = earlier_mark(&path.join(REPORT));
        let is_ours =
            |name: &str| earlier.as_ref().is_some_and(|mark| mark.files.iter().any(|file| file == name));
        let is_there = |name: &str| fs::symlink_metadata(path.join(name)).is_ok();
        let foreign: Vec<&str> =
            files.iter().copied().filter(|name| is_there(name) && !is_ours(name)).collect();
        if let (Some(first), false) = (foreign.first(), force) {
            return Err(CliError::Usage(format!(
                "{} exists already, and no report of plimsoll in {} lists it; give another directory, or --force to \
                 overwrite {}",
                path.join(first).display(),
                path.display(),
                foreign.join(", ")
            )));
        }
        output::make_dir(path)?;
        Ok(Self { path: path.to_owned(), mark: ReportMark::new(command, &files), earlier })
    }

    /// The path of a file.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes the report, which then lists the files beside it, and says so when it replaces another one. To be called before they
    /// are written: what is interrupted in between is still known as ours.
    ///
    /// # Errors
    /// When something cannot be written, or a file of the earlier report not be removed.
    pub(crate) fn write(&self, report: Report) -> Result<(), CliError> {
        output::write(&self.file(REPORT), &report.marked(self.mark.clone()).to_html())?;
        let Some(earlier) = &self.earlier else { return Ok(()) };
        // What only the earlier report had would pass for this one's.
        for name in earlier.files.iter().filter(|name| !self.mark.files.contains(name)) {
            match fs::remove_file(self.file(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(CliError::writing(&self.file(name), &error));
                }
                _ => {}
            }
        }
        eprintln!(
            "plimsoll: replaced the report of `plimsoll {}` in {}",
            earlier.command,
            self.path.display()
        );
        Ok(())
    }

    /// The line that tells where the report is.
    pub(crate) fn told(&self) -> String {
        format!("Report: {}", self.file(REPORT).display())
    }
}

/// The mark of a report that is there.
fn earlier_mark(report: &Path) -> Option<ReportMark> {
    let mut start = Vec::new();
    File::open(report).ok()?.take(MARK_WITHIN_BYTES).read_to_end(&mut start).ok()?;
    ReportMark::read(&String::from_utf8_lossy(&start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(dir: &Path, command: &str, data: &[&str]) -> Result<OutDir, CliError> {
        OutDir::open(dir, command, data, false)
    }

    fn refusal(result: Result<OutDir, CliError>) -> String {
        match result {
            Err(error) => error.to_string(),
            Ok(_) => panic!("it was not refused"),
        }
    }

    /// A report with these files beside it.
    fn write(dir: &Path, command: &str, data: &[&str]) {
        let out = open(dir, command, data).unwrap();
        out.write(Report::new(command, "")).unwrap();
        data.iter().for_each(|name| fs::write(out.file(name), command).unwrap());
    }

    #[test]
    fn our_own_report_is_replaced_with_all_its_files() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("deep/out");
        write(&dir, "simulate", &["runs.csv", "load.csv"]);
        fs::write(dir.join("notes.txt"), "mine").unwrap();
        write(&dir, "demo", &["runs.csv"]);
        assert_eq!(fs::read_to_string(dir.join("runs.csv")).unwrap(), "demo");
        assert!(!dir.join("load.csv").exists(), "it was the earlier report's");
        assert_eq!(fs::read_to_string(dir.join("notes.txt")).unwrap(), "mine");
    }

    #[test]
    fn files_of_others_are_kept() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path();
        fs::write(dir.join("runs.csv"), "mine").unwrap();
        let text = refusal(open(dir, "simulate", &["runs.csv"]));
        assert!(text.contains("runs.csv exists already") && text.contains("--force"), "{text}");
        // An own file beside a report that does not list it is still the user's.
        write(dir, "trace stats", &["sizes.csv"]);
        let text = refusal(open(dir, "simulate", &["runs.csv", "sizes.csv"]));
        assert!(text.ends_with("--force to overwrite runs.csv"), "{text}");
        assert!(OutDir::open(dir, "simulate", &["runs.csv"], true).is_ok());
        assert_eq!(fs::read_to_string(dir.join("runs.csv")).unwrap(), "mine");
    }

    #[test]
    fn a_page_of_others_is_no_report() {
        let temporary = tempfile::tempdir().unwrap();
        fs::write(temporary.path().join("report.html"), "<html><title>My thesis</title>").unwrap();
        assert!(refusal(open(temporary.path(), "demo", &[])).contains("report.html exists already"));
    }

    #[test]
    fn a_file_is_no_directory() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("out");
        fs::write(&file, "mine").unwrap();
        for force in [false, true] {
            assert!(refusal(OutDir::open(&file, "demo", &[], force)).contains("is no directory"));
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    }
}
