//! A table on the terminal.

use plimsoll_report::Table;

use crate::output;

/// A table as text, and the columns for which there is no room.
pub(super) fn shown(mut table: Table) -> String {
    let dropped = table.drop_columns(output::width());
    let mut text = format!("{}\n", table.to_text_within(output::width()));
    if !dropped.is_empty() {
        let line = format!(
            "No room for {}: they are in the report of --out, in --json and on a wider terminal.",
            dropped.join(", ")
        );
        text += &format!("{}\n", output::wrapped(&line, output::width().into(), 0));
    }
    text
}
