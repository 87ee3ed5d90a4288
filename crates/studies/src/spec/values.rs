//! Values of a scenario as users give them, in text or as a number.

use std::fmt;

use plimsoll_policy::params::GivenValue;
use plimsoll_policy::units;
use plimsoll_policy::{BackendId, Health, Nanos, Time, Weight};
use plimsoll_sim::{
    Arrivals, Dealing, Fault, FaultAction, HotSpot, PartitionPlan, TimeDistribution, TimeShape,
};

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
        Some((name, rest)) if SHAPES.contains(&name) => {
            let (rate, shape) = shape(name, rest)?;
            let rate_rps = positive(&rate.into()).map_err(|e| format!("arrivals per second: {e}"))?;
            Ok(Arrivals::Renewal { rate_rps, shape })
        }
        _ => Err(format!(
            "expected closed, trace, poisson:RATE (requests/s), deterministic:RATE, or gamma, lognormal, weibull or \
             pareto with :RATE:CV, not `{text}`"
        )),
    }
}

/// The shapes of distributions that take a mean and, but for the first two, a coefficient of variation.
const SHAPES: [&str; 6] = ["deterministic", "exponential", "gamma", "lognormal", "pareto", "weibull"];

/// Reads what follows the name of a shape: a mean, or a rate, and the coefficient of variation where the shape has one.
fn shape<'t>(name: &str, rest: &'t str) -> Result<(&'t str, TimeShape), String> {
    let (mean, cv) = rest.split_once(':').map_or((rest, None), |(mean, cv)| (mean, Some(cv)));
    let of = |make: fn(f64) -> TimeShape| {
        let cv = cv.ok_or_else(|| {
            format!("`{name}` takes a coefficient of variation at the end, e.g. {name}:{mean}:0.5")
        })?;
        let cv = positive(&cv.into()).map_err(|e| format!("the coefficient of variation: {e}"))?;
        let (least, most) = (TimeShape::LEAST_CV, TimeShape::MOST_CV);
        if (least..=most).contains(&cv) {
            return Ok(make(cv));
        }
        let equal = if cv < least { format!("; deterministic:{mean} has none") } else { String::new() };
        Err(format!("a coefficient of variation is from {least} to {most}, not {cv}{equal}"))
    };
    let shape = match name {
        "gamma" => of(|cv| TimeShape::Gamma { cv })?,
        "lognormal" => of(|cv| TimeShape::Lognormal { cv })?,
        "pareto" => of(|cv| TimeShape::Pareto { cv })?,
        "weibull" => of(|cv| TimeShape::Weibull { cv })?,
        _ if cv.is_some() => return Err(format!("`{name}` takes no coefficient of variation")),
        "deterministic" => TimeShape::Deterministic,
        _ => TimeShape::Exponential,
    };
    Ok((mean, shape))
}

/// Writes what [`shape`] reads.
fn show_shape(shape: TimeShape, mean: &str) -> String {
    match shape {
        TimeShape::Deterministic => format!("deterministic:{mean}"),
        TimeShape::Exponential => format!("exponential:{mean}"),
        TimeShape::Gamma { cv } => format!("gamma:{mean}:{cv}"),
        TimeShape::Lognormal { cv } => format!("lognormal:{mean}:{cv}"),
        TimeShape::Pareto { cv } => format!("pareto:{mean}:{cv}"),
        TimeShape::Weibull { cv } => format!("weibull:{mean}:{cv}"),
    }
}

/// `SHAPE:MEAN` or `SHAPE:MEAN:CV`, the mean in seconds or with a unit, such as `gamma:22.2ms:0.45`.
///
/// # Errors
/// When it is none of these.
pub fn service(given: &GivenValue) -> Result<TimeDistribution, String> {
    let text = given.to_string();
    let wrong = || {
        format!(
            "expected deterministic:MEAN, exponential:MEAN, or gamma, lognormal, weibull or pareto with :MEAN:CV, such as \
             gamma:22.2ms:0.45, not `{text}`"
        )
    };
    let (name, rest) = text.split_once(':').filter(|(name, _)| SHAPES.contains(name)).ok_or_else(wrong)?;
    let (mean, shape) = shape(name, rest)?;
    let mean = span(mean).filter(|mean| !mean.is_zero()).ok_or_else(wrong)?;
    Ok(TimeDistribution { mean_ns: mean.as_nanos() as f64, shape })
}

/// Writes what [`service`] reads.
#[must_use]
pub fn show_service(service: &TimeDistribution) -> String {
    show_shape(service.shape, &format!("{}s", service.mean_ns / 1e9))
}

/// A span of time: seconds, or a number with `ns`, `us`, `ms` or `s`.
fn span(text: &str) -> Option<Nanos> {
    let text = text.trim();
    let (number, seconds) = [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)]
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))
        .unwrap_or((text, 1.0));
    number.trim().parse::<f64>().ok().and_then(|number| Nanos::from_secs_f64(number * seconds))
}

/// A span of time, such as `516us`, `10ms` or `1s`; a bare number is in seconds.
///
/// # Errors
/// When it is none.
pub fn time(given: &GivenValue) -> Result<Nanos, String> {
    let text = given.to_string();
    span(&text).ok_or_else(|| format!("expected a time such as 258us, 10ms or 1.5s, not `{text}`"))
}

/// Writes what [`time`] reads.
#[must_use]
pub fn show_time(time: &Nanos) -> String {
    format!("{}s", time.as_secs_f64())
}

/// A number of front-ends.
///
/// # Errors
/// When it is none.
pub fn front_ends(given: &GivenValue) -> Result<u16, String> {
    let count = given.as_u64().filter(|n| (1..=1024).contains(n));
    count
        .map(|n| n as u16)
        .ok_or_else(|| format!("expected a number of front-ends from 1 to 1024, not `{given}`"))
}

/// `client` or `random`.
///
/// # Errors
/// When it is neither.
pub fn dealing(given: &GivenValue) -> Result<Dealing, String> {
    match given.to_string().as_str() {
        "client" => Ok(Dealing::ByClient),
        "random" => Ok(Dealing::AtRandom),
        other => Err(format!("expected client or random, not `{other}`")),
    }
}

/// Writes what [`dealing`] reads.
#[must_use]
pub fn show_dealing(dealing: &Dealing) -> &'static str {
    match dealing {
        Dealing::ByClient => "client",
        Dealing::AtRandom => "random",
    }
}

/// A number of partitions that back-ends host in turn, or the back-ends of each, such as `0-3/4-7` or `0,1/1,2`.
///
/// # Errors
/// When it is something else.
pub fn partitions(given: &GivenValue) -> Result<PartitionPlan, String> {
    let text = given.to_string();
    let wrong = || {
        format!("expected a number of partitions, or the back-ends of each, e.g. 4 or 0-3/4-7, not `{text}`")
    };
    if let Ok(count) = text.trim().parse() {
        return Ok(if count == 1 { PartitionPlan::Whole } else { PartitionPlan::InTurn(count) });
    }
    let index = |text: &str| text.trim().parse::<u16>().map_err(|_| wrong());
    let span = |text: &str| -> Result<Vec<u16>, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (index(first)?, index(last)?);
        if first <= last { Ok((first..=last).collect()) } else { Err(wrong()) }
    };
    let hosts = |text: &str| -> Result<Vec<u16>, String> {
        let spans = text.split(',').map(span).collect::<Result<Vec<_>, _>>()?;
        Ok(spans.into_iter().flatten().collect())
    };
    text.split('/').map(hosts).collect::<Result<_, _>>().map(PartitionPlan::Listed)
}

/// Writes what [`partitions`] reads.
#[must_use]
pub fn show_partitions(plan: &PartitionPlan) -> String {
    match plan {
        PartitionPlan::Whole => "1".to_owned(),
        PartitionPlan::InTurn(count) => count.to_string(),
        PartitionPlan::Listed(listed) => {
            let hosts = |hosts: &Vec<u16>| hosts.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
            listed.iter().map(hosts).collect::<Vec<_>>().join("/")
        }
    }
}

/// `SHARE@FROM-UNTIL`: from one time to the other, in seconds, this share of all requests is for the most requested target.
///
/// # Errors
/// When it is something else.
pub fn hot_spot(given: &GivenValue) -> Result<HotSpot, String> {
    let text = given.to_string();
    let wrong = || format!("expected SHARE@FROM-UNTIL with times in seconds, e.g. 0.3@10-60, not `{text}`");
    let (share, times) = text.split_once('@').ok_or_else(wrong)?;
    let (from, until) = times.split_once('-').ok_or_else(wrong)?;
    let at = |text: &str| span(text).map(|span| Time::ZERO + span).ok_or_else(wrong);
    let (from, until) = (at(from)?, at(until)?);
    let share = share.trim().parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(wrong)?;
    if from < until { Ok(HotSpot { from, until, share }) } else { Err(wrong()) }
}

/// Writes what [`hot_spot`] reads.
#[must_use]
pub fn show_hot_spot(spot: &HotSpot) -> String {
    format!("{}@{}-{}", spot.share, spot.from.as_secs_f64(), spot.until.as_secs_f64())
}

/// Writes what [`arrivals`] reads, except for the speed of a trace.
#[must_use]
pub fn show_arrivals(arrivals: &Arrivals) -> String {
    match arrivals {
        Arrivals::Closed => "closed".to_owned(),
        Arrivals::Trace { .. } => "trace".to_owned(),
        Arrivals::Poisson { rate_rps } => format!("poisson:{rate_rps}"),
        Arrivals::Renewal { rate_rps, shape } => show_shape(*shape, &rate_rps.to_string()),
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

/// `down:B@T`, `up:B@T`, `drain:B@T`, `weight=W:B@T`, `speed=X:B@T` or `memory=BYTES:B@T` with back-end B (from 0) and time T in seconds.
///
/// # Errors
/// When it is none of these.
pub fn fault(given: &GivenValue) -> Result<Fault, String> {
    let text = given.to_string();
    let wrong = || {
        format!(
            "expected down:B@T, up:B@T, drain:B@T, weight=W:B@T, speed=X:B@T or memory=BYTES:B@T with a back-end B from 0 and a \
             time T in seconds, e.g. down:2@10.5, speed=0.33:2@10 or memory=16MiB:2@0, not `{text}`"
        )
    };
    let (what, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (backend, at) = rest.split_once('@').ok_or_else(wrong)?;
    let at = at.trim_end_matches('s').parse().ok().and_then(Nanos::from_secs_f64).ok_or_else(wrong)?;
    let action = match what.split_once('=') {
        Some(("weight", w)) => FaultAction::Weight(w.parse().ok().and_then(Weight::new).ok_or_else(wrong)?),
        Some(("speed", x)) => FaultAction::Speed(positive(&x.into()).map_err(|_| wrong())?),
        Some(("memory", bytes)) => FaultAction::MemoryBytes(size(&bytes.into()).map_err(|_| wrong())?),
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
        FaultAction::Speed(speed) => format!("speed={speed}"),
        FaultAction::MemoryBytes(bytes) => format!("memory={bytes}"),
    };
    format!("{what}:{}@{}", fault.backend.0, fault.at.as_secs_f64())
}
