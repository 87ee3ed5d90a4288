//! The machine-readable form of a run.

use crate::run::Run;

/// One JSON object on one line, without a line feed: the fields of [`Run`] in their order, `null` where a value does
/// not apply or is not finite, load over time left out.
pub fn json_line(run: &Run) -> String {
    serde_json::to_string(run).expect("a run holds only strings, numbers and maps with string keys")
}
