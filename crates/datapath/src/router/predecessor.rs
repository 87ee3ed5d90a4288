//! What a process leaves that is killed: the table of its cloned connections, pinned.

use libbpf_rs::{MapCore, MapHandle};
use plimsoll_wire::FLOW_KEY_BYTES;

use super::layout::{CLONE_ENTRY_BYTES, CLONES, CloneEntry};
use crate::Flow;
use crate::batch;
use crate::layout::flow_at;
use crate::pins::Pins;

/// The table of an earlier process of this name. It stays open when its pin is removed.
pub(super) fn pinned_table(pins: &Pins) -> Option<MapHandle> {
    let path = pins.path(CLONES).filter(|path| path.exists())?;
    let table = MapHandle::from_pinned_path(&path);
    let table = table.inspect_err(|error| warn_of_clients(&format!("{}: {error}", path.display()))).ok()?;
    let sizes = (table.key_size() as usize, table.value_size() as usize);
    (sizes == (FLOW_KEY_BYTES, CLONE_ENTRY_BYTES)).then_some(table)
}

/// The connections in the table of an earlier process, whose packets no program leads any more.
pub(super) fn entries(table: &MapHandle) -> Vec<(Flow, CloneEntry)> {
    let mut found = Vec::new();
    let read = batch::for_each(table, |key, value| {
        found.extend(flow_at(key, 0).map(|flow| (flow, CloneEntry::from_bytes(value))));
    });
    if let Err(error) = read {
        warn_of_clients(&error.to_string());
    }
    found
}

/// Pins the table for whoever comes after this process, should it be killed.
pub(super) fn pin(table: &mut MapHandle, pins: &Pins) {
    let Some(path) = pins.path(CLONES) else { return };
    if let Err(error) = table.pin(&path) {
        tracing::warn!(
            "cannot pin {}: {error}. Should this process be killed, clients whose connections are being cloned are not \
             told that these have ended",
            path.display()
        );
        return;
    }
    if let Err(error) = pins.give(&path) {
        tracing::warn!("{error}");
    }
}

fn warn_of_clients(why: &str) {
    tracing::warn!(
        "cannot read the cloned connections of an earlier process, whose clients are not told that these have ended: {why}"
    );
}
