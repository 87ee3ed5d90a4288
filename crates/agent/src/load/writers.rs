//! The loads that servers of others tell, each by a name, and each for a time: one that dies is forgotten.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plimsoll_wire::load::{LoadGauge, MOST_LOAD};

/// Most writers.
const MOST_WRITERS: usize = 64;
/// Most bytes of a name.
const MOST_NAME_BYTES: usize = 64;
/// How long a load holds where nothing else is asked for.
pub(super) const HOLDS: Duration = Duration::from_secs(5);
/// How long it may hold.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

/// Why a load is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriterRefusal {
    Name,
    TooMany,
    TooHigh,
    BelowZero,
}

impl WriterRefusal {
    pub(super) fn text(self) -> String {
        match self {
            Self::Name => format!("a name has 1 to {MOST_NAME_BYTES} letters, digits, `-`, `_` and `.`"),
            Self::TooMany => format!("there are {MOST_WRITERS} names already; wait until one expires"),
            Self::TooHigh => format!("a load is {MOST_LOAD} at most"),
            Self::BelowZero => "fewer accesses would have begun than ended; PUT the load anew".to_owned(),
        }
    }
}

/// One of them, for display.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToldLoad {
    /// The name.
    pub name: String,
    /// Its load.
    pub load: u32,
    /// For how long it holds.
    pub holds_ms: u64,
}

#[derive(Debug)]
struct Writer {
    load: u32,
    until: Instant,
}

/// The sum of all writers, in a gauge.
#[derive(Debug)]
pub(super) struct Writers {
    gauge: LoadGauge,
    by_name: BTreeMap<String, Writer>,
}

impl Writers {
    pub(super) fn new(gauge: LoadGauge) -> Self {
        Self { gauge, by_name: BTreeMap::new() }
    }

    /// `name` has this load, until it says otherwise or the time is over.
    pub(super) fn set(
        &mut self,
        name: &str,
        load: u32,
        holds: Duration,
        now: Instant,
    ) -> Result<u32, WriterRefusal> {
        self.write(name, holds, now, |_| Some(load))
    }

    /// Accesses of `name` have begun or ended.
    pub(super) fn add(
        &mut self,
        name: &str,
        by: i64,
        holds: Duration,
        now: Instant,
    ) -> Result<u32, WriterRefusal> {
        self.write(name, holds, now, |before| {
            let after = i64::from(before).checked_add(by)?;
            if after < 0 { None } else { Some(u32::try_from(after).unwrap_or(u32::MAX)) }
        })
    }

    fn write(
        &mut self,
        name: &str,
        holds: Duration,
        now: Instant,
        change: impl FnOnce(u32) -> Option<u32>,
    ) -> Result<u32, WriterRefusal> {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > MOST_NAME_BYTES || !name.chars().all(good) {
            return Err(WriterRefusal::Name);
        }
        self.sweep(now);
        let before = self.by_name.get(name).map(|writer| writer.load);
        if before.is_none() && self.by_name.len() >= MOST_WRITERS {
            return Err(WriterRefusal::TooMany);
        }
        let load = change(before.unwrap_or(0)).ok_or(WriterRefusal::BelowZero)?;
        if load > MOST_LOAD {
            return Err(WriterRefusal::TooHigh);
        }
        self.by_name.insert(name.to_owned(), Writer { load, until: now + holds.min(LONGEST) });
        self.tell();
        Ok(load)
    }

    /// Forgets one; false when there is none.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let removed = self.by_name.remove(name).is_some();
        self.tell();
        removed
    }

    /// Forgets those whose time is over.
    pub(super) fn sweep(&mut self, now: Instant) {
        let before = self.by_name.len();
        self.by_name.retain(|name, writer| {
            let holds = writer.until > now;
            if !holds {
                tracing::info!(%name, load = writer.load, "nothing was heard of a server for too long; its load is forgotten");
            }
            holds
        });
        if self.by_name.len() != before {
            self.tell();
        }
    }

    pub(super) fn list(&self, now: Instant) -> Vec<ToldLoad> {
        let told = self.by_name.iter().map(|(name, writer)| {
            let holds_ms = writer.until.saturating_duration_since(now).as_millis();
            ToldLoad { name: name.clone(), load: writer.load, holds_ms: u64::try_from(holds_ms).unwrap_or(0) }
        });
        told.collect()
    }

    fn tell(&self) {
        let sum = self.by_name.values().fold(0_u32, |sum, writer| sum.saturating_add(writer.load));
        self.gauge.set_external(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_add_up_and_expire() {
        let gauge = LoadGauge::new();
        let mut writers = Writers::new(gauge.clone());
        let start = Instant::now();
        assert_eq!(writers.set("php", 7, HOLDS, start), Ok(7));
        assert_eq!(writers.add("db", 2, Duration::from_secs(1), start), Ok(2));
        assert_eq!(writers.add("db", -1, Duration::from_secs(1), start), Ok(1));
        assert_eq!(gauge.load(), 8);
        assert_eq!(writers.add("db", -2, HOLDS, start), Err(WriterRefusal::BelowZero));
        assert_eq!(gauge.load(), 8);
        writers.sweep(start + Duration::from_secs(2));
        assert_eq!(gauge.load(), 7, "one has died");
        writers.sweep(start + Duration::from_secs(6));
        assert_eq!(gauge.load(), 0);
        assert_eq!(writers.set("long", 1, Duration::from_secs(1000), start), Ok(1));
        writers.sweep(start + LONGEST);
        assert_eq!(gauge.load(), 0);
    }

    #[test]
    fn writers_are_bounded() {
        let gauge = LoadGauge::new();
        let mut writers = Writers::new(gauge.clone());
        let now = Instant::now();
        assert_eq!(writers.set("a b", 1, HOLDS, now), Err(WriterRefusal::Name));
        assert_eq!(writers.set("", 1, HOLDS, now), Err(WriterRefusal::Name));
        assert_eq!(writers.set("x", 65_536, HOLDS, now), Err(WriterRefusal::TooHigh));
        assert_eq!(writers.add("x", i64::MAX, HOLDS, now), Err(WriterRefusal::TooHigh));
        for number in 0..MOST_WRITERS {
            assert_eq!(writers.set(&format!("n{number}"), 1, HOLDS, now), Ok(1));
        }
        assert_eq!(writers.set("x", 1, HOLDS, now), Err(WriterRefusal::TooMany));
        assert!(writers.remove("n0") && !writers.remove("n0"));
        assert_eq!(writers.set("x", 1, HOLDS, now), Ok(1));
        assert_eq!(gauge.load() as usize, MOST_WRITERS);
    }
}
