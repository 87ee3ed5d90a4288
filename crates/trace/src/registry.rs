//! Looks formats up: by name, by the first bytes of an input, by the name of an output.

use std::path::Path;
use std::str::FromStr;

use crate::error::TraceError;
use crate::format::Format;
use crate::format_spec::{Decode, FormatSpec};
use crate::formats::FORMATS;
use crate::options::ReadOptions;
use crate::prefix::{Likeness, Prefix};

/// How much of an input is looked at to tell its format, in bytes.
pub(crate) const PREFIX_BYTES: usize = 64 * 1024;

impl Format {
    /// Every format.
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().map(|spec| spec.format)
    }

    /// Its registry entry.
    pub fn spec(self) -> &'static FormatSpec {
        FORMATS.iter().find(|spec| spec.format == self).expect("only registry entries make formats")
    }

    /// Whether [`crate::convert`] can write it: an access log or a World Cup 98 log says more than a
    /// trace knows.
    pub fn is_writable(self) -> bool {
        self.spec().writer.is_some()
    }

    /// Whether the fields of its lines have names, so that `--fields` can say what they mean.
    pub fn has_named_fields(self) -> bool {
        matches!(&self.spec().decode, Decode::Lines(log) if log.named)
    }

    /// What is lost when a trace is written in it, as a sentence after a space; empty when it keeps everything.
    pub fn loss(self) -> &'static str {
        self.spec().writer.as_ref().map_or("", |writer| writer.loss)
    }

    /// All names, separated by commas.
    pub(crate) fn names() -> String {
        Self::all().map(Self::name).collect::<Vec<_>>().join(", ")
    }

    /// The names of those that [`crate::convert`] can write, as messages list them.
    pub fn writable_names() -> String {
        let mut names: Vec<_> = Self::all().filter(|f| f.is_writable()).map(Self::name).collect();
        names.sort_unstable();
        let last = names.pop().unwrap_or_default();
        format!("{} or {last}", names.join(", "))
    }

    /// Tells the format from the first bytes of an input (after decompression; some 64 KiB are
    /// enough) and, for the binary formats that have no mark of their own, also from its name.
    ///
    /// `None` when the bytes resemble no known format, or not even half of the first lines are of its form.
    pub fn detect(first: &[u8], path: Option<&Path>) -> Option<Self> {
        Self::detect_prefix(&Prefix::new(first, path))
    }

    pub(crate) fn detect_prefix(prefix: &Prefix<'_>) -> Option<Self> {
        Self::detect_with(prefix, &ReadOptions::default())
    }

    /// As [`Format::detect_prefix`], where lines are read as `options` say.
    pub(crate) fn detect_with(prefix: &Prefix<'_>, options: &ReadOptions) -> Option<Self> {
        let mut best = (Likeness::None, None);
        for spec in FORMATS {
            let (likeness, lines) = likeness(spec, prefix, options);
            let clear = !matches!(likeness, Likeness::Lines(alike) if 2 * alike < lines);
            if likeness > best.0 && clear {
                best = (likeness, Some(spec.format));
            }
        }
        best.1
    }

    /// The format of inputs in this one and in `other`, read together; `None` where that cannot be.
    pub(crate) fn merged_with(self, other: Self) -> Option<Self> {
        let place = |format: Self| FORMATS.iter().position(|spec| spec.format == format);
        (self.spec().family == other.spec().family)
            .then(|| if place(self) < place(other) { other } else { self })
    }
}

/// How much an input resembles a format, and how many of its first lines could.
fn likeness(spec: &FormatSpec, prefix: &Prefix<'_>, options: &ReadOptions) -> (Likeness, usize) {
    match &spec.decode {
        Decode::Own { likeness, .. } => (likeness(prefix), prefix.lines().count()),
        Decode::Lines(log) => {
            let trial = log.try_on(prefix.lines(), options);
            let likeness = match trial.sensible {
                _ if trial.header => Likeness::Header,
                0 => Likeness::None,
                sensible => Likeness::Lines(sensible),
            };
            (likeness, trial.lines)
        }
    }
}

/// The format that the name of an output asks for, leaving endings of compression aside.
///
/// `None` when the ending is none of `.csv`, `.parquet`, `.oracleGeneral` (or `.bin`) and `.tr`
/// (or `.txt`).
pub fn format_of_output(output: &Path) -> Option<Format> {
    let name = output.file_name()?.to_str()?.to_ascii_lowercase();
    let bare = [".gz", ".zst", ".xz"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    let (_, ending) = bare.rsplit_once('.')?;
    let asked = |spec: &&&FormatSpec| spec.writer.as_ref().is_some_and(|w| w.endings.contains(&ending));
    FORMATS.iter().find(asked).map(|spec| spec.format)
}

impl FromStr for Format {
    type Err = TraceError;

    fn from_str(name: &str) -> Result<Self, TraceError> {
        let plain = |text: &str| -> String {
            text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
        };
        let given = plain(name);
        let known = FORMATS
            .iter()
            .find(|spec| plain(spec.format.name()) == given || spec.aliases.contains(&given.as_str()));
        known.map(|spec| spec.format).ok_or_else(|| TraceError::UnknownFormat {
            name: name.to_owned(),
            nearest: nearest(&name.to_ascii_lowercase()),
            known: Self::names(),
        })
    }
}

fn nearest(name: &str) -> Option<&'static str> {
    Format::all()
        .map(|format| (strsim::jaro_winkler(name, format.name()), format.name()))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{csv, log, oracle, parquet, time_id_size, worldcup};

    #[test]
    fn names_parse_back() {
        for format in Format::all() {
            assert_eq!(format.name().parse::<Format>().unwrap(), format);
        }
        assert_eq!("oracleGeneral".parse::<Format>().unwrap(), oracle::FORMAT);
        assert_eq!("time id size".parse::<Format>().unwrap(), time_id_size::FORMAT);
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        let message = "comon-log".parse::<Format>().unwrap_err().to_string();
        assert!(message.contains("did you mean `common-log`?"), "{message}");
        let message = "zzz".parse::<Format>().unwrap_err().to_string();
        assert!(!message.contains("did you mean"), "{message}");
        assert!(message.contains("parquet"), "{message}");
    }

    #[test]
    fn text_formats_are_told_apart() {
        let detect = |text: &str| Format::detect(text.as_bytes(), None);
        let common = "h - - [01/Jul/1995:00:00:01 -0400] \"GET / HTTP/1.0\" 200 6245\n";
        assert_eq!(detect(common), Some(log::COMMON));
        assert_eq!(detect(&format!("rubbish\n{common}")), Some(log::COMMON));
        let combined = common.replace('\n', " \"-\" \"Mozilla\"\n");
        assert_eq!(detect(&combined), Some(log::COMBINED));
        assert_eq!(detect("1 0 68\n2 1 7454\n"), Some(time_id_size::FORMAT));
        assert_eq!(detect("0.5,a,68\r\n2\tb\t7\r\n"), Some(time_id_size::FORMAT));
        assert_eq!(detect("target,size_bytes,time_s\n"), Some(csv::FORMAT));
        assert_eq!(detect("\"time_s\",\"target\",size_bytes"), Some(csv::FORMAT));
        assert_eq!(detect("PAR1\0"), Some(parquet::FORMAT));
        assert_eq!(detect("hello\nworld\n"), None);
        assert_eq!(detect(""), None);
    }

    #[test]
    fn a_name_alone_makes_no_text_binary() {
        let detect = |bytes: &[u8], name: &str| Format::detect(bytes, Some(Path::new(name)));
        for (name, format) in [
            ("my_worldcup98_notes.txt", worldcup::FORMAT),
            ("wc_day66_1", worldcup::FORMAT),
            ("cloud.oracleGeneral", oracle::FORMAT),
        ] {
            assert_eq!(detect(b"hello\nworld\n", name), None, "{name}");
            assert_eq!(detect(b"1 0 68\n2 1 7454\n", name), Some(time_id_size::FORMAT), "{name}");
            // Of another time than such logs, so that the name has to say it.
            assert_eq!(detect(&[0; 60], name), Some(format), "{name}");
        }
    }

    #[test]
    fn endings_name_formats() {
        let format = |name: &str| format_of_output(Path::new(name));
        assert_eq!(format("a/b.csv"), Some(csv::FORMAT));
        assert_eq!(format("b.csv.zst"), Some(csv::FORMAT));
        assert_eq!(format("b.parquet"), Some(parquet::FORMAT));
        assert_eq!(format("b.oracleGeneral.xz"), Some(oracle::FORMAT));
        assert_eq!(format("b.tr.gz"), Some(time_id_size::FORMAT));
        assert_eq!(format("b.log"), None);
        assert_eq!(format("csv"), None);
        assert_eq!(format("-"), None);
    }
}
