//! `plimsoll trace formats`: lists the registry of trace formats.

use plimsoll_report::{Align, Table};
use plimsoll_trace::FormatSpec;
use plimsoll_trace::formats::FORMATS;

use crate::commands::lists::Args;
use crate::error::CliError;
use crate::output;

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    if args.json {
        return FORMATS.iter().try_for_each(|spec| output::print(&json(spec).to_string()));
    }
    output::print(&if args.markdown { markdown() } else { text() })
}

fn text() -> String {
    let mut table = Table::new([
        ("Format", Align::Left),
        ("Also", Align::Left),
        ("What it is", Align::Left),
        ("Recognised by", Align::Left),
        ("Written", Align::Left),
    ]);
    for spec in FORMATS {
        let aliases = spec.aliases.join(", ");
        table.row([spec.format.name(), &aliases, spec.summary, spec.recognised_by, written(spec)]);
    }
    table.to_text_within(output::width())
}

/// Whether `plimsoll trace convert` writes the format.
fn written(spec: &FormatSpec) -> &'static str {
    if spec.format.is_writable() { "yes" } else { "no" }
}

fn json(spec: &FormatSpec) -> serde_json::Value {
    serde_json::json!({
        "name": spec.format.name(), "aliases": spec.aliases, "summary": spec.summary,
        "recognised_by": spec.recognised_by, "written": spec.format.is_writable(),
    })
}

fn markdown() -> String {
    let head = "| Format | Also known as | What it is | Recognised by | Written |";
    let mut out = format!("{head}\n| --- | --- | --- | --- | --- |\n");
    for spec in FORMATS {
        let aliases: Vec<String> = spec.aliases.iter().map(|alias| format!("`{alias}`")).collect();
        let (name, summary, mark, written) =
            (spec.format.name(), spec.summary, spec.recognised_by, written(spec));
        out += &format!("| `{name}` | {} | {summary} | {mark} | {written} |\n", aliases.join(", "));
    }
    out
}
