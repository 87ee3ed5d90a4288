//! What the texts of these commands share.

/// Width of text in columns: the terminal's, or 100 without one.
pub(super) fn text_width() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0).clamp(40, 140))
}

/// A number with its unit, if it has one.
pub(super) fn with_unit(number: String, unit: &str) -> String {
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}
