//! Tables of the packet programs whose keys are flows, and ports that they watch.

use std::net::SocketAddr;

use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};

use crate::Flow;
use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::layout::port_bits;

/// Enters a flow, or replaces its entry. `table` names the table, `what` says what failed.
pub(crate) fn enter(
    map: &MapHandle,
    flow: &Flow,
    entry: &[u8],
    table: &'static str,
    what: &'static str,
) -> Result<(), DatapathError> {
    map.update(&flow.key(), entry, MapFlags::ANY).map_err(|error| match error.kind() {
        ErrorKind::TooBig => DatapathError::Full { what: table, capacity: map.max_entries() },
        _ => DatapathError::of_bpf(what, BPF_CAPABILITIES, &error),
    })
}

/// Removes a flow. False when it was not entered (any more).
pub(crate) fn remove(map: &MapHandle, flow: &Flow, what: &'static str) -> Result<bool, DatapathError> {
    match map.delete(&flow.key()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(DatapathError::of_bpf(what, BPF_CAPABILITIES, &error)),
    }
}

/// Has the program watch these addresses' ports alone.
pub(crate) fn watch_ports(ports: &MapHandle, vips: &[SocketAddr]) -> Result<(), DatapathError> {
    let words = port_bits(vips);
    let keys: Vec<u8> = (0_u32..).take(words.len()).flat_map(u32::to_ne_bytes).collect();
    let values: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let count = u32::try_from(words.len()).unwrap_or(u32::MAX);
    let updated = ports.update_batch(&keys, &values, count, MapFlags::ANY, MapFlags::ANY);
    updated.map_err(|error| DatapathError::of_bpf("cannot set the watched ports", BPF_CAPABILITIES, &error))
}
