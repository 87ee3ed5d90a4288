//! The formats and how to tell them apart.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::error::TraceError;
use crate::formats::{csv, log, oracle, time_id_size, worldcup};

/// A format in which traces are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// NCSA common log (Apache `%h %l %u %t "%r" %>s %b`).
    CommonLog,
    /// Common log followed by referer and user agent; the default of Apache and nginx.
    CombinedLog,
    /// Binary log of the 1998 World Cup (Internet Traffic Archive): 20 bytes per request, big-endian.
    WorldCup98,
    /// libCacheSim's `oracleGeneral`: 24 bytes per request, little-endian.
    OracleGeneral,
    /// Lines `time id size`, separated by spaces, tabs or commas, without a header.
    TimeIdSize,
    /// CSV with the header `time_s,target,size_bytes[,kind,class,service_s,client]` (RFC 4180).
    Csv,
    /// Apache Parquet with the columns of the CSV.
    Parquet,
}

/// How much of an input is looked at to tell its format, in bytes.
pub(crate) const PREFIX_BYTES: usize = 64 * 1024;

/// How many lines of the prefix are tried.
const PROBED_LINES: usize = 100;

impl Format {
    /// Every format.
    pub const ALL: [Self; 7] = [
        Self::CommonLog,
        Self::CombinedLog,
        Self::WorldCup98,
        Self::OracleGeneral,
        Self::TimeIdSize,
        Self::Csv,
        Self::Parquet,
    ];

    /// Name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CommonLog => "common-log",
            Self::CombinedLog => "combined-log",
            Self::WorldCup98 => "worldcup98",
            Self::OracleGeneral => "oracle-general",
            Self::TimeIdSize => "time-id-size",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }

    /// Whether [`crate::convert`] can write it: an access log or a World Cup 98 log says more than a
    /// trace knows.
    pub const fn is_writable(self) -> bool {
        !matches!(self, Self::CommonLog | Self::CombinedLog | Self::WorldCup98)
    }

    /// All names, separated by commas.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Tells the format from the first bytes of an input (after decompression; some 64 KiB are
    /// enough) and, for the binary formats that have no mark of their own, also from its name.
    ///
    /// `None` when the bytes resemble no known format.
    pub fn detect(first: &[u8], path: Option<&Path>) -> Option<Self> {
        if first.starts_with(b"PAR1") {
            return Some(Self::Parquet);
        }
        if memchr::memchr(0, first).is_some() {
            return detect_binary(first, path);
        }
        detect_text(first).or_else(|| detect_binary(first, path))
    }
}

fn detect_text(first: &[u8]) -> Option<Format> {
    let whole_lines = match memchr::memrchr(b'\n', first) {
        Some(end) => &first[..end],
        None => first,
    };
    let lines = || {
        whole_lines
            .split(|&b| b == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| !line.is_empty())
            .take(PROBED_LINES)
    };
    if csv::is_header(lines().next()?) {
        return Some(Format::Csv);
    }
    let logs: Vec<_> = lines().filter_map(|line| log::split(line).ok()).collect();
    let triples = lines().filter(|line| time_id_size::split(line).is_ok()).count();
    if logs.is_empty() && triples == 0 {
        return None;
    }
    Some(if triples > logs.len() {
        Format::TimeIdSize
    } else if logs.iter().any(|line| line.has_more) {
        Format::CombinedLog
    } else {
        Format::CommonLog
    })
}

fn detect_binary(first: &[u8], path: Option<&Path>) -> Option<Format> {
    let name = path
        .and_then(Path::file_name)
        .map(|name| name.to_string_lossy().to_ascii_lowercase())
        .unwrap_or_default();
    if name.contains("oraclegeneral") {
        Some(Format::OracleGeneral)
    } else if worldcup::looks_like(first) {
        Some(Format::WorldCup98)
    } else if oracle::looks_like(first) {
        Some(Format::OracleGeneral)
    } else if name.starts_with("wc_day") || name.contains("worldcup98") {
        Some(Format::WorldCup98)
    } else {
        None
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl serde::Serialize for Format {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for Format {
    type Err = TraceError;

    fn from_str(name: &str) -> Result<Self, TraceError> {
        let plain: String =
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        let alias = match plain.as_str() {
            "common" | "commonlog" | "clf" => Some(Self::CommonLog),
            "combined" | "combinedlog" | "apache" | "nginx" => Some(Self::CombinedLog),
            "worldcup98" | "worldcup" | "wc98" => Some(Self::WorldCup98),
            "oraclegeneral" | "oracle" => Some(Self::OracleGeneral),
            "timeidsize" | "tis" => Some(Self::TimeIdSize),
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            _ => None,
        };
        alias.ok_or_else(|| TraceError::UnknownFormat {
            name: name.to_owned(),
            nearest: nearest(&name.to_ascii_lowercase()),
        })
    }
}

fn nearest(name: &str) -> Option<&'static str> {
    Format::ALL
        .iter()
        .map(|format| (strsim::jaro_winkler(name, format.name()), format.name()))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for format in Format::ALL {
            assert_eq!(format.name().parse::<Format>().unwrap(), format);
        }
        assert_eq!("oracleGeneral".parse::<Format>().unwrap(), Format::OracleGeneral);
        assert_eq!("time id size".parse::<Format>().unwrap(), Format::TimeIdSize);
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
        assert_eq!(detect(common), Some(Format::CommonLog));
        assert_eq!(detect(&format!("rubbish\n{common}")), Some(Format::CommonLog));
        let combined = common.replace('\n', " \"-\" \"Mozilla\"\n");
        assert_eq!(detect(&combined), Some(Format::CombinedLog));
        assert_eq!(detect("1 0 68\n2 1 7454\n"), Some(Format::TimeIdSize));
        assert_eq!(detect("0.5,a,68\r\n2\tb\t7\r\n"), Some(Format::TimeIdSize));
        assert_eq!(detect("target,size_bytes,time_s\n"), Some(Format::Csv));
        assert_eq!(detect("\"time_s\",\"target\",size_bytes"), Some(Format::Csv));
        assert_eq!(detect("PAR1\0"), Some(Format::Parquet));
        assert_eq!(detect("hello\nworld\n"), None);
        assert_eq!(detect(""), None);
    }
}
