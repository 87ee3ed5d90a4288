//! Wording of values in messages.

use std::time::Duration;

use plimsoll_policy::params::nearest;
use toml::de::DeValue;

use crate::keys::KeyKind;
use crate::value;

/// Why a value cannot be used, and what would be right.
pub(crate) type Wrong = (String, String);

/// Whether a line may hold a token, even under a mistyped key, so that no message may repeat it.
pub(crate) fn may_be_secret(key: &str, line: &str) -> bool {
    key.starts_with("admin") || line.contains("token")
}

/// A hint that a text needs quotes.
pub(crate) fn quotes(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Text(_) | KeyKind::Policy | KeyKind::Cache => "as text in double quotes ",
        _ => "",
    }
}

pub(crate) fn duration(text: &str, zero: bool) -> Result<Duration, Wrong> {
    let Some(d) = value::duration(text) else {
        let remedy = "write a number with unit (ms, s, m, h), e.g. \"250ms\", \"10s\" or \"5m\"";
        return Err((format!("{} is no duration", quoted(text)), remedy.to_owned()));
    };
    let kind = if zero { KeyKind::DurationOrZero } else { KeyKind::Duration };
    if (d.is_zero() && !zero) || d > Duration::from_secs(86_400) {
        return Err((format!("{} is out of range", quoted(text)), format!("write {}", kind.accepts())));
    }
    Ok(d)
}

/// The error for a word that is not among `words`.
pub(crate) fn not_one_of(text: &str, words: &[&str]) -> Wrong {
    let remedy = match (nearest(text, words.iter().copied()), words) {
        (Some(near), _) => format!("did you mean \"{near}\"?"),
        (None, [one]) => format!("write \"{one}\""),
        (None, words) => format!("write one of {}", words.join(", ")),
    };
    (format!("{} is not known here", quoted(text)), remedy)
}

/// A number, whole or not.
pub(crate) fn as_number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n as f64),
        DeValue::Float(x) => x.as_str().parse().ok(),
        _ => None,
    }
}

pub(crate) fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

pub(crate) fn bare(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Integer(n) => n.to_string(),
        DeValue::Float(x) => x.as_str().to_owned(),
        _ => String::new(),
    }
}

/// A value as it can be shown in a message.
pub(crate) fn show(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(_) | DeValue::Float(_) => bare(value),
        other => type_name(other).to_owned(),
    }
}

/// A text without control characters and of bounded length.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(60) {
        if c == '\'' || c == '"' { out.push(c) } else { out.extend(c.escape_debug()) }
    }
    if text.chars().nth(60).is_some() {
        out.push('…');
    }
    out
}

/// The same in quotes.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}
