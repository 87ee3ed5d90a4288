//! `plimsoll hardware`: lists the hardware of back-ends with every cost and its source.

use plimsoll_report::{Align, Table, TableColumn};
use plimsoll_sim::hardware::{HARDWARE, HardwareCost, HardwareSpec};

use super::lists::{Args, LEAST_WRAPPED, as_code};
use crate::error::CliError;
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    args.print(HARDWARE, |hardware| json(hardware), markdown, text)
}

fn json(hardware: &HardwareSpec) -> serde_json::Value {
    let costs: Vec<serde_json::Value> = hardware
        .costs()
        .map(|cost| {
            serde_json::json!({
                "owners": cost.owners, "key": cost.key, "value": cost.value, "source": cost.source,
            })
        })
        .collect();
    serde_json::json!({ "name": hardware.name, "summary": hardware.summary, "costs": costs })
}

/// Every cost of every hardware, those that several have once.
fn costs() -> Vec<(Vec<&'static str>, &'static HardwareCost)> {
    let mut out: Vec<(Vec<&'static str>, &'static HardwareCost)> = Vec::new();
    for hardware in HARDWARE {
        for cost in hardware.costs() {
            match out.iter_mut().find(|(_, other)| *other == cost) {
                Some((names, _)) => names.push(hardware.name),
                None => out.push((vec![hardware.name], cost)),
            }
        }
    }
    out
}

fn text() -> String {
    let column = |title: &str| TableColumn::new(title, Align::Left);
    let mut list = Table::new([column("Hardware"), column("What it is").wraps_at(LEAST_WRAPPED)]);
    for hardware in HARDWARE {
        list.row([hardware.name, hardware.summary]);
    }
    let mut table = Table::new([
        column("Hardware").wraps_at(LEAST_WRAPPED),
        column("Of").wraps_at("adaptload".len() as u16).rank(1),
        column("Parameter"),
        TableColumn::new("Value", Align::Right),
        column("Source").wraps_at(LEAST_WRAPPED),
    ]);
    for (names, cost) in costs() {
        table.row([
            &*names.join(", "),
            &cost.owners.join(", "),
            cost.key,
            &cost.value.to_string(),
            cost.source,
        ]);
    }
    let width = output::width();
    let dropped = table.drop_columns(width);
    let mut out = format!("{}\n{}", list.to_text_within(width), table.to_text_within(width));
    if !dropped.is_empty() {
        out += &format!("\nNo room for {}: --json has it.\n", dropped.join(", "));
    }
    out
}

fn markdown() -> String {
    let mut out = "| Hardware | What it is |\n| --- | --- |\n".to_owned();
    for hardware in HARDWARE {
        out += &format!("| `{}` | {} |\n", hardware.name, hardware.summary);
    }
    out += "\n| Hardware | Of | Parameter | Value | Source |\n| --- | --- | --- | --- | --- |\n";
    for (names, cost) in costs() {
        let (names, owners) = (as_code(&names), as_code(cost.owners));
        out += &format!("| {names} | {owners} | `{}` | {} | {} |\n", cost.key, cost.value, cost.source);
    }
    out
}
