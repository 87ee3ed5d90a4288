//! The access log and the decision log.

use std::path::PathBuf;

use crate::declare::{KeyForm, keys, words};
use crate::keys::Default::Is;
use crate::keys::KeyKind::{Choice, Integer, Size, Text};
use crate::path::{path, read_optional, show_optional};
use crate::reader::{ConfigReader, DeclaredTable};
use crate::value::ConfigValue;

keys! {
    /// One line for each request; without this table there is no such log.
    ["access_log"] pub struct AccessLog {
        /// Appended to and opened anew on reload; `-` is standard output.
        "file" file: Option<PathBuf> = Is("-"), Text("the path of a file, or \"-\"") => LogTarget;
        /// `combined`: as of Apache and nginx; `json`: with policy, back-end, reason and the split of the latency.
        "format" format: AccessLogFormat = Is("combined"), Choice(AccessLogFormat::WORDS);
    }
}

words! {
    /// Format of the access log.
    pub enum AccessLogFormat {
        Combined = "combined" / "Combined log format of Apache and nginx.",
        Json = "json" / "One JSON object a line, with policy, back-end, reason and the split of the latency.",
    }
}

/// A file; none is standard output.
struct LogTarget;

impl KeyForm<Option<PathBuf>> for LogTarget {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<PathBuf>> {
        let text = read_optional(reader, section, name, "-")?;
        let file = text.map(|text| reader.resolve(&text));
        if file.as_ref().is_some_and(|f| f.is_dir()) {
            let wrong = ("is a directory".to_owned(), "name a file in it, e.g. \"access.log\"".to_owned());
            reader.wrong(&section.key(name), section.span_of(name), wrong);
        }
        Some(file)
    }

    fn show(file: &Option<PathBuf>) -> Option<ConfigValue> {
        show_optional(file.as_ref(), "-")
    }
}

keys! {
    /// The log of every policy input, for replay; without this table there is none.
    ["decision_log"] pub struct DecisionLogConfig {
        /// Where its files are; made when it is not there.
        "directory" directory: PathBuf = Is("decisions"), Text("the path of a directory") => Directory;
        /// One file at most.
        "file_size" file_bytes: u64 = Is("64MiB"), Size { min: 64 << 10, max: 1 << 40 };
        /// Files kept.
        "files" files: usize = Is("16"), Integer { min: 1, max: 100_000 };
        /// `rotate`: the oldest file goes; `stop`: nothing more is written.
        "when_full" when_full: WhenFull = Is("rotate"), Choice(WhenFull::WORDS);
    }
}

words! {
    /// What happens when a bounded log is full.
    pub enum WhenFull {
        Rotate = "rotate" / "The oldest file goes.",
        Stop = "stop" / "Nothing more is written.",
    }
}

/// A directory, which need not be there.
struct Directory;

impl KeyForm<PathBuf> for Directory {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<PathBuf> {
        let text = reader.text(section, name, |text| path(text).map(str::to_owned))?;
        let directory = reader.resolve(&text);
        if directory.is_file() {
            let wrong = ("is a file".to_owned(), "name a directory".to_owned());
            reader.wrong(&section.key(name), section.span_of(name), wrong);
        }
        Some(directory)
    }

    fn show(directory: &PathBuf) -> Option<ConfigValue> {
        Some(ConfigValue::Text(directory.display().to_string()))
    }
}
