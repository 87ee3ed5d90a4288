//! The W3C extended log format, whose line `#Fields:` names the fields: IIS and CloudFront.

use std::borrow::Cow;

use crate::field_role::{FieldRole, SpanUnit};
use crate::format::Format;
use crate::format_spec::{Decode, FormatSpec};
use crate::line_error::LineError;
use crate::line_log::{LineLog, LineSplitter, SplitLine};
use crate::options::ReadOptions;
use crate::raw_request::RawRequest;

/// Fields by their names in the log. `time-taken` is treated apart.
const NAMES: &[(&str, FieldRole)] = &[
    ("date", FieldRole::Date),
    ("time", FieldRole::End),
    ("c-ip", FieldRole::Client),
    ("cs-method", FieldRole::Method),
    ("cs-uri-stem", FieldRole::Target),
    ("cs-uri", FieldRole::Target),
    ("cs-uri-query", FieldRole::Query),
    ("sc-status", FieldRole::Status),
    ("sc-bytes", FieldRole::Size),
    // The second is CloudFront's.
    ("cs-host", FieldRole::Site),
    ("x-host-header", FieldRole::Site),
];

/// Fields that IIS alone writes, whose `time-taken` counts milliseconds.
const OF_IIS: [&str; 4] = ["sc-win32-status", "sc-substatus", "s-sitename", "s-computername"];

const TIME_TAKEN: &str = "time-taken";

const NO_FIELDS: LineError = LineError::Text("no line `#Fields:` says what the fields are");
const NO_SIZE: LineError = LineError::Text(
    "the log has no sizes: have the server log `sc-bytes`, or give every request one, such as --fields size=8192",
);

/// What a column holds.
#[derive(Debug, Clone, Copy)]
enum Column {
    Field(FieldRole),
    TimeTaken,
    Unused,
}

/// Splits lines as the last `#Fields:` says.
struct W3cSplitter {
    given: Vec<(FieldRole, String)>,
    /// Which of them a line `#Fields:` has named.
    given_seen: Vec<bool>,
    size_bytes: Option<u64>,
    columns: Vec<Column>,
    /// Of the line `#Date:`, for logs whose lines hold the time of the day alone.
    date: Vec<u8>,
    /// IIS and Blue Coat write `time-taken` in milliseconds, the others in seconds.
    taken_unit: SpanUnit,
}

impl W3cSplitter {
    fn new(options: &ReadOptions) -> Self {
        let map = options.fields.as_ref();
        let given = map.map_or(Vec::new(), |map| map.fields().to_vec());
        Self {
            given_seen: vec![false; given.len()],
            given,
            size_bytes: map.and_then(|map| map.size_bytes()),
            columns: Vec::new(),
            date: Vec::new(),
            taken_unit: SpanUnit::S,
        }
    }

    fn direct(&mut self, line: &[u8]) {
        let Some(colon) = memchr::memchr(b':', line) else { return };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"#Fields") {
            let names = value.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty());
            let names: Vec<_> = names.map(String::from_utf8_lossy).collect();
            self.columns = names.iter().map(|name| self.column(name)).collect();
            for (seen, (_, given)) in self.given_seen.iter_mut().zip(&self.given) {
                *seen |= names.iter().any(|name| name == given);
            }
            if names.iter().any(|name| OF_IIS.contains(&name.as_ref())) {
                self.taken_unit = SpanUnit::Ms;
            }
        } else if name.eq_ignore_ascii_case(b"#Date") {
            self.date = value.split(|&b| b == b' ').next().unwrap_or_default().to_owned();
        } else if name.eq_ignore_ascii_case(b"#Software")
            && [&b"Microsoft"[..], b"SGOS"].iter().any(|of| memchr::memmem::find(value, of).is_some())
        {
            self.taken_unit = SpanUnit::Ms;
        }
    }

    fn column(&self, name: &str) -> Column {
        if let Some((role, _)) = self.given.iter().find(|(_, given)| given == name) {
            return Column::Field(*role);
        }
        match NAMES.iter().find(|(known, _)| *known == name) {
            Some((_, role)) => Column::Field(*role),
            None if name == TIME_TAKEN => Column::TimeTaken,
            None => Column::Unused,
        }
    }

    fn has(&self, role: FieldRole) -> bool {
        self.columns.iter().any(|column| matches!(column, Column::Field(found) if *found == role))
    }
}

impl LineSplitter for W3cSplitter {
    fn split<'a>(&mut self, line: &'a [u8]) -> Result<SplitLine<'a>, LineError> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if line.starts_with(b"#") {
            self.direct(line);
            return Ok(SplitLine::Directive);
        }
        if self.columns.is_empty() {
            return Err(NO_FIELDS);
        }
        if self.size_bytes.is_none() && !self.has(FieldRole::Size) {
            return Err(NO_SIZE);
        }
        let separator = if memchr::memchr(b'\t', line).is_some() { b'\t' } else { b' ' };
        let mut values = line.split(|&b| b == separator);
        let mut raw = RawRequest::default();
        for column in &self.columns {
            let value =
                values.next().ok_or(LineError::Text("line has fewer fields than `#Fields:` names"))?;
            match column {
                Column::Field(role) => raw.set(*role, Cow::Borrowed(value)),
                // CloudFront's seconds have decimals.
                Column::TimeTaken if memchr::memchr(b'.', value).is_some() => {
                    raw.set(FieldRole::Total(SpanUnit::S), Cow::Borrowed(value))
                }
                Column::TimeTaken => raw.set(FieldRole::Total(self.taken_unit), Cow::Borrowed(value)),
                Column::Unused => continue,
            };
        }
        if values.next().is_some() {
            return Err(LineError::Text("line has more fields than `#Fields:` names"));
        }
        if !self.has(FieldRole::Date) && !self.date.is_empty() && self.has(FieldRole::End) {
            raw.set(FieldRole::Date, Cow::Owned(self.date.clone()));
        }
        if let Some(size_bytes) = self.size_bytes {
            raw.set(FieldRole::Size, Cow::Owned(size_bytes.to_string().into_bytes()));
        }
        Ok(SplitLine::Request(raw))
    }

    fn given_seen(&self) -> &[bool] {
        &self.given_seen
    }

    fn knows_fields(&self) -> bool {
        self.has(FieldRole::Target) && (self.has(FieldRole::End) || self.has(FieldRole::Time))
    }
}

/// The fields that a line `#Fields:` names.
pub(crate) fn fields_of(line: &[u8]) -> Option<Vec<String>> {
    let names =
        line.strip_prefix(b"#Fields:")?.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty());
    Some(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// Registry entry.
pub static SPEC: FormatSpec = FormatSpec {
    format: Format::named("w3c"),
    aliases: &["w3cextended", "iis", "cloudfront", "elf"],
    summary: "W3C extended log with a line `#Fields:`: IIS, CloudFront",
    recognised_by: "the line `#Fields:`",
    sample: "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status sc-bytes time-taken\n\
             2026-11-23 21:22:15 10.0.0.1 GET /index.html user=7 443 - 192.0.2.7 curl/7.88.1 - 200 0 0 1719 15",
    remark: "Fields `time` (and `date`), `cs-uri-stem`, `sc-bytes` are needed, `cs-method`, `sc-status`, `cs-uri-query`, `c-ip`, \
             `time-taken` are used; `sc-bytes` counts heads. `time-taken` is in milliseconds in logs of IIS and Blue Coat, else in seconds.",
    binary: false,
    family: "w3c",
    decode: Decode::Lines(LineLog { splitter: |options| Box::new(W3cSplitter::new(options)), named: true }),
    stamps: |_| "arrival: the log has the end of each answer, from which `time-taken` is subtracted where it is logged",
    writer: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn time_and_target(splitter: &mut W3cSplitter, line: &str) -> Result<(u64, String), LineError> {
        match splitter.split(line.as_bytes())? {
            SplitLine::Request(raw) => {
                let request = raw.read()?;
                Ok((request.time_ns, String::from_utf8(request.target?.into_owned()).unwrap()))
            }
            _ => Err(NO_FIELDS),
        }
    }

    #[test]
    fn fields_may_change_and_the_date_may_stand_apart() {
        let mut splitter = W3cSplitter::new(&ReadOptions::default());
        assert_eq!(time_and_target(&mut splitter, "00:00:01 /a 5"), Err(NO_FIELDS));
        for line in ["#Date: 1970-01-02 00:00:00", "#Fields: time cs-uri-stem sc-bytes"] {
            assert!(matches!(splitter.split(line.as_bytes()), Ok(SplitLine::Directive)));
        }
        assert_eq!(time_and_target(&mut splitter, "00:00:01 /a 5"), Ok((86_401_000_000_000, "/a".into())));
        assert!(splitter.knows_fields());
        splitter.direct(b"#Fields: sc-bytes cs-uri-stem cs-uri-query date time time-taken");
        let line = "5\t/b\tq=1\t1970-01-01\t00:00:09\t2.5";
        assert_eq!(time_and_target(&mut splitter, line), Ok((7_000_000_000, "/b?q=1".into())));
        assert!(time_and_target(&mut splitter, "5\t/b").is_err());
    }

    #[test]
    fn the_unit_of_time_taken_is_that_of_who_wrote_the_log() {
        let time_ns = |header: &str| {
            let mut splitter = W3cSplitter::new(&ReadOptions::default());
            header.lines().for_each(|line| splitter.direct(line.as_bytes()));
            time_and_target(&mut splitter, "100 /a 0 5 3").unwrap().0
        };
        let fields = |third: &str| format!("#Fields: time cs-uri-stem {third} sc-bytes time-taken");
        assert_eq!(time_ns(&fields("x-other")), 97_000_000_000);
        // From whole seconds only whole seconds are subtracted.
        assert_eq!(time_ns(&fields("sc-win32-status")), 100_000_000_000);
        assert_eq!(time_ns(&format!("#Software: SGOS 6.7\n{}", fields("x-other"))), 100_000_000_000);
    }

    #[test]
    fn a_log_without_sizes_says_what_to_do() {
        let text = "#Software: Microsoft Internet Information Services 10.0\n#Fields: date time cs-uri-stem time-taken";
        let read = |options: &ReadOptions| {
            let mut splitter = W3cSplitter::new(options);
            text.lines().for_each(|line| splitter.direct(line.as_bytes()));
            time_and_target(&mut splitter, "1970-01-01 00:00:09 /a 3000")
        };
        assert_eq!(read(&ReadOptions::default()), Err(NO_SIZE));
        let options = ReadOptions { fields: Some("size=8192".parse().unwrap()), ..ReadOptions::default() };
        assert_eq!(read(&options), Ok((6_000_000_000, "/a".into())));
    }
}
