//! Values on the command line.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use plimsoll_policy::Nanos;
use plimsoll_policy::params::GivenValue;
pub(crate) use plimsoll_policy::units::size;
use plimsoll_sim::{Arrivals, Dealing, Fault, HotSpot, PartitionPlan, TimeDistribution};
use plimsoll_studies::scenario::{Admission, Tables};
use plimsoll_studies::spec::values;
pub(crate) use plimsoll_studies::spec::values::CacheSize;

/// `key=value`.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("expected KEY=VALUE, not `{text}`")),
    }
}

/// `key=value` for parameters of policies and models.
pub(crate) fn parameter(text: &str) -> Result<(String, GivenValue), String> {
    setting(text).map(|(key, value)| (key, GivenValue::Text(value)))
}

/// The most numbers in one range: each is a simulation of its own.
const MOST_COUNTS: usize = 256;

/// Numbers of back-ends, both ends included.
pub(crate) type BackendRange = RangeInclusive<usize>;

/// A number of back-ends, or a range such as `2-8`.
pub(crate) fn backends(text: &str) -> Result<BackendRange, String> {
    let one = |text: &str| values::backends(&text.trim().into());
    let Some((first, last)) = text.split_once('-').filter(|(first, _)| !first.is_empty()) else {
        return one(text).map(|count| count..=count);
    };
    let (first, last) = (one(first)?, one(last)?);
    if first > last {
        return Err(format!("a range begins with its smaller end: write {last}-{first}"));
    }
    if last - first >= MOST_COUNTS {
        return Err(format!(
            "{first}-{last} are more than {MOST_COUNTS} numbers of back-ends; name those to try"
        ));
    }
    Ok(first..=last)
}

/// An address with its port.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected a numeric address and a port, such as 127.0.0.1:8081 or [::1]:8081; 0.0.0.0 and [::] are all addresses of the machine".to_owned()
    })
}

/// A positive, finite number.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    values::positive(&text.into())
}

/// A share from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    values::share(&text.into())
}

/// A share as a number from 0 to 1 or in per cent, such as `0.01` or `1%`.
pub(crate) fn share_or_percent(text: &str) -> Result<f64, String> {
    let wrong = || format!("expected a share of 0% to 100%, such as 1% or 0.01, not `{text}`");
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    Some(number / whole).filter(|share| (0.0..=1.0).contains(share)).ok_or_else(wrong)
}

/// A size, or per cent of the working set, such as `15%`.
pub(crate) fn cache_size(text: &str) -> Result<CacheSize, String> {
    values::cache_size(&text.into())
}

/// A distribution of service times, such as `gamma:22.2ms:0.45`.
pub(crate) fn service(text: &str) -> Result<TimeDistribution, String> {
    values::service(&text.into())
}

/// A number of front-ends.
pub(crate) fn front_ends(text: &str) -> Result<u16, String> {
    values::front_ends(&text.into())
}

/// `client` or `random`.
pub(crate) fn dealing(text: &str) -> Result<Dealing, String> {
    values::dealing(&text.into())
}

/// `separate` or `shared`.
pub(crate) fn tables(text: &str) -> Result<Tables, String> {
    Tables::read(&text.into())
}

/// Partitions, such as `4` or `0-3/4-7`.
pub(crate) fn partitions(text: &str) -> Result<PartitionPlan, String> {
    values::partitions(&text.into())
}

/// A span of time, such as `258us`.
pub(crate) fn time(text: &str) -> Result<Nanos, String> {
    values::time(&text.into())
}

/// `SHARE@FROM-UNTIL` in seconds.
pub(crate) fn hot_spot(text: &str) -> Result<HotSpot, String> {
    values::hot_spot(&text.into())
}

/// `closed`, `trace` or `poisson:RATE`; the speed of `trace` is set elsewhere.
pub(crate) fn arrivals(text: &str) -> Result<Arrivals, String> {
    values::arrivals(&text.into())
}

/// `lard`, `none` or a number.
pub(crate) fn admission(text: &str) -> Result<Admission, String> {
    values::admission(&text.into())
}

/// `down:B@T`, `up:B@T`, `drain:B@T` or `weight=W:B@T` with back-end B (from 0) and time T in seconds.
pub(crate) fn fault(text: &str) -> Result<Fault, String> {
    values::fault(&text.into())
}

#[cfg(test)]
mod tests {
    use plimsoll_policy::{BackendId, Weight};
    use plimsoll_sim::FaultAction;

    use super::*;

    #[test]
    fn faults() {
        let f = fault("down:2@10.5").unwrap();
        assert_eq!((f.backend, f.at.as_nanos()), (BackendId(2), 10_500_000_000));
        assert_eq!(fault("weight=0.5:1@3s").unwrap().action, FaultAction::Weight(Weight::new(0.5).unwrap()));
        for bad in ["down:2", "2@10", "sideways:1@2", "down:x@1", "down:1@-1", "weight=-1:1@1"] {
            assert!(fault(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_of_back_ends() {
        assert_eq!(backends("8"), Ok(8..=8));
        assert_eq!(backends("2-8"), Ok(2..=8));
        for (bad, why) in
            [("8-2", "write 2-8"), ("0-3", "from 1"), ("-3", "from 1"), ("2-", "from 1"), ("1-300", "256")]
        {
            assert!(backends(bad).unwrap_err().contains(why), "{bad}");
        }
    }

    #[test]
    fn shares() {
        assert_eq!(share_or_percent("1%"), Ok(0.01));
        assert_eq!(share_or_percent("2.5 %"), Ok(0.025));
        assert_eq!(share_or_percent("0.25"), Ok(0.25));
        assert_eq!(share_or_percent("100%"), Ok(1.0));
        for bad in ["", "%", "-1%", "101%", "1.5", "nan", "nan%", "inf%", "lots"] {
            assert!(share_or_percent(bad).unwrap_err().contains("1% or 0.01"), "{bad}");
        }
    }

    #[test]
    fn cache_sizes() {
        assert_eq!(cache_size("32MiB"), Ok(CacheSize::Bytes(32 << 20)));
        assert_eq!(cache_size("15%").map(|size| size.bytes(1_001)), Ok(150));
        assert_eq!(cache_size("2.5 %").map(|size| size.bytes(1_000)), Ok(25));
        assert_eq!(cache_size("100%").map(|size| size.bytes(1_001)), Ok(1_001));
        for bad in ["%", "-1%", "nan%", "inf%", "1e9%", "x%", "lots"] {
            assert!(cache_size(bad).unwrap_err().contains("per cent of the size of all targets"), "{bad}");
        }
    }

    #[test]
    fn arrivals_and_admission() {
        assert_eq!(arrivals("poisson:250"), Ok(Arrivals::Poisson { rate_rps: 250.0 }));
        assert!(arrivals("poisson:0").is_err());
        assert!(arrivals("open").is_err());
        assert_eq!(admission("12"), Ok(Admission::Fixed(12)));
        assert!(admission("0").is_err());
    }
}
