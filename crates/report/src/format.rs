//! Numbers for people: few significant digits, a unit that fits the size, `-` where there is no value.

/// Shown in tables for a value that does not apply or is not finite.
pub const NOT_APPLICABLE: &str = "-";

/// A whole number with thousands separators, e.g. `37,703`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number without unit to three significant digits (whole numbers are kept whole), e.g. `3,847`, `38.5`, `0.00312`.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return NOT_APPLICABLE.to_owned();
    }
    let size = value.abs();
    if size >= 1e15 || (size > 0.0 && size < 1e-4) {
        return format!("{value:.2e}");
    }
    let sign = if value < 0.0 { "-" } else { "" };
    if value.fract() == 0.0 || size >= 999.5 {
        return format!("{sign}{}", count(size.round() as u64));
    }
    format!("{sign}{}", trim_zeros(&format!("{size:.*}", decimals_for(size))))
}

/// A share (0 to 1) as a percentage without its sign: two significant digits below 10 %, e.g. `48.2`, `3.1`, `0.04`.
pub fn percent_number(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        return NOT_APPLICABLE.to_owned();
    }
    let decimals = if percent == 0.0 || percent.abs() >= 0.95 { 1 } else { 2 };
    format!("{percent:.decimals$}")
}

/// A share (0 to 1) as a whole percentage without its sign, e.g. `48`.
pub fn whole_percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.is_finite() { format!("{percent:.0}") } else { NOT_APPLICABLE.to_owned() }
}

/// A share (0 to 1) as a percentage, e.g. `3.1 %`.
pub fn percent(share: f64) -> String {
    with_unit(percent_number(share), "%")
}

/// A span of time given in seconds, in the unit that fits: `350 µs`, `28.4 ms`, `1.2 s`, `3.5 min`, `2.1 h`.
pub fn duration(time_s: f64) -> String {
    let size = time_s.abs();
    let (scale, unit) = match size {
        0.0 => (1.0, "s"),
        // The limits lie where three digits round up to the next unit: 999.5 ms is 1 s.
        _ if size < 0.9995e-6 => (1e9, "ns"),
        _ if size < 0.9995e-3 => (1e6, "µs"),
        _ if size < 0.9995 => (1e3, "ms"),
        _ if size < 120.0 => (1.0, "s"),
        _ if size < 7200.0 => (1.0 / 60.0, "min"),
        _ => (1.0 / 3600.0, "h"),
    };
    with_unit(number(time_s * scale), unit)
}

/// A number of bytes in binary units, e.g. `11.5 KiB`, `1.38 GiB`.
pub fn bytes(size_bytes: f64) -> String {
    let mut value = size_bytes;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value.abs() < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    with_unit(number(value), unit)
}

/// The text with a capital at its beginning.
#[must_use]
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Applies a formatter to a value that may be missing.
pub fn or_dash(value: Option<f64>, format: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| NOT_APPLICABLE.to_owned(), format)
}

fn with_unit(number: String, unit: &str) -> String {
    if number == NOT_APPLICABLE { number } else { format!("{number} {unit}") }
}

/// Decimals that leave three significant digits of a value below 1000.
fn decimals_for(size: f64) -> usize {
    let magnitude = size.log10().floor() as i32;
    (2 - magnitude).clamp(0, 8) as usize
}

fn trim_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(38_834_515), "38,834,515");
    }

    #[test]
    fn numbers_keep_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (3847.2, "3,847"),
            (999.7, "1,000"),
            (384.72, "385"),
            (38.472, "38.5"),
            (3.8472, "3.85"),
            (3.0, "3"),
            (0.003_12, "0.00312"),
            (-12.5, "-12.5"),
            (1.5e-7, "1.50e-7"),
            (f64::NAN, "-"),
            (f64::INFINITY, "-"),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
    }

    #[test]
    fn shares_and_times_have_units() {
        assert_eq!(percent(0.4821), "48.2 %");
        assert_eq!(percent(0.031), "3.1 %");
        assert_eq!(percent(0.0004), "0.04 %");
        assert_eq!(percent(0.0), "0.0 %");
        assert_eq!(percent(f64::NAN), "-");
        assert_eq!([0.0, 0.004, 0.995, 1.0, f64::NAN].map(whole_percent), ["0", "0", "100", "100", "-"]);
        assert_eq!(duration(0.000_35), "350 µs");
        assert_eq!(duration(0.0284), "28.4 ms");
        assert_eq!(duration(1.2), "1.2 s");
        assert_eq!(duration(0.999_6), "1 s");
        assert_eq!(duration(210.0), "3.5 min");
        assert_eq!(duration(7560.0), "2.1 h");
        assert_eq!(duration(0.0), "0 s");
        assert_eq!(bytes(11_786.0), "11.5 KiB");
        assert_eq!(bytes(512.0), "512 B");
    }
}
