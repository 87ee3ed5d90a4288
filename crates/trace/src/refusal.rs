//! Why an input is of no known format: the nearest format, and a line of it that would do.

use crate::container;
use crate::error::TraceError;
use crate::first_line::quoted;
use crate::format::Format;
use crate::format_spec::{Decode, FormatSpec};
use crate::formats::{FORMATS, csv, time_id_size, w3c};
use crate::json_refusal;
use crate::line_error::LineError;
use crate::options::ReadOptions;
use crate::prefix::Prefix;

/// How alike a line and a sample must be for the format to be named, from 0 to 1.
const NEAR: f64 = 0.3;

/// How much of a line is compared, in bytes.
const COMPARED_BYTES: usize = 200;

/// The error for an input that no format fits.
pub(crate) fn error(prefix: &Prefix<'_>, path: &str) -> TraceError {
    let first = json_refusal::first_object(prefix).or_else(|| prefix.lines().next());
    let of_bytes = || container::reason(prefix.bytes).map(str::to_owned);
    // What helps here is not the name of a format.
    let reason_of = |first| json_refusal::unusable(prefix).or_else(|| json_refusal::reason(first));
    match first.map_or_else(of_bytes, reason_of) {
        Some(reason) => TraceError::read(path, reason),
        None => {
            TraceError::Undetected { path: path.to_owned(), reason: reason(prefix), known: Format::names() }
        }
    }
}

/// Says why no format fits the first bytes of an input, and what would do.
fn reason(prefix: &Prefix<'_>) -> String {
    let Some(first) = prefix.lines().next() else {
        return "it has no line, and none of the marks of the binary formats".to_owned();
    };
    if csv::is_header_in_capitals(first) {
        return format!(
            "its first line, {}, names the columns of a CSV, but not in lower case; write time_s, target and size_bytes",
            quoted(first)
        );
    }
    if let Some(separator) = csv::other_separator(first) {
        return format!(
            "its first line, {}, has the columns of a CSV with {separator} between them; put commas there, and points into decimal \
             numbers",
            quoted(first)
        );
    }
    if let Some(header) = time_id_size::foreign_header(prefix) {
        return format!(
            "its first line, {}, names columns, but not those of a trace of requests; a CSV needs the columns time_s, target and \
             size_bytes{}",
            quoted(header),
            csv::FORMAT.expected()
        );
    }
    if time_id_size::falls(prefix) {
        return "its lines parse as time-id-size, but their times only fall, as in a list sorted by count; if they are \
                requests, sort them by time"
            .to_owned();
    }
    if time_id_size::holds_statuses(prefix) {
        return "its lines parse as time-id-size, but all sizes are statuses of HTTP; if they are sizes nonetheless, give \
                --format time-id-size"
            .to_owned();
    }
    if let Some(step_s) = time_id_size::table_step_s(prefix) {
        return format!(
            "its lines parse as time-id-size, but they follow one another at equal intervals of {step_s} s and no target \
             comes twice with one size, as in a table of counts per interval; if they are requests, give --format time-id-size"
        );
    }
    if let Some(fields) = prefix.lines().find_map(w3c::fields_of) {
        return format!(
            "it has a line `#Fields:`, but {}; say with --fields which field holds what, such as target=cs-uri-path; there are {}",
            complaint(&w3c::SPEC, prefix),
            json_refusal::listed(&fields)
        );
    }
    let near = if begins_with_date(first) { Some(&w3c::SPEC) } else { nearest(first) };
    match near {
        Some(spec) => format!(
            "its first line, {}, is nearest to {}, but {}{}",
            quoted(first),
            spec.format,
            complaint(spec, prefix),
            spec.format.expected()
        ),
        None => format!("its first line, {}, resembles no format", quoted(first)),
    }
}

/// The format whose sample is most like the line, where one is near.
fn nearest(line: &[u8]) -> Option<&'static FormatSpec> {
    let shape = shape_of(line);
    FORMATS
        .iter()
        .filter(|spec| !spec.sample.is_empty())
        .map(|spec| {
            let sample = spec.sample.lines().last().unwrap_or_default();
            (*spec, strsim::normalized_levenshtein(&shape, &shape_of(sample.as_bytes())))
        })
        .filter(|(_, likeness)| *likeness >= NEAR)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(spec, _)| spec)
}

/// Whether a line begins with date and time in fields of their own and has many fields, as in a W3C log that lost its header.
fn begins_with_date(line: &[u8]) -> bool {
    const FORM: &[u8] = b"0000-00-00 00:00:00 ";
    let like = |(byte, form): (&u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        b' ' => matches!(byte, b' ' | b'\t'),
        form => byte == form,
    };
    let fields = line.split(|byte| matches!(byte, b' ' | b'\t')).count();
    line.len() > FORM.len() && line.iter().zip(FORM).all(like) && fields >= 6
}

/// A line with each word and number as one character, so that form counts and content does not.
fn shape_of(line: &[u8]) -> String {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => '0',
        b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => 'a',
        other => char::from(other),
    };
    let mut shape: Vec<char> = line.iter().take(COMPARED_BYTES).map(|byte| kind(*byte)).collect();
    shape.dedup_by(|a, b| a == b && matches!(a, '0' | 'a' | ' '));
    shape.into_iter().collect()
}

/// What a format finds wrong with the first line.
fn complaint(spec: &FormatSpec, prefix: &Prefix<'_>) -> String {
    let error = match &spec.decode {
        Decode::Own { explain: Some(explain), .. } => {
            prefix.lines().next().and_then(|line| explain(line).err())
        }
        Decode::Own { .. } => None,
        Decode::Lines(log) => log.first_of(prefix.lines(), &ReadOptions::default()).err(),
    };
    error.unwrap_or(LineError::Text("most lines are of another form")).to_string()
}

impl Format {
    /// A line that the format takes, as a clause after a semicolon; nothing for a format without lines.
    pub(crate) fn expected(self) -> String {
        match self.spec().sample {
            "" => String::new(),
            sample => format!("; a line of {self} is `{}`", sample.replace('\n', "` and then `")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        reason(&Prefix::new(text.as_bytes(), None))
    }

    #[test]
    fn the_nearest_format_is_named_with_a_line_that_would_do() {
        let text = refused("192.0.2.7 - - [23/Nov/2026:21:22:15 +0000] \"GET /a HTTP/1.1\" 200\n");
        assert!(
            text.contains("nearest to common-log") && text.contains("a line of common-log is `"),
            "{text}"
        );
        let text =
            refused("1795469027.494 12 192.0.2.7 TCP_MISS/200 x GET http://h/a - D/1.1.1.1 image/png\n");
        assert!(
            text.contains("nearest to squid") && text.contains("status or size is not a number"),
            "{text}"
        );
        let text = refused("2019-12-04\t21:02:31\tLAX1\t2111\t192.0.2.24\tGET\t/\n");
        assert!(text.contains("nearest to w3c") && text.contains("no line `#Fields:`"), "{text}");
        let text = refused("2026-11-23T10:00:00 812 40000\n");
        assert!(
            text.contains("nearest to time-id-size") && text.contains("not a number of seconds"),
            "{text}"
        );
        assert!(refused("time_s;target;size_bytes\n1,5;/a;7\n").contains("put commas there"));
        let text = refused(
            "#Software: SGOS 6.7\n#Fields: date time cs-uri-path sc-bytes\n2026-11-23 21:22:15 /a 5\n",
        );
        assert!(
            text.contains("line has no target; say with --fields") && text.contains("cs-uri-path, sc-bytes"),
            "{text}"
        );
        assert!(refused("9 /a 5\n7 /b 6\n6 /c 7\n4 /d 1\n1 /e 2\n").contains("sort them by time"));
        assert!(refused(&"1 /a 200\n3 /b 404\n".repeat(4)).contains("statuses of HTTP"));
        assert!(refused("1795468890123 /a 5\n").contains("in seconds"));
        assert!(refused("hello\nworld\n").contains("resembles no format"));
        assert!(refused("").contains("no line"));
    }
}
