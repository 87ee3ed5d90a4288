//! Values on the command line: sizes, lists, settings, arrivals, faults.

pub(crate) use plimsoll_config::size;
use plimsoll_policy::{BackendId, Health, Nanos, Time, Weight};
use plimsoll_sim::{Arrivals, Fault, FaultAction};
use plimsoll_studies::scenario::Admission;

/// A number of back-ends.
pub(crate) fn backends(text: &str) -> Result<usize, String> {
    let wrong = || format!("expected a number of back-ends from 1 to 65534, not `{text}`");
    text.parse().ok().filter(|n| (1..65_535).contains(n)).ok_or_else(wrong)
}

/// `key=value`.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("expected KEY=VALUE, not `{text}`")),
    }
}

/// A positive, finite number.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let wrong = || format!("expected a number above 0, not `{text}`");
    text.parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0).ok_or_else(wrong)
}

/// Room for documents in a back-end's memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CacheSize {
    /// This many bytes.
    Bytes(u64),
    /// This share of the sizes of all targets together.
    WorkingSet(f64),
}

impl CacheSize {
    /// In bytes, where all targets together have this size.
    pub(crate) fn bytes(self, working_set_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::WorkingSet(share) => (share * working_set_bytes as f64).round() as u64,
        }
    }
}

/// The largest cache in per cent of the working set.
const MOST_PERCENT: f64 = 10_000.0;

/// A size, or per cent of the working set, such as `15%`.
pub(crate) fn cache_size(text: &str) -> Result<CacheSize, String> {
    let Some(percent) = text.strip_suffix('%') else {
        return size(text)
            .map(CacheSize::Bytes)
            .map_err(|error| format!("{error}; or per cent of the size of all targets, such as 15%"));
    };
    let wrong =
        || format!("expected per cent of the size of all targets from 0% to {MOST_PERCENT}%, not `{text}`");
    let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
    (0.0..=MOST_PERCENT)
        .contains(&percent)
        .then_some(CacheSize::WorkingSet(percent / 100.0))
        .ok_or_else(wrong)
}

/// A share from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("expected a share from 0 to 1, not `{text}`");
    text.parse().ok().filter(|x| (0.0..=1.0).contains(x)).ok_or_else(wrong)
}

/// `closed`, `trace` or `poisson:RATE`; `trace` gets its speed elsewhere.
pub(crate) fn arrivals(text: &str) -> Result<Arrivals, String> {
    match text.split_once(':') {
        None if text == "closed" => Ok(Arrivals::Closed),
        None if text == "trace" => Ok(Arrivals::Trace { speed: 1.0 }),
        Some(("poisson", rate)) => positive(rate)
            .map(|rate_rps| Arrivals::Poisson { rate_rps })
            .map_err(|e| format!("arrivals per second: {e}")),
        _ => Err(format!("expected closed, trace or poisson:RATE (requests/s), not `{text}`")),
    }
}

/// `lard`, `none` or a number.
pub(crate) fn admission(text: &str) -> Result<Admission, String> {
    match text {
        "lard" => Ok(Admission::Lard),
        "none" => Ok(Admission::Unlimited),
        _ => match text.parse() {
            Ok(limit) if limit > 0 => Ok(Admission::Fixed(limit)),
            _ => Err(format!("expected lard, none or a number above 0, not `{text}`")),
        },
    }
}

/// `down:B@T`, `up:B@T`, `drain:B@T` or `weight=W:B@T` with back-end B (from 0) and time T in seconds.
pub(crate) fn fault(text: &str) -> Result<Fault, String> {
    let wrong = || {
        format!(
            "expected down:B@T, up:B@T, drain:B@T or weight=W:B@T with a back-end B from 0 and a time T in seconds, \
             e.g. down:2@10.5, not `{text}`"
        )
    };
    let (what, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (backend, at) = rest.split_once('@').ok_or_else(wrong)?;
    let at = at.trim_end_matches('s').parse().ok().and_then(Nanos::from_secs_f64).ok_or_else(wrong)?;
    let action = match what.split_once('=') {
        Some(("weight", w)) => FaultAction::Weight(w.parse().ok().and_then(Weight::new).ok_or_else(wrong)?),
        None if what == "down" => FaultAction::Health(Health::Down),
        None if what == "up" => FaultAction::Health(Health::Up),
        None if what == "drain" => FaultAction::Health(Health::Draining),
        _ => return Err(wrong()),
    };
    Ok(Fault { at: Time::ZERO + at, backend: BackendId(backend.parse().map_err(|_| wrong())?), action })
}

#[cfg(test)]
mod tests {
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
