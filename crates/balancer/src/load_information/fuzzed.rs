//! Loads in fields, for the fuzz targets.

use super::header::{HeaderValue, field, load_of};

/// The load that the field `endpoint-load-metrics` of a head tells, if it is believed.
pub(crate) fn load_of_head(head: &[u8], most_load: u32) -> Option<u32> {
    let value = field(head, b"endpoint-load-metrics")?;
    match load_of(value, "named_metrics.active", most_load) {
        HeaderValue::Load(load) => Some(load),
        HeaderValue::NoLoad | HeaderValue::Unreadable | HeaderValue::Implausible => None,
    }
}
