//! The mark by which a report is known as one of ours, with the files that were written with it.

/// Who wrote a report, and what lies beside it. It stands in the head of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportMark {
    /// The command that wrote it, e.g. `simulate`.
    pub command: String,
    /// Names of the files that were written with it, in the same directory, itself included.
    pub files: Vec<String>,
}

/// How much of a page is read to find the mark: it stands before everything else.
pub const MARK_WITHIN_BYTES: u64 = 4096;

const COMMAND: &str = "plimsoll-command";
const FILES: &str = "plimsoll-files";

/// Every file that is written with some report, itself included. A mark names no other, because files that it names are removed, and
/// a page may come from somebody else.
const ALL_FILES: [&str; 11] = [
    "advice.json",
    "plimsoll.toml",
    "cells.jsonl",
    "report.html",
    "runs.csv",
    "runs.parquet",
    "load.csv",
    "load.parquet",
    "targets.csv",
    "sizes.csv",
    "arrivals.csv",
];

impl ReportMark {
    /// A mark. Of the files it names those that reports are written with; the others would not be known as ours later.
    pub fn new(command: &str, files: &[&str]) -> Self {
        debug_assert!(
            files.iter().all(|name| ALL_FILES.contains(name)),
            "{files:?} are not all in ALL_FILES"
        );
        Self { command: command.to_owned(), files: files.iter().map(|&name| name.to_owned()).collect() }
    }

    /// The mark of a page, by its beginning; `None` of a page that is not ours. Names of files that no report is written with are left
    /// out.
    pub fn read(page: &str) -> Option<Self> {
        let content = |name: &str| {
            let (_, rest) = page.split_once(&format!("<meta name=\"{name}\" content=\""))?;
            rest.split_once('"').map(|(content, _)| content)
        };
        // It is printed in a terminal.
        let command = content(COMMAND)?;
        if !command.chars().all(|c| c.is_ascii_lowercase() || c == ' ') {
            return None;
        }
        let files = content(FILES)?.split(' ').filter(|name| ALL_FILES.contains(name)).map(str::to_owned);
        Some(Self { command: command.to_owned(), files: files.collect() })
    }

    /// Names and contents of the `meta` elements.
    pub(crate) fn elements(&self) -> [(&'static str, String); 2] {
        [(COMMAND, self.command.clone()), (FILES, self.files.join(" "))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;

    #[test]
    fn a_report_is_known_by_its_mark() {
        let mark = ReportMark::new("trace stats", &["report.html", "runs.csv"]);
        let html = Report::new("Title", "").marked(mark.clone()).to_html();
        let start = &html[..usize::try_from(MARK_WITHIN_BYTES).unwrap().min(html.len())];
        assert_eq!(ReportMark::read(start), Some(mark));
        assert_eq!(ReportMark::read(&Report::new("Title", "").to_html()), None);
        assert_eq!(ReportMark::read("<html>"), None);
    }

    #[test]
    fn a_mark_names_no_file_of_others() {
        let page = |command: &str, files: &str| {
            format!(
                "<meta name=\"{COMMAND}\" content=\"{command}\">\n<meta name=\"{FILES}\" content=\"{files}\">"
            )
        };
        let files = |text: &str| ReportMark::read(&page("demo", text)).unwrap().files;
        assert_eq!(
            files("runs.csv ../runs.csv /runs.csv .. runs.csv/  thesis.doc .bashrc load.csv"),
            ["runs.csv", "load.csv"]
        );
        assert_eq!(ReportMark::read(&page("\u{1b}[2J", "runs.csv")), None);
    }
}
