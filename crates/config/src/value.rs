//! Values as users write them.

use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;
pub(crate) use plimsoll_policy::units::show_size;
pub use plimsoll_policy::units::size;
use serde_json::json;

/// Whether this may be in a token, as the names of fields are (RFC 9110, section 5.6.2).
pub(crate) fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// A value of the configuration as a user would write it.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigValue {
    /// A text; sizes and durations too.
    Text(String),
    /// A whole number.
    Integer(u64),
    /// A number.
    Number(f64),
    /// `true` or `false`.
    Flag(bool),
    /// Several texts.
    List(Vec<String>),
    /// A secret, which is not displayed.
    Secret,
}

impl fmt::Display for ConfigValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(n) => n.fmt(f),
            Self::Number(x) => x.fmt(f),
            Self::Flag(b) => b.fmt(f),
            Self::List(all) => write!(f, "[{}]", all.join(", ")),
            Self::Secret => f.write_str("(hidden)"),
        }
    }
}

impl ConfigValue {
    /// In JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        match self {
            Self::Integer(n) => json!(n),
            Self::Number(x) => json!(x),
            Self::Flag(b) => json!(b),
            Self::List(all) => json!(all),
            Self::Text(_) | Self::Secret => json!(self.to_string()),
        }
    }
}

/// A duration with units, such as `250ms`, `10s`, `1m 30s` or `2h`; `None` when it is none or negative.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    text.parse::<SignedDuration>().ok().and_then(|d| Duration::try_from(d).ok())
}

/// The shortest exact way to write a duration in a single unit of at most a second.
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
