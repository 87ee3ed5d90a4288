//! The header of a run, as bytes.

use std::sync::Arc;

use plimsoll_policy::estimator::ClassCost;
use plimsoll_policy::{Candidates, Cluster, Nanos};

use crate::bytes::{ByteCursor, Malformed, put_text, put_varint};
use crate::code::{health_code, read_health, read_weight};
use crate::event::{BackendEntry, RunHeader};
use crate::request_code;

/// The most requests under way when a run starts; a header that claims more is damaged.
const MOST_LOAD: u64 = 1 << 24;

/// What follows a header: headers of older logs have less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderForm {
    /// Nothing.
    Plain,
    /// The costs of classes.
    WithClasses,
    /// These and the limits of back-ends.
    WithLimits,
}

impl HeaderForm {
    pub(crate) fn of(header: &RunHeader) -> Self {
        match header {
            _ if header.backends.iter().any(|entry| entry.most.is_some()) => Self::WithLimits,
            _ if !header.class_costs.is_empty() => Self::WithClasses,
            _ => Self::Plain,
        }
    }
}

/// The load of a back-end, as the core counts it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CountedLoad {
    /// Requests that this front-end has assigned and that are not completed.
    pub(crate) own: u32,
    /// What the policy sees: never less.
    pub(crate) shown: u32,
}

impl CountedLoad {
    pub(crate) fn of(entry: &BackendEntry) -> Self {
        Self { own: entry.load, shown: entry.load.saturating_add(entry.others) }
    }

    pub(crate) fn assign(&mut self) {
        (self.own, self.shown) = (self.own.saturating_add(1), self.shown.saturating_add(1));
    }

    pub(crate) fn complete(&mut self) {
        (self.own, self.shown) = (self.own.saturating_sub(1), self.shown.saturating_sub(1));
    }

    pub(crate) fn report(&mut self, load: u32) {
        self.shown = load.min(Cluster::MOST_LOAD).max(self.own);
    }
}

pub(crate) fn put_header(out: &mut Vec<u8>, header: &RunHeader, loads: &[CountedLoad]) {
    put_text(out, &header.policy);
    put_varint(out, header.settings.len() as u64);
    for (key, value) in &header.settings {
        put_text(out, key);
        put_text(out, value);
    }
    put_varint(out, header.seed);
    put_text(out, &header.cache);
    put_varint(out, header.cache_bytes);
    put_varint(out, header.started_unix_ns);
    put_varint(out, header.backends.len() as u64);
    for (entry, load) in header.backends.iter().zip(loads) {
        put_text(out, &entry.name);
        out.extend_from_slice(&entry.key.to_le_bytes());
        put_varint(out, u64::from(entry.weight.steps()));
        out.push(health_code(entry.health));
        put_varint(out, u64::from(load.own));
        put_varint(out, u64::from(load.shown - load.own));
        put_varint(out, entry.left.map_or(0, |place| u64::from(place) + 1));
    }
    request_code::put_admission(out, header.admission);
    out.push(header.inquiries);
    put_varint(out, header.reserved);
    put_varint(out, header.waiting.len() as u64);
    header.waiting.iter().for_each(|waiting| request_code::put_waiting(out, waiting));
    let form = HeaderForm::of(header);
    if form != HeaderForm::Plain {
        put_class_costs(out, &header.class_costs);
    }
    if form == HeaderForm::WithLimits {
        header.backends.iter().for_each(|entry| put_most(out, entry.most));
    }
}

/// How many requests a back-end may have at once.
pub(crate) fn put_most(out: &mut Vec<u8>, most: Option<u32>) {
    put_varint(out, most.map_or(0, |most| u64::from(most) + 1));
}

pub(crate) fn read_most(cursor: &mut ByteCursor<'_>) -> Result<Option<u32>, Malformed> {
    let most = cursor.varint()?.checked_sub(1);
    let too_large = Malformed("a back-end may have more than 4,294,967,294 requests");
    most.map(|most| u32::try_from(most).map_err(|_| too_large)).transpose()
}

fn put_class_costs(out: &mut Vec<u8>, costs: &[ClassCost]) {
    put_varint(out, costs.len() as u64);
    for cost in costs {
        put_varint(out, cost.cpu.as_nanos());
        put_varint(out, cost.disk.as_nanos());
        put_varint(out, cost.size_bytes);
    }
}

fn read_class_costs(cursor: &mut ByteCursor<'_>) -> Result<Arc<[ClassCost]>, Malformed> {
    let count: u16 = cursor.small()?;
    let mut costs = Vec::new();
    for _ in 0..count {
        let (cpu, disk) = (Nanos::new(cursor.varint()?), Nanos::new(cursor.varint()?));
        costs.push(ClassCost { cpu, disk, size_bytes: cursor.varint()? });
    }
    Ok(costs.into())
}

pub(crate) fn read_header(cursor: &mut ByteCursor<'_>, form: HeaderForm) -> Result<RunHeader, Malformed> {
    let policy = cursor.text()?;
    let mut settings = Vec::new();
    for _ in 0..cursor.varint()? {
        settings.push((cursor.text()?, cursor.text()?));
    }
    let (seed, cache) = (cursor.varint()?, cursor.text()?);
    let (cache_bytes, started_unix_ns) = (cursor.varint()?, cursor.varint()?);
    let mut backends = Vec::new();
    let mut load_left = MOST_LOAD;
    let count: u16 = cursor.small()?;
    for _ in 0..count {
        let (name, key) = (cursor.text()?, cursor.word()?);
        let (weight, health) = (read_weight(cursor)?, read_health(cursor)?);
        let load: u32 = cursor.small()?;
        load_left = load_left
            .checked_sub(u64::from(load))
            .ok_or(Malformed("more than 16,777,216 requests are under way"))?;
        let others = cursor.small()?;
        let left = cursor.small::<u32>()?.checked_sub(1);
        backends.push(BackendEntry { name, key, weight, health, load, others, most: None, left });
    }
    let admission = request_code::read_admission(cursor)?;
    let inquiries = cursor.byte()?;
    if usize::from(inquiries) > Candidates::MOST {
        return Err(Malformed("more than 8 back-ends are asked before a choice"));
    }
    let reserved = cursor.varint()?;
    if reserved > MOST_LOAD {
        return Err(Malformed("more than 16,777,216 requests are under way"));
    }
    let waiting = request_code::read_all_waiting(cursor)?;
    let class_costs = match form {
        HeaderForm::Plain => Arc::default(),
        HeaderForm::WithClasses | HeaderForm::WithLimits => read_class_costs(cursor)?,
    };
    if form == HeaderForm::WithLimits {
        for entry in &mut backends {
            entry.most = read_most(cursor)?;
        }
    }
    Ok(RunHeader {
        policy,
        settings,
        seed,
        cache,
        cache_bytes,
        class_costs,
        backends,
        admission,
        waiting,
        inquiries,
        reserved,
        started_unix_ns,
    })
}
