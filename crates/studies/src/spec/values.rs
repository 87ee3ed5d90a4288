//! Values of a scenario as users give them, in text or as a number.

use std::fmt;

use plimsoll_policy::params::GivenValue;
use plimsoll_policy::units;
use plimsoll_policy::{BackendId, Health, Nanos, Time, Weight};
use plimsoll_sim::{Arrivals, Fault, FaultAction};

use crate::scenario::Admission;

/// A number of back-ends.
///
/// # Errors
/// When it is not one; the error is a sentence that says what would be right, like all others here.
pub fn backends(given: &GivenValue) -> Result<usize, String> {
    let wrong = || format!("expected a number of back-ends from 1 to 65534, not `{given}`");
    let n = given.as_u64().filter(|n| (1..65_535).contains(n)).ok_or_else(wrong)?;
    usize::try_from(n).map_err(|_| wrong())
}

/// A positive, finite number.
///
/// # Errors
/// When it is none.
pub fn positive(given: &GivenValue) -> Result<f64, String> {
    let wrong = || format!("expected a number above 0, not `{given}`");
    given.as_f64().filter(|x| x.is_finite() && *x > 0.0).ok_or_else(wrong)
}

/// A share from 0 to 1.
///
/// # Errors
/// When it is none.
pub fn share(given: &GivenValue) -> Result<f64, String> {
    let wrong = || format!("expected a share from 0 to 1, not `{given}`");
    given.as_f64().filter(|x| (0.0..=1.0).contains(x)).ok_or_else(wrong)
}

/// A whole number.
///
/// # Errors
/// When it is none.
pub fn count(given: &GivenValue) -> Result<u64, String> {
    given.as_u64().ok_or_else(|| format!("expected a whole number, not `{given}`"))
}

/// Bytes, such as `32MiB`.
///
/// # Errors
/// When it is no size.
pub fn size(given: &GivenValue) -> Result<u64, String> {
    units::size(&given.to_string())
}

/// The size of a back-end's memory cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CacheSize {
    /// This many bytes.
    Bytes(u64),
    /// This share of the total size of all targets.
    WorkingSet(f64),
}

impl CacheSize {
    /// In bytes, given the total size of all targets.
    #[must_use]
    pub fn bytes(self, working_set_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::WorkingSet(share) => (share * working_set_bytes as f64).round() as u64,
        }
    }
}

impl fmt::Display for CacheSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.write_str(&units::show_size(*bytes)),
            Self::WorkingSet(share) => write!(f, "{}%", share * 100.0),
        }
    }
}

/// The largest cache in per cent of the working set.
const MOST_PERCENT: f64 = 10_000.0;

/// A size, or per cent of the working set, such as `15%`.
///
/// # Errors
/// When it is neither.
pub fn cache_size(given: &GivenValue) -> Result<CacheSize, String> {
    let text = given.to_string();
    let Some(percent) = text.strip_suffix('%') else {
        return units::size(&text)
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

/// Parses `closed`, `trace` or `poisson:RATE`; the speed of `trace` is set elsewhere.
///
/// # Errors
/// When it is none of these.
pub fn arrivals(given: &GivenValue) -> Result<Arrivals, String> {
    let text = given.to_string();
    match text.split_once(':') {
        None if text == "closed" => Ok(Arrivals::Closed),
        None if text == "trace" => Ok(Arrivals::Trace { speed: 1.0 }),
        Some(("poisson", rate)) => positive(&rate.into())
            .map(|rate_rps| Arrivals::Poisson { rate_rps })
            .map_err(|e| format!("arrivals per second: {e}")),
        _ => Err(format!("expected closed, trace or poisson:RATE (requests/s), not `{text}`")),
    }
}

/// Writes what [`arrivals`] reads, except for the speed of a trace.
#[must_use]
pub fn show_arrivals(arrivals: &Arrivals) -> String {
    match arrivals {
        Arrivals::Closed => "closed".to_owned(),
        Arrivals::Trace { .. } => "trace".to_owned(),
        Arrivals::Poisson { rate_rps } => format!("poisson:{rate_rps}"),
    }
}

/// `lard`, `none` or a number.
///
/// # Errors
/// When it is none of these.
pub fn admission(given: &GivenValue) -> Result<Admission, String> {
    let wrong = || format!("expected lard, none or a number above 0, not `{given}`");
    match given {
        GivenValue::Text(text) if text == "lard" => Ok(Admission::Lard),
        GivenValue::Text(text) if text == "none" => Ok(Admission::Unlimited),
        given => given.as_u64().filter(|n| *n > 0).map(Admission::Fixed).ok_or_else(wrong),
    }
}

/// Writes what [`admission`] reads.
#[must_use]
pub fn show_admission(admission: &Admission) -> GivenValue {
    match admission {
        Admission::Lard => "lard".into(),
        Admission::Fixed(limit) => (*limit).into(),
        Admission::Unlimited => "none".into(),
    }
}

/// `down:B@T`, `up:B@T`, `drain:B@T` or `weight=W:B@T` with back-end B (from 0) and time T in seconds.
///
/// # Errors
/// When it is none of these.
pub fn fault(given: &GivenValue) -> Result<Fault, String> {
    let text = given.to_string();
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

/// Writes what [`fault`] reads.
#[must_use]
pub fn show_fault(fault: &Fault) -> String {
    let what = match fault.action {
        FaultAction::Health(Health::Down) => "down".to_owned(),
        FaultAction::Health(Health::Up) => "up".to_owned(),
        FaultAction::Health(Health::Draining) => "drain".to_owned(),
        FaultAction::Weight(weight) => format!("weight={}", weight.as_f64()),
    };
    format!("{what}:{}@{}", fault.backend.0, fault.at.as_secs_f64())
}
