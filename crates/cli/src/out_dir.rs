//! The directory of `--out`. Files that an earlier report lists as its own are replaced; other files of these names never are,
//! unless the user says so with `--force`.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_report::{MARK_WITHIN_BYTES, Report, ReportMark};

use crate::error::CliError;
use crate::output;

const REPORT: &str = "report.html";

/// A directory that may be written to.
pub(crate) struct OutDir {
    path: PathBuf,
    mark: ReportMark,
    force: bool,
    /// Keeps other commands away, and ends with this process however that ends; `None` where the file system has no locks.
    _lock: Option<File>,
}

impl OutDir {
    /// Makes the directory, with its parents, for the report of a command and these files beside it.
    ///
    /// # Errors
    /// When it cannot be made or written to, when it is a file, when another command writes to it, when it has a directory of one of
    /// these names, and, without `force`, when it has a file of one of these names that no report there lists.
    pub(crate) fn open(path: &Path, command: &str, data: &[&str], force: bool) -> Result<Self, CliError> {
        if path.as_os_str().is_empty() {
            return Err(CliError::Usage(
                "the directory of the report has no name; give `out` one, or `.` for the current directory"
                    .into(),
            ));
        }
        if fs::metadata(path).is_ok_and(|found| !found.is_dir()) {
            return Err(CliError::Usage(format!(
                "{} is no directory, and a report needs one; give another name with --out",
                path.display()
            )));
        }
        output::make_dir(path)?;
        let files: Vec<&str> = [REPORT].into_iter().chain(data.iter().copied()).collect();
        let mark = ReportMark::new(command, &files);
        let out = Self { path: path.to_owned(), mark, force, _lock: lock(path)? };
        out.check(earlier_mark(path).as_ref())?;
        // Find out before the work begins; the file has no name.
        tempfile::tempfile_in(path).map_err(|e| CliError::writing(path, &e))?;
        Ok(out)
    }

    /// The path of a file.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Refuses to replace what is not ours.
    fn check(&self, earlier: Option<&ReportMark>) -> Result<(), CliError> {
        let names = || self.mark.files.iter().map(String::as_str);
        let is_directory =
            |name: &&str| fs::symlink_metadata(self.file(name)).is_ok_and(|found| found.is_dir());
        if let Some(name) = names().find(is_directory) {
            return Err(CliError::Usage(format!(
                "{} is a directory, and a file of this name is to be written; give another directory with --out",
                self.file(name).display()
            )));
        }
        let foreign: Vec<&str> = names().filter(|name| self.is_foreign(name, earlier)).collect();
        let (Some(first), false) = (foreign.first(), self.force) else { return Ok(()) };
        Err(CliError::Usage(format!(
            "{} exists already, and no report of plimsoll in {} lists it as a file; give another directory, or --force \
             to overwrite {}",
            self.file(first).display(),
            self.path.display(),
            foreign.join(", ")
        )))
    }

    /// Whether something has this name that we did not write. Links are always the user's, and an empty report is what a full disk
    /// leaves of ours.
    fn is_foreign(&self, name: &str, earlier: Option<&ReportMark>) -> bool {
        let is_listed = || earlier.is_some_and(|mark| mark.files.iter().any(|file| file == name));
        let is_ours =
            |found: &fs::Metadata| found.is_file() && (is_listed() || (name == REPORT && found.len() == 0));
        fs::symlink_metadata(self.file(name)).is_ok_and(|found| !is_ours(&found))
    }

    /// Writes the report, which then lists the files beside it, and says so when it replaces another one. To be called before they
    /// are written: what is interrupted in between is still known as ours.
    ///
    /// # Errors
    /// When something cannot be written, when a file of the earlier report cannot be removed, or when files of others have come since
    /// the directory was opened.
    pub(crate) fn write(&self, report: Report) -> Result<(), CliError> {
        let earlier = earlier_mark(&self.path);
        self.check(earlier.as_ref())?;
        // All that is replaced is removed first. What only the earlier report had would pass for this one's, and to write into a file
        // would change what it is linked to. The report, which lists the others, goes last.
        let only_earlier = earlier
            .iter()
            .flat_map(|mark| &mark.files)
            .filter(|name| !self.mark.files.contains(name) && !self.is_foreign(name, earlier.as_ref()));
        let data = self.mark.files.iter().filter(|name| *name != REPORT);
        for name in only_earlier.chain(data).map(String::as_str).chain([REPORT]) {
            match fs::remove_file(self.file(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(CliError::writing(&self.file(name), &error));
                }
                _ => {}
            }
        }
        output::write(&self.file(REPORT), &report.marked(self.mark.clone()).to_html())?;
        if let Some(earlier) = earlier {
            eprintln!(
                "plimsoll: replaced the report of `plimsoll {}` in {}",
                earlier.command,
                self.path.display()
            );
        }
        Ok(())
    }

    /// The line that tells where the report is.
    pub(crate) fn told(&self) -> String {
        format!("Report: {}", self.file(REPORT).display())
    }
}

/// How often, and after which time, a directory is tried again that another command has.
const LOCK_ATTEMPTS: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Keeps other commands from writing to the directory.
fn lock(path: &Path) -> Result<Option<File>, CliError> {
    let Ok(directory) = File::open(path) else { return Ok(None) };
    let mut locked = directory.try_lock();
    // A process that is just being started has a copy of every lock of the one that starts it, until it runs its program.
    for _ in 0..LOCK_ATTEMPTS {
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        locked = directory.try_lock();
    }
    match locked {
        Ok(()) => Ok(Some(directory)),
        Err(TryLockError::WouldBlock) => Err(CliError::Usage(format!(
            "another command of plimsoll is going to write to {}; wait for it, or give another directory with --out",
            path.display()
        ))),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// The mark of a report that is there.
fn earlier_mark(directory: &Path) -> Option<ReportMark> {
    let report = directory.join(REPORT);
    // To open a pipe would wait for its writer.
    fs::symlink_metadata(&report).ok().filter(fs::Metadata::is_file)?;
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

    #[test]
    fn a_forged_report_removes_nothing_of_the_users() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path();
        let head = "<meta name=\"plimsoll-command\" content=\"demo\">\n<meta name=\"plimsoll-files\" content=\"report.html \
                    thesis.doc ../x sizes.csv\">";
        fs::write(dir.join(REPORT), head).unwrap();
        fs::write(dir.join("thesis.doc"), "mine").unwrap();
        fs::create_dir(dir.join("sizes.csv")).unwrap();
        write(dir, "demo", &["runs.csv"]);
        assert_eq!(fs::read_to_string(dir.join("thesis.doc")).unwrap(), "mine");
        assert!(dir.join("sizes.csv").is_dir());
    }

    #[test]
    fn what_files_are_linked_to_is_kept() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("out");
        write(&dir, "first", &["runs.csv", "load.csv"]);
        let mine = temporary.path().join("mine.csv");
        fs::hard_link(dir.join("load.csv"), &mine).unwrap();
        write(&dir, "demo", &["runs.csv", "load.csv"]);
        assert_eq!(fs::read_to_string(&mine).unwrap(), "first", "a copy by hard link");
        fs::remove_file(dir.join("runs.csv")).unwrap();
        std::os::unix::fs::symlink(&mine, dir.join("runs.csv")).unwrap();
        assert!(refusal(open(&dir, "demo", &["runs.csv"])).contains("overwrite runs.csv"));
        let forced = OutDir::open(&dir, "demo", &["runs.csv"], true).unwrap();
        forced.write(Report::new("", "")).unwrap();
        fs::write(forced.file("runs.csv"), "new").unwrap();
        assert_eq!(fs::read_to_string(&mine).unwrap(), "first");
    }

    #[test]
    fn what_comes_while_a_command_works_is_kept() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path();
        let out = open(dir, "demo", &["runs.csv"]).unwrap();
        assert!(refusal(open(dir, "demo", &["runs.csv"])).contains("another command"));
        fs::write(dir.join("runs.csv"), "mine").unwrap();
        assert!(out.write(Report::new("", "")).is_err());
        assert_eq!(fs::read_to_string(dir.join("runs.csv")).unwrap(), "mine");
        assert!(!dir.join(REPORT).exists());
    }

    #[test]
    fn what_cannot_be_replaced_is_refused_before_the_work() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path();
        fs::create_dir(dir.join("runs.csv")).unwrap();
        for force in [false, true] {
            assert!(refusal(OutDir::open(dir, "demo", &["runs.csv"], force)).contains("is a directory"));
        }
        assert!(refusal(open(Path::new(""), "demo", &[])).contains("no name"));
        // What a full disk leaves of a report is no reason to ask.
        fs::write(dir.join(REPORT), "").unwrap();
        write(dir, "demo", &["load.csv"]);
    }

    #[test]
    fn a_pipe_is_no_report() {
        let temporary = tempfile::tempdir().unwrap();
        let pipe = temporary.path().join(REPORT);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(refusal(open(temporary.path(), "demo", &[])).contains("report.html exists already"));
    }
}
