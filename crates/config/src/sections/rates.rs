//! Rates: so many requests in a time.

use toml::de::DeValue;

use crate::declare::KeyForm;
use crate::reader::{ConfigReader, DeclaredTable, Wrong, optional, quoted};
use crate::value::ConfigValue;

/// How often each client may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteRate {
    /// So many requests.
    pub count: u32,
    /// In so many seconds.
    pub per_s: u32,
    /// Requests that a client may send at once.
    pub burst: u32,
}

impl RouteRate {
    /// The time of one request, in nanoseconds.
    #[must_use]
    pub fn interval_ns(self) -> u64 {
        (u64::from(self.per_s) * 1_000_000_000 / u64::from(self.count.max(1))).max(1)
    }
}

/// A rate, if there is one, with its burst.
pub(super) struct OfRate;

impl KeyForm<Option<RouteRate>> for OfRate {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        key: &str,
    ) -> Option<Option<RouteRate>> {
        let burst = section.found("rate_burst").and_then(|found| match found.value {
            DeValue::Integer(n) => u32::from_str_radix(n.as_str(), n.radix()).ok(),
            _ => None,
        });
        let rate = optional(reader, section, key, rate)?;
        Some(rate.map(|rate| RouteRate { burst: burst.unwrap_or(rate.count / rate.per_s).max(1), ..rate }))
    }

    fn show(rate: &Option<RouteRate>) -> Option<ConfigValue> {
        rate.map(|rate| {
            let unit = UNITS.iter().find(|(_, per_s)| *per_s == rate.per_s).map_or("s", |(unit, _)| unit);
            ConfigValue::Text(format!("{}/{unit}", rate.count))
        })
    }
}

const UNITS: [(&str, u32); 3] = [("s", 1), ("m", 60), ("h", 3600)];

fn rate(text: &str) -> Result<RouteRate, Wrong> {
    let parts = text.split_once('/').and_then(|(count, unit)| {
        let per_s = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        let count = count.parse().ok().filter(|count| (1..=1_000_000).contains(count))?;
        Some(RouteRate { count, per_s, burst: 0 })
    });
    let remedy = "write a number from 1 to 1000000, `/` and s, m or h, e.g. \"10/s\"";
    parts.ok_or_else(|| (format!("{} is no rate", quoted(text)), remedy.to_owned()))
}

/// A burst, which a rate has.
pub(super) struct OfBurst;

impl KeyForm<Option<u32>> for OfBurst {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        key: &str,
    ) -> Option<Option<u32>> {
        let Some(found) = section.found(key) else { return Some(None) };
        if section.found("rate").is_none() {
            let wrong = ("has no effect without `rate`".to_owned(), "add `rate`, or remove it".to_owned());
            reader.wrong_value(&found, wrong);
        }
        Some(reader.integer_of(&found).and_then(|number| u32::try_from(number).ok()))
    }

    fn show(burst: &Option<u32>) -> Option<ConfigValue> {
        burst.map(|burst| ConfigValue::Integer(burst.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        assert_eq!(rate("600/m"), Ok(RouteRate { count: 600, per_s: 60, burst: 0 }));
        assert_eq!(rate("600/m").unwrap().interval_ns(), 100_000_000);
        for bad in ["", "10", "10/", "0/s", "10/d", "-1/s", "1.5/s", "10/s ", "10000000/s"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }
}
