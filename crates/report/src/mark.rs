//! The mark by which a report is known as one of ours, with the files that were written with it.

use std::ffi::OsStr;
use std::path::Path;

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

impl ReportMark {
    /// A mark.
    pub fn new(command: &str, files: &[&str]) -> Self {
        Self { command: command.to_owned(), files: files.iter().map(|&name| name.to_owned()).collect() }
    }

    /// The mark of a page, by its beginning; `None` of a page that is not ours. A file is only named if it lies in the same
    /// directory.
    pub fn read(page: &str) -> Option<Self> {
        let content = |name: &str| {
            let (_, rest) = page.split_once(&format!("<meta name=\"{name}\" content=\""))?;
            rest.split_once('"').map(|(content, _)| content)
        };
        let is_plain = |name: &&str| Path::new(name).file_name() == Some(OsStr::new(name));
        let files = content(FILES)?.split(' ').filter(is_plain).map(str::to_owned).collect();
        Some(Self { command: content(COMMAND)?.to_owned(), files })
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
    fn a_mark_names_no_file_elsewhere() {
        let page = |files: &str| {
            format!("<meta name=\"{COMMAND}\" content=\"a\">\n<meta name=\"{FILES}\" content=\"{files}\">")
        };
        let files = |text: &str| ReportMark::read(&page(text)).unwrap().files;
        assert_eq!(files("a.csv ../b /etc/passwd .. b/c  d"), ["a.csv", "d"]);
    }
}
