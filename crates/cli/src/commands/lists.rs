//! `plimsoll policies` and `plimsoll models`: lists the registries with all parameters.

use plimsoll_policy::params::ParamSpec;
use plimsoll_policy::{LoadUse, registered};
use plimsoll_report::{Align, Table, TableColumn};
use plimsoll_sim::models::MODELS;

use crate::error::CliError;
use crate::output;

/// Arguments of the commands that list a registry.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print Markdown, as in the documentation
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Print one JSON object per line
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
}

impl Args {
    /// Prints the entries of a registry as the arguments ask: as one JSON object per line, as Markdown, or as text.
    pub(crate) fn print<T>(
        &self,
        entries: &[T],
        json: impl Fn(&T) -> serde_json::Value,
        markdown: impl FnOnce() -> String,
        text: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        if self.json {
            return entries.iter().try_for_each(|entry| output::print(&json(entry).to_string()));
        }
        output::print(&if self.markdown { markdown() } else { text() })
    }
}

/// The words as Markdown code, separated by commas.
pub(crate) fn as_code(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// One entry of a registry.
struct RegistryEntry {
    name: &'static str,
    aliases: &'static [&'static str],
    summary: &'static str,
    source: &'static str,
    params: &'static [ParamSpec],
    /// For a policy.
    load_use: Option<LoadUse>,
    needs_content: Option<&'static str>,
}

pub(crate) fn policies(args: &Args) -> Result<(), CliError> {
    let entries: Vec<RegistryEntry> = registered()
        .map(|s| RegistryEntry {
            name: s.name,
            aliases: s.aliases,
            summary: s.summary,
            source: s.source,
            params: s.params,
            load_use: Some(s.load_use),
            needs_content: s.capabilities.content_needed(),
        })
        .collect();
    show("Policy", &entries, args)
}

pub(crate) fn models(args: &Args) -> Result<(), CliError> {
    let entries: Vec<RegistryEntry> = MODELS
        .iter()
        .map(|s| RegistryEntry {
            name: s.name,
            aliases: &[],
            summary: s.summary,
            source: s.source,
            params: s.params,
            load_use: None,
            needs_content: None,
        })
        .collect();
    show("Model", &entries, args)
}

fn show(kind: &str, entries: &[RegistryEntry], args: &Args) -> Result<(), CliError> {
    args.print(entries, json, || markdown(kind, entries), || text(kind, entries))
}

/// The least width of text that is wrapped.
pub(crate) const LEAST_WRAPPED: u16 = 16;

fn text(kind: &str, entries: &[RegistryEntry]) -> String {
    let column = |title: &str| TableColumn::new(title, Align::Left);
    let mut list = Table::new([
        column(kind),
        column("Also").wraps_at(LEAST_WRAPPED),
        column("What it does").wraps_at(LEAST_WRAPPED),
    ]);
    let mut params = Table::new([
        column("Parameter"),
        TableColumn::new("Default", Align::Right),
        column("Unit"),
        column("Meaning").wraps_at(LEAST_WRAPPED),
    ]);
    for e in entries {
        list.row([e.name, &e.aliases.join(", "), e.summary]);
        for p in e.params {
            params.row([&format!("{}.{}", e.name, p.name), &p.default.to_string(), p.unit, p.help.trim()]);
        }
    }
    let width = output::width();
    format!("{}\n{}", list.to_text_within(width), params.to_text_within(width))
}

fn json(e: &RegistryEntry) -> serde_json::Value {
    let params: Vec<serde_json::Value> = e
        .params
        .iter()
        .map(|p| {
            serde_json::json!({
                "name": p.name, "default": p.default.to_string(), "unit": p.unit,
                "accepts": p.kind.to_string(), "help": p.help.trim(),
            })
        })
        .collect();
    let mut entry = serde_json::json!({
        "name": e.name, "aliases": e.aliases, "summary": e.summary, "source": e.source, "params": params,
    });
    if let Some(load_use) = e.load_use {
        entry["load_use"] = load_use.name().into();
        entry["needs_content"] = e.needs_content.into();
        entry["load_information"] = load_use.sources().into();
    }
    entry
}

fn markdown(kind: &str, entries: &[RegistryEntry]) -> String {
    let mut out = format!("| {kind} | Also known as | What it does | Source |\n| --- | --- | --- | --- |\n");
    for e in entries {
        out += &format!("| `{}` | {} | {} | {} |\n", e.name, as_code(e.aliases), e.summary, e.source);
    }
    let loads: Vec<_> = entries.iter().filter_map(|e| Some((e.name, e.load_use?))).collect();
    if !loads.is_empty() {
        out += &format!("\n| {kind} | Load information |\n| --- | --- |\n");
        out +=
            &loads.iter().map(|(name, load_use)| format!("| `{name}` | {load_use} |\n")).collect::<String>();
    }
    out += "\n| Parameter | Default | Unit | Accepts | Meaning |\n| --- | --- | --- | --- | --- |\n";
    for e in entries {
        for p in e.params {
            let (default, help) = (p.default, p.help.trim());
            out += &format!("| `{}.{}` | {default} | {} | {} | {help} |\n", e.name, p.name, p.unit, p.kind);
        }
    }
    out
}
