//! Fields that a server was told to write after the usual ones of a common or combined log.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::field_role::{FieldRole, SpanUnit};
use crate::log_request::LoggedSpans;
use crate::span::{span_ns, wrong_span};

/// The names by which a user speaks of such fields.
const ROLES: &[(&str, Option<FieldRole>)] = &[
    ("-", None),
    ("total_s", Some(FieldRole::Total(SpanUnit::S))),
    ("total_ms", Some(FieldRole::Total(SpanUnit::Ms))),
    ("total_us", Some(FieldRole::Total(SpanUnit::Us))),
    ("service_s", Some(FieldRole::Service(SpanUnit::S))),
    ("service_ms", Some(FieldRole::Service(SpanUnit::Ms))),
    ("service_us", Some(FieldRole::Service(SpanUnit::Us))),
    ("backend", Some(FieldRole::Backend)),
];

/// What the fields say that follow the size, and referer and user agent where these are there, one after the other, as
/// `total_s,service_s,backend`; `-` is passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldsAfterSize {
    roles: Vec<Option<FieldRole>>,
    text: String,
}

impl FromStr for FieldsAfterSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let role = |word: &str| {
            let known = ROLES.iter().find(|(name, _)| *name == word.trim()).map(|(_, role)| *role);
            known.ok_or_else(|| {
                let names: Vec<&str> = ROLES.iter().map(|(name, _)| *name).collect();
                format!("`{word}` is no field; known are {}", names.join(", "))
            })
        };
        let roles = text.split(',').map(role).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { roles, text: text.to_owned() })
    }
}

impl fmt::Display for FieldsAfterSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads what follows the size. Without `given`, numbers with decimals are seconds as nginx writes them, that of the request and that of
/// the upstream, and a single whole number is Apache's `%D`.
pub(crate) fn read<'a>(rest: &'a [u8], given: Option<&FieldsAfterSize>) -> LoggedSpans<'a> {
    let tokens = after_quotes(rest);
    let mut out = LoggedSpans::default();
    match given {
        Some(given) => {
            for (token, role) in tokens.iter().zip(&given.roles) {
                if let Some(role) = role {
                    set(&mut out, *role, value(token));
                }
            }
        }
        None => guess(&tokens, &mut out),
    }
    out
}

fn guess<'a>(tokens: &[&'a [u8]], out: &mut LoggedSpans<'a>) {
    let is_number =
        |token: &&&[u8]| std::str::from_utf8(value(token)).is_ok_and(|t| t.parse::<f64>().is_ok());
    let (whole, decimal): (Vec<&[u8]>, Vec<&[u8]>) =
        tokens.iter().filter(is_number).map(|token| value(token)).partition(|text| !text.contains(&b'.'));
    if let [only] = whole[..]
        && decimal.is_empty()
    {
        set(out, FieldRole::Total(SpanUnit::Us), only);
    }
    for (text, role) in
        decimal.into_iter().zip([FieldRole::Total(SpanUnit::S), FieldRole::Service(SpanUnit::S)])
    {
        set(out, role, text);
    }
    let is_address = |text: &&[u8]| {
        text.iter()
            .rposition(|b| *b == b':')
            .is_some_and(|at| at > 0 && at + 1 < text.len() && text[at + 1..].iter().all(u8::is_ascii_digit))
    };
    out.backend = tokens.iter().map(|token| value(token)).find(is_address).map(Cow::Borrowed);
}

fn set<'a>(out: &mut LoggedSpans<'a>, role: FieldRole, text: &'a [u8]) {
    if text.is_empty() || text == b"-" {
        return;
    }
    match role {
        FieldRole::Total(unit) => {
            out.total_ns = span_ns(text, unit);
            out.stamped_at_end = unit == SpanUnit::S;
            out.wrong = out.wrong.or(wrong_span(text, unit));
        }
        FieldRole::Service(unit) => {
            out.backend_ns = span_ns(text, unit);
            out.wrong = out.wrong.or(wrong_span(text, unit));
        }
        _ => out.backend = Some(Cow::Borrowed(text)),
    }
}

/// What stands after a name and `=`, as in `rt=0.012`, without quotes.
fn value(token: &[u8]) -> &[u8] {
    let at = memchr::memchr(b'=', token).map_or(0, |at| at + 1);
    let text = &token[at..];
    text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text)
}

/// The words after referer and user agent, which are in quotes; all words where there are none.
fn after_quotes(rest: &[u8]) -> Vec<&[u8]> {
    let (mut words, mut quoted) = (Vec::new(), 0);
    let mut rest = rest.trim_ascii();
    while !rest.is_empty() {
        let word = if rest[0] == b'"' {
            let closing =
                memchr::memchr_iter(b'"', &rest[1..]).find(|&at| rest.get(at + 2).is_none_or(|b| *b == b' '));
            &rest[..closing.map_or(rest.len(), |at| at + 2)]
        } else {
            &rest[..memchr::memchr(b' ', rest).unwrap_or(rest.len())]
        };
        if word[0] == b'"' && quoted < 2 {
            quoted += 1;
            words.clear();
        } else {
            words.push(word);
        }
        rest = rest[word.len()..].trim_ascii_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(rest: &str, given: Option<&str>) -> (Option<u64>, Option<u64>, Option<String>) {
        let given: Option<FieldsAfterSize> = given.map(|text| text.parse().unwrap());
        let found = read(rest.as_bytes(), given.as_ref());
        let backend = found.backend.map(|text| String::from_utf8_lossy(&text).into_owned());
        (found.total_ns, found.backend_ns, backend)
    }

    #[test]
    fn usual_fields_are_told_from_their_form() {
        assert_eq!(spans(r#" "-" "curl/8 (x 1)" 1500"#, None), (Some(1_500_000), None, None));
        assert_eq!(spans(r#" "-" "curl/8" 0.012"#, None), (Some(12_000_000), None, None));
        let all = r#" "-" "curl/8" "-" rt=0.012 urt="0.010" ua=10.0.0.1:80"#;
        assert_eq!(spans(all, None), (Some(12_000_000), Some(10_000_000), Some("10.0.0.1:80".into())));
        assert_eq!(spans(" 1500", None), (Some(1_500_000), None, None));
        // Bytes in and out, as mod_logio writes, are no durations.
        assert_eq!(spans(r#" "-" "x" 1500 2500"#, None), (None, None, None));
        assert_eq!(spans(r#" "-" "x""#, None), (None, None, None));
    }

    #[test]
    fn the_user_says_what_fields_are() {
        assert_eq!(
            spans(r#" "-" "x" 15 2500 7"#, Some("-,total_us,service_ms")),
            (Some(2_500_000), Some(7_000_000), None)
        );
        assert_eq!(spans(" b1 0.5", Some("backend,total_s")), (Some(500_000_000), None, Some("b1".into())));
        assert!("total".parse::<FieldsAfterSize>().unwrap_err().contains("known are -, total_s"));
    }

    #[test]
    fn absurd_durations_are_noticed() {
        for (text, reason) in
            [("-5", "negative"), ("1e30", "longer than a day"), ("NaN", "no number"), ("x", "no number")]
        {
            let given = "total_s".parse().unwrap();
            let found = read(text.as_bytes(), Some(&given));
            assert!(found.wrong.unwrap().to_string().contains(reason), "{text}");
        }
        assert!(read(b" \"-\" \"x\" -0.005", None).wrong.is_some());
    }
}
