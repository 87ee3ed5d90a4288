//! What the texts of these commands share.

use crate::output;

/// Width of text in columns: the terminal's, or 80 without one.
pub(super) fn text_width() -> usize {
    output::width_up_to(140).into()
}

/// A number with its unit, if it has one.
pub(super) fn with_unit(number: String, unit: &str) -> String {
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}
