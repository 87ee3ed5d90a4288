//! Sizes and durations as users write them.

use std::time::Duration;

use jiff::SignedDuration;

/// Bytes of a size such as `32MiB`, `500kB` or `65536`, rounded to the nearest; case does not matter.
///
/// # Errors
/// A sentence that says what would be right, when `text` is no size or beyond 8 PiB.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("expected a size such as 32MiB, 500kB or 65536, not `{}`", text.escape_debug());
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "ki" | "kib" => 1024.0,
        "mi" | "mib" => 1_048_576.0,
        "gi" | "gib" => 1_073_741_824.0,
        "ti" | "tib" => 1_099_511_627_776.0,
        _ => return Err(wrong()),
    };
    let bytes = number * unit;
    if bytes > 2f64.powi(53) {
        return Err(format!("`{text}` is beyond 8 PiB, the largest size there is here"));
    }
    Ok(bytes.round() as u64)
}

/// A duration with units, such as `250ms`, `10s`, `1m 30s` or `2h`; `None` when it is none or negative.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    text.parse::<SignedDuration>().ok().and_then(|d| Duration::try_from(d).ok())
}

/// The shortest exact way to write a size.
pub(crate) fn show_size(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let exact = units.iter().find(|(_, bits)| bytes >= 1 << bits && bytes.trailing_zeros() >= *bits);
    exact.map_or_else(|| bytes.to_string(), |(unit, bits)| format!("{}{unit}", bytes >> bits))
}

/// The shortest exact way to write a duration with a single unit of at most a second.
pub(crate) fn show_duration(d: Duration) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)];
    let nanos = d.as_nanos();
    let exact = units.iter().find(|(_, unit)| nanos.is_multiple_of(*unit));
    exact.map_or_else(|| format!("{nanos}ns"), |(name, unit)| format!("{}{name}", nanos / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("32MiB"), Ok(32 << 20));
        assert_eq!(size("500kB"), Ok(500_000));
        assert_eq!(size("1.5 GiB"), Ok(3 << 29));
        assert_eq!(size("0"), Ok(0));
        assert!(size("32 parsecs").is_err());
        assert!(size("").is_err());
        assert!(size("-1").is_err());
        assert!(size("999999TiB").unwrap_err().contains("beyond"));
    }

    #[test]
    fn durations() {
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("1m 30s"), Some(Duration::from_secs(90)));
        assert_eq!(duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("0s"), Some(Duration::ZERO));
        for bad in ["", "10", "-1s", "1 parsec", "999999999999999999999s", "1s ago"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for bytes in [0, 1, 1023, 1024, 500_000, 32 << 20, 3 << 29, 1 << 40, 1 << 53] {
            assert_eq!(size(&show_size(bytes)), Ok(bytes));
        }
        assert_eq!(show_size(32 << 20), "32MiB");
        for nanos in [0, 1, 1000, 250_000_000, 90_000_000_000, 1_000_000_001] {
            let d = Duration::from_nanos(nanos);
            assert_eq!(duration(&show_duration(d)), Some(d));
        }
        assert_eq!(show_duration(Duration::from_millis(250)), "250ms");
    }
}
