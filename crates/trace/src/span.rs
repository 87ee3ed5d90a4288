//! Time spans as access logs write them.

use crate::field_role::SpanUnit;
use crate::line_error::LineError;

/// A request that takes longer than a day is none: its number has another unit.
const LONGEST_NS: f64 = 86_400e9;

/// Nanoseconds of a span, or of several in a row, which a proxy logs when it tries several back-ends; `None` for a text
/// that is no such span (`-1` where a phase was not reached, or a decimal comma).
pub(crate) fn span_ns(text: &[u8], unit: SpanUnit) -> Option<u64> {
    let unit_ns = match unit {
        SpanUnit::S => 1e9,
        SpanUnit::DecimalS if text != b"0" && text.iter().all(u8::is_ascii_digit) => return None,
        SpanUnit::DecimalS => 1e9,
        SpanUnit::Ms => 1e6,
        SpanUnit::Us => 1e3,
        SpanUnit::Ns => 1.0,
    };
    let mut sum_ns = None;
    // nginx puts these between its tries, and `-` for one that had no answer.
    for part in std::str::from_utf8(text).ok()?.split(", ").flat_map(|parts| parts.split(" : ")) {
        if part.trim() != "-" {
            sum_ns = Some(sum_ns.unwrap_or(0.0) + one_span_ns(part.trim(), unit_ns)?);
        }
    }
    sum_ns.filter(|sum_ns| *sum_ns <= LONGEST_NS).map(|sum_ns| sum_ns.round() as u64)
}

/// What is wrong with a text that is no such span.
pub(crate) fn wrong_span(text: &[u8], unit: SpanUnit) -> Option<LineError> {
    if text.is_empty() || text == b"-" || span_ns(text, unit).is_some() {
        return None;
    }
    let text = String::from_utf8_lossy(text);
    Some(LineError::Text(match text.trim().parse::<f64>() {
        Ok(number) if number < 0.0 => "the duration is negative",
        Ok(number) if number.is_nan() => "the duration is no number",
        Ok(_) => "the duration is longer than a day, or in another unit",
        Err(_) => "the duration is no number",
    }))
}

/// A number, or numbers with units as Go writes them: `5.699ms`, `1m2.5s`.
fn one_span_ns(text: &str, unit_ns: f64) -> Option<f64> {
    if let Ok(number) = text.parse::<f64>() {
        return (number >= 0.0).then_some(number * unit_ns);
    }
    let mut rest = text;
    let mut sum_ns = 0.0;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let (unit, next) = after.split_at(after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len()));
        let unit_ns = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return None,
        };
        sum_ns += number.parse::<f64>().ok()? * unit_ns;
        rest = next;
    }
    (!text.is_empty()).then_some(sum_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units_and_may_be_missing() {
        for (text, unit, ns) in [
            ("0.25", SpanUnit::S, 250_000_000),
            ("0.001, 0.002", SpanUnit::S, 3_000_000),
            ("-, 0.002 : 0.001", SpanUnit::S, 3_000_000),
            ("7", SpanUnit::Us, 7000),
            ("5.699ms", SpanUnit::S, 5_699_000),
            ("1m2.5s", SpanUnit::S, 62_500_000_000),
            ("250µs", SpanUnit::Ms, 250_000),
        ] {
            assert_eq!(span_ns(text.as_bytes(), unit), Some(ns), "{text}");
        }
        for text in ["-1", "", "-", "x", "inf", "nan", "0,012", "5 ms", "1.2.3s", "ms"] {
            assert_eq!(span_ns(text.as_bytes(), SpanUnit::Ms), None, "{text}");
        }
        for (text, ns) in [("0", Some(0)), ("0.5", Some(500_000_000)), ("5699210", None), ("5", None)] {
            assert_eq!(span_ns(text.as_bytes(), SpanUnit::DecimalS), ns, "{text}");
        }
        // Nanoseconds that are taken for seconds.
        assert_eq!(span_ns(b"5699210", SpanUnit::S), None);
    }
}
