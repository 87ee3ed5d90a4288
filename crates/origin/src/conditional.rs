//! Evaluates the preconditions of requests (RFC 9110, section 13) in the order of section 13.2.2.

use std::time::UNIX_EPOCH;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// What the preconditions of a request are compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validators<'a> {
    /// Entity tag without its quotes; strong.
    pub(crate) tag: &'a str,
    /// Last modification in seconds since 1970.
    pub(crate) modified_s: Option<u64>,
    /// Now, in seconds since 1970.
    pub(crate) now_s: u64,
}

/// What follows from the preconditions of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precondition {
    /// Answer as if there were none. `range` tells whether the header `Range` counts.
    Proceed { range: bool },
    /// Answer 304 Not Modified.
    NotModified,
    /// Answer 412 Precondition Failed.
    Failed,
}

/// Evaluates the preconditions of a GET or HEAD.
pub(crate) fn evaluate(headers: &HeaderMap, validators: Validators<'_>) -> Precondition {
    if headers.contains_key(header::IF_MATCH) {
        if !any_tag(headers, &header::IF_MATCH, validators.tag, Comparison::Strong) {
            return Precondition::Failed;
        }
    } else if let (Some(modified_s), Some(date_s)) =
        (validators.modified_s, date(headers, &header::IF_UNMODIFIED_SINCE))
        && modified_s > date_s
    {
        return Precondition::Failed;
    }
    if headers.contains_key(header::IF_NONE_MATCH) {
        if any_tag(headers, &header::IF_NONE_MATCH, validators.tag, Comparison::Weak) {
            return Precondition::NotModified;
        }
    } else if let (Some(modified_s), Some(date_s)) =
        (validators.modified_s, date(headers, &header::IF_MODIFIED_SINCE))
        && modified_s <= date_s
    {
        return Precondition::NotModified;
    }
    Precondition::Proceed { range: if_range(headers, validators) }
}

/// Whether `If-Range` allows to serve a range: RFC 9110, section 13.1.5.
fn if_range(headers: &HeaderMap, validators: Validators<'_>) -> bool {
    let Some(value) = only(headers, &header::IF_RANGE) else {
        return !headers.contains_key(header::IF_RANGE);
    };
    let text = value.as_bytes();
    if text.starts_with(b"\"") || text.starts_with(b"W/") {
        return any_tag(headers, &header::IF_RANGE, validators.tag, Comparison::Strong);
    }
    // A date is as good as a strong tag only once the second that it names is over: section 8.8.2.2.
    let modified_s = validators.modified_s.filter(|&modified_s| modified_s < validators.now_s);
    modified_s.is_some() && date(headers, &header::IF_RANGE) == modified_s
}

/// The value of the header; `None` unless it occurs exactly once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// A date in one of the three forms of RFC 9110, section 5.6.7, in seconds since 1970. Anything else counts as absent.
fn date(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let text = only(headers, name)?.to_str().ok()?;
    let date = httpdate::parse_http_date(text.trim()).ok()?;
    Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// How entity tags are compared: RFC 9110, section 8.8.3.2.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// A weak tag equals no other one.
    Strong,
    /// A weak tag equals another one of the same text.
    Weak,
}

/// Whether the header is `*` or lists an entity tag equal to `tag`. If the list has a mistake, only what stands before the
/// mistake counts.
fn any_tag(headers: &HeaderMap, name: &HeaderName, tag: &str, comparison: Comparison) -> bool {
    headers.get_all(name).iter().any(|value| {
        let value = value.as_bytes().trim_ascii();
        if value == b"*" {
            return true;
        }
        let mut rest = value;
        loop {
            let start = rest.iter().position(|b| !matches!(b, b',' | b' ' | b'\t')).unwrap_or(rest.len());
            rest = &rest[start..];
            let weak = rest.starts_with(b"W/");
            let Some(opened) = rest[if weak { 2 } else { 0 }..].strip_prefix(b"\"") else { return false };
            let Some(length) = opened.iter().position(|&b| b == b'"') else { return false };
            if &opened[..length] == tag.as_bytes() && !(weak && comparison == Comparison::Strong) {
                return true;
            }
            rest = &opened[length + 1..];
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1994-11-06 08:49:37 UTC, the example of RFC 9110.
    const MODIFIED_S: u64 = 784_111_777;
    const AT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sunday, 06-Nov-94 08:49:38 GMT";

    fn verdict(headers: &[(&str, &str)]) -> Precondition {
        at(headers, MODIFIED_S + 1)
    }

    fn at(headers: &[(&str, &str)], now_s: u64) -> Precondition {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap());
        }
        evaluate(&map, Validators { tag: "x,1", modified_s: Some(MODIFIED_S), now_s })
    }

    const WITH: Precondition = Precondition::Proceed { range: true };
    const WITHOUT: Precondition = Precondition::Proceed { range: false };

    #[test]
    fn conditions_one_by_one() {
        let table: &[(&str, &str, Precondition)] = &[
            ("if-match", "\"x,1\"", WITH),
            ("if-match", "*", WITH),
            ("if-match", "\"y\", \"x,1\"", WITH),
            ("if-match", "W/\"x,1\"", Precondition::Failed),
            ("if-match", "\"y\"", Precondition::Failed),
            ("if-match", "x,1", Precondition::Failed),
            ("if-match", "", Precondition::Failed),
            ("if-unmodified-since", AT, WITH),
            ("if-unmodified-since", AFTER, WITH),
            ("if-unmodified-since", BEFORE, Precondition::Failed),
            ("if-unmodified-since", "yesterday", WITH),
            ("if-none-match", "\"x,1\"", Precondition::NotModified),
            ("if-none-match", "W/\"x,1\"", Precondition::NotModified),
            ("if-none-match", "*", Precondition::NotModified),
            ("if-none-match", ",, \"y\" , W/\"x,1\"", Precondition::NotModified),
            ("if-none-match", "\"x", WITH),
            ("if-none-match", "\"y\"", WITH),
            ("if-none-match", "junk, \"x,1\"", WITH),
            ("if-modified-since", AT, Precondition::NotModified),
            ("if-modified-since", AFTER, Precondition::NotModified),
            ("if-modified-since", "Sun Nov  6 08:49:37 1994", Precondition::NotModified),
            ("if-modified-since", BEFORE, WITH),
            ("if-modified-since", "0", WITH),
            ("if-range", "\"x,1\"", WITH),
            ("if-range", "W/\"x,1\"", WITHOUT),
            ("if-range", "\"y\"", WITHOUT),
            ("if-range", AT, WITH),
            ("if-range", AFTER, WITHOUT),
            ("if-range", BEFORE, WITHOUT),
            ("if-range", "junk", WITHOUT),
        ];
        for &(name, value, expected) in table {
            assert_eq!(verdict(&[(name, value)]), expected, "{name}: {value}");
        }
    }

    #[test]
    fn precedence() {
        let (matches, differs) = ("\"x,1\"", "\"y\"");
        let table: &[(&[(&str, &str)], Precondition)] = &[
            // A tag makes the date beside it void.
            (&[("if-match", matches), ("if-unmodified-since", BEFORE)], WITH),
            (&[("if-none-match", differs), ("if-modified-since", AFTER)], WITH),
            // If-Match comes before If-None-Match.
            (&[("if-match", differs), ("if-none-match", matches)], Precondition::Failed),
            (&[("if-match", matches), ("if-none-match", matches)], Precondition::NotModified),
            (&[("if-unmodified-since", AT), ("if-modified-since", AT)], Precondition::NotModified),
            (&[("if-none-match", differs), ("if-range", differs)], WITHOUT),
            (&[("if-none-match", matches), ("if-range", matches)], Precondition::NotModified),
            // Several lines of a list are one list; several dates are none.
            (&[("if-none-match", differs), ("if-none-match", matches)], Precondition::NotModified),
            (&[("if-modified-since", AT), ("if-modified-since", AT)], WITH),
            (&[("if-range", matches), ("if-range", matches)], WITHOUT),
            (&[], WITH),
        ];
        for &(headers, expected) in table {
            assert_eq!(verdict(headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_date_of_the_current_second_is_weak() {
        assert_eq!(at(&[("if-range", AT)], MODIFIED_S), WITHOUT);
        let unknown = Validators { tag: "t", modified_s: None, now_s: MODIFIED_S };
        let mut map = HeaderMap::new();
        map.insert(header::IF_UNMODIFIED_SINCE, HeaderValue::from_static(BEFORE));
        map.insert(header::IF_MODIFIED_SINCE, HeaderValue::from_static(AT));
        assert_eq!(evaluate(&map, unknown), WITH);
        map.insert(header::IF_RANGE, HeaderValue::from_static(AT));
        assert_eq!(evaluate(&map, unknown), WITHOUT);
    }
}
