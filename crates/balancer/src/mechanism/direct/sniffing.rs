//! Reads what passes: the first bytes of clients' packets, which the packet program has copied while these were on their way.
//! Whoever reads too slowly loses samples, never packets.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use plimsoll_classes::ClassTable;
use plimsoll_config::Config;
use plimsoll_datapath::switch::{ConnHolder, PacketSample};
use plimsoll_policy::{BackendId, Nanos};
use plimsoll_sniffer::{DynamicRule, FileTable, RequestStart, Sniffer};

use super::system::{DirectSystem, sample_bytes};
use crate::shared::FrontEndShared;

/// How long samples are waited for, and so how late a change of the configuration may be noticed.
const WAIT: Duration = Duration::from_millis(100);
/// How often the list of files is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// The most documents of a site.
const MOST_FILES: usize = 10_000_000;

/// What a sample is read with.
struct Reading {
    sniffer: Sniffer,
    /// Who is who in the packet program.
    holders: Vec<(ConnHolder, BackendId)>,
}

impl Reading {
    /// Who has a connection.
    fn backend(&self, holder: ConnHolder) -> Option<BackendId> {
        let (_, backend) = self.holders.iter().find(|(known, _)| *known == holder)?;
        Some(*backend)
    }
}

fn holders_of(system: &DirectSystem) -> Vec<(ConnHolder, BackendId)> {
    system.shown().holders.iter().map(|(holder, id, _)| (*holder, *id)).collect()
}

/// The list of files, as it was read.
#[derive(Default)]
struct ReadList {
    stamp: Option<(SystemTime, u64)>,
    looked: Option<Instant>,
}

impl ReadList {
    /// The table, if there is a list that has changed since the last look.
    fn changed(&mut self, list: Option<&Path>) -> Option<FileTable> {
        let list = list?;
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return None;
        }
        self.looked = Some(Instant::now());
        let found = std::fs::metadata(list).and_then(|found| Ok((found.modified()?, found.len()))).ok();
        if found.is_none() || found == self.stamp {
            return None;
        }
        self.stamp = found;
        let read = std::fs::read(list).map_err(|error| error.to_string());
        let table =
            read.and_then(|text| FileTable::read(&text, MOST_FILES).map_err(|error| error.to_string()));
        match table {
            Ok(table) => {
                tracing::info!(files = table.len(), "read the list of files {}", list.display());
                Some(table)
            }
            Err(why) => {
                tracing::warn!("the list of files {} is not used: {why}", list.display());
                None
            }
        }
    }
}

/// Reads samples until the front-end stops.
pub(super) fn sniff(shared: &Arc<FrontEndShared>, system: &Arc<DirectSystem>, stop: &AtomicBool) {
    let mut samples = match system.switch.samples() {
        Ok(samples) => samples,
        Err(error) => return tracing::error!(%error, "what passes is not read"),
    };
    let mut config: Option<Arc<Config>> = None;
    let mut was_recorded = false;
    let mut list = ReadList::default();
    let sniffer = Sniffer {
        classes: ClassTable::default(),
        files: FileTable::new(MOST_FILES),
        // Lists are late by a second at least, and may leave directories out.
        is_complete: false,
        rule: DynamicRule::Usual,
    };
    let reading = Rc::new(RefCell::new(Reading { sniffer, holders: Vec::new() }));
    let (read, dispatch, counter) =
        (Rc::clone(&reading), Arc::clone(shared.dispatch.first()), Arc::clone(system));
    samples.visit_with(move |sample: &PacketSample<'_>| {
        let mut read = read.borrow_mut();
        let Some(start) = RequestStart::read(sample.payload) else { return };
        let content = read.sniffer.content(&start);
        counter.recording.note(sample, &start, content.size_bytes);
        if !counter.reads_for_policy.load(Ordering::Relaxed) {
            return;
        }
        if read.backend(sample.holder).is_none() {
            read.holders = holders_of(&counter);
        }
        let Some(backend) = read.backend(sample.holder) else { return };
        counter.sniffed.fetch_add(1, Ordering::Relaxed);
        dispatch.sniffed(&content.to(backend, Nanos::from_micros(sample.round_trip_us.into())));
    });
    while !stop.load(Ordering::Relaxed) {
        let now = shared.config.load_full();
        if config.as_ref().is_none_or(|before| !Arc::ptr_eq(before, &now)) {
            let classes = now.classes.as_ref().map(|classes| ClassTable::clone(&classes.file.table));
            reading.borrow_mut().sniffer.classes = classes.unwrap_or_default();
            list = ReadList::default();
        }
        let is_recorded = system.recording.is_on();
        if is_recorded != was_recorded || config.as_ref().is_none_or(|before| !Arc::ptr_eq(before, &now)) {
            set_sample_bytes(&now, is_recorded, system);
            (was_recorded, config) = (is_recorded, Some(Arc::clone(&now)));
        }
        if let Some(files) = list.changed(now.direct.as_ref().and_then(|direct| direct.file_list.as_deref()))
        {
            reading.borrow_mut().sniffer.files = files;
        }
        reading.borrow_mut().holders = holders_of(system);
        if let Err(error) = samples.wait(WAIT) {
            return tracing::error!(%error, "what passes is read no more");
        }
    }
}

/// Nothing is copied where nobody wants to know.
fn set_sample_bytes(config: &Config, is_recorded: bool, system: &DirectSystem) {
    system.reads_for_policy.store(config.policy.spec.capabilities.can_sniff(), Ordering::Relaxed);
    if let Err(error) = system.switch.set_sample_bytes(sample_bytes(config, is_recorded)) {
        tracing::error!(%error, "what is read of packets stays as it was");
    }
}
