//! The machine-readable form of a run.

use serde::Serialize;

use crate::run::Run;

/// One JSON object on one line, without a line feed: the fields of [`Run`] in their order, `null` where a value does
/// not apply or is not finite, load over time left out.
pub fn json_line(run: &Run) -> String {
    json_text(run)
}

/// A run or a part of one as JSON.
pub(crate) fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a run holds only strings, numbers and maps with string keys")
}
