//! TOML syntax errors, with the nearest key and a remedy.

use crate::message::may_be_secret;
use crate::reader::{ConfigReader, escaped};

/// The most errors reported; later ones are mostly consequences.
const ERRORS_MAX: usize = 50;

/// Reports the parser's errors.
pub(super) fn report(reader: &mut ConfigReader<'_>, text: &str, errors: &[toml::de::Error]) {
    for error in errors.iter().take(ERRORS_MAX) {
        let span = error.span().unwrap_or(0..0);
        let message: String = error.message().lines().collect::<Vec<_>>().join(", ");
        let key = key_near(text, span.start);
        let remedy = remedy(text, span.start, &key, &message);
        reader.wrong(&key, span, (format!("not valid TOML: {}", escaped(&message)), remedy));
    }
}

/// The part of the line at `at`, and everything before that line.
fn line_at(text: &str, at: usize) -> (&str, &str) {
    let at = text.floor_char_boundary(at.min(text.len()));
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let line = text[start..].lines().next().unwrap_or("");
    (line, &text[..start])
}

/// The dotted key of the line at `at`, as far as one can tell without understanding the file.
fn key_near(text: &str, at: usize) -> String {
    let (line, before) = line_at(text, at);
    if let Some(header) = header_of(line) {
        return escaped(header);
    }
    let key = line.split_once('=').map_or(line, |(key, _)| key);
    // Text after a space or quote is a value whose `=` is missing, perhaps a secret.
    let key = key.split('#').next().unwrap_or("").trim().split([' ', '\t', '"', '\'']).next().unwrap_or("");
    let header = before.lines().rev().find_map(|l| Some((header_of(l)?, l.trim_start().starts_with("[["))));
    let section = match header {
        None => String::new(),
        Some((name, false)) => format!("{}.", escaped(name)),
        Some((name, true)) => {
            let so_far = before.lines().filter(|l| l.starts_with("[[") && header_of(l) == Some(name)).count();
            format!("{}[{}].", escaped(name), so_far.saturating_sub(1))
        }
    };
    format!("{section}{}", escaped(key)).trim_end_matches('.').to_owned()
}

/// The name in a line such as `[policy]` or `[[backend]]`.
fn header_of(line: &str) -> Option<&str> {
    let line = line.split('#').next().unwrap_or("").trim();
    let inside = line.strip_prefix('[')?.trim_start_matches('[').trim_end_matches(']').trim();
    (!inside.is_empty() && !inside.contains(['=', '"', ','])).then_some(inside)
}

fn remedy(text: &str, at: usize, key: &str, message: &str) -> String {
    let (line, _) = line_at(text, at);
    let value = line.split_once('=').map(|(_, value)| value.trim());
    if message.contains("duplicate") {
        return "keep one of the two".to_owned();
    }
    match value {
        None if header_of(line).is_some() => {
            "write a table as [name] and a list entry as [[name]]".to_owned()
        }
        None => "write one `key = value` a line".to_owned(),
        Some("") => "write a value after the `=`".to_owned(),
        Some(_) if may_be_secret(key, line) => "text stands in double quotes".to_owned(),
        Some(value) if value.starts_with(|c: char| c.is_alphanumeric() || "/.-_*:".contains(c)) => {
            let word = value.split([' ', '#']).next().unwrap_or(value);
            format!("text stands in double quotes, e.g. \"{}\"", escaped(word.trim_matches('"')))
        }
        Some(_) => "write one `key = value` a line, with text in double quotes".to_owned(),
    }
}
