//! `plimsoll trace formats`: lists the registry of trace formats.

use plimsoll_report::{Align, Table};
use plimsoll_trace::FormatSpec;
use plimsoll_trace::formats::FORMATS;

use crate::commands::lists::{Args, as_code};
use crate::error::CliError;
use crate::output;

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    args.print(FORMATS, |spec| json(spec), markdown, text)
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
    let mut out = table.to_text_within(output::width());
    for spec in FORMATS.iter().filter(|spec| !spec.sample.is_empty()) {
        out += &format!("\n{}:{}\n  {}\n", spec.format, remark(spec), spec.sample.replace('\n', "\n  "));
    }
    out
}

/// What a reader of the format's logs should know, after a space.
fn remark(spec: &FormatSpec) -> String {
    if spec.remark.is_empty() { String::new() } else { format!(" {}", spec.remark) }
}

/// Whether `plimsoll trace convert` writes the format.
fn written(spec: &FormatSpec) -> &'static str {
    if spec.format.is_writable() { "yes" } else { "no" }
}

fn json(spec: &FormatSpec) -> serde_json::Value {
    serde_json::json!({
        "name": spec.format.name(), "aliases": spec.aliases, "summary": spec.summary,
        "recognised_by": spec.recognised_by, "written": spec.format.is_writable(), "sample": spec.sample,
        "remark": spec.remark,
    })
}

fn markdown() -> String {
    let head = "| Format | Also known as | What it is | Recognised by | Written |";
    let mut out = format!("{head}\n| --- | --- | --- | --- | --- |\n");
    for spec in FORMATS {
        let (name, aliases) = (spec.format.name(), as_code(spec.aliases));
        let (summary, mark, written) = (spec.summary, spec.recognised_by, written(spec));
        out += &format!("| `{name}` | {aliases} | {summary} | {mark} | {written} |\n");
    }
    for spec in FORMATS.iter().filter(|spec| !spec.sample.is_empty()) {
        out += &format!("\n`{}`:{}\n\n```text\n{}\n```\n", spec.format, remark(spec), spec.sample);
    }
    out
}
