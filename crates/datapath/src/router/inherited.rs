//! What a router takes over from an earlier process of its name that was killed: the table of cloned connections, which is pinned.

use libbpf_rs::MapHandle;

use super::layout::CloneEntry;
use crate::error::{BPF_CAPABILITIES, DatapathError};
use crate::layout::flow_at;
use crate::{Flow, batch, flow_table};

/// The connections whose clients may wait for their end, unordered. Of others, which were reset by their client or ended by their clone,
/// the entries are removed: a client may begin another connection from the same port at any time.
pub(super) fn take_over(table: &MapHandle) -> Result<Vec<Flow>, DatapathError> {
    let (mut waiting, mut over) = (Vec::new(), Vec::new());
    let read = batch::for_each(table, |key, value| {
        let entry = CloneEntry::from_bytes(value);
        let to = if entry.reset || entry.closing { &mut over } else { &mut waiting };
        to.extend(flow_at(key, 0));
    });
    let what = "cannot read the cloned connections of an earlier process";
    read.map_err(|error| DatapathError::of(what, BPF_CAPABILITIES, error))?;
    for flow in over {
        flow_table::remove(table, &flow, what)?;
    }
    Ok(waiting)
}
