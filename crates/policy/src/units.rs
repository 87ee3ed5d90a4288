//! Sizes as users write them.

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

/// The shortest exact way to write a size.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let exact = units.iter().find(|(_, bits)| bytes >= 1 << bits && bytes.trailing_zeros() >= *bits);
    exact.map_or_else(|| bytes.to_string(), |(unit, bits)| format!("{}{unit}", bytes >> bits))
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
}
