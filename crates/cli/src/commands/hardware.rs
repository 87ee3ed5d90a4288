//! `plimsoll hardware`: lists the hardware of back-ends with every cost and its source.

use plimsoll_report::{Align, Table};
use plimsoll_sim::hardware::{HARDWARE, HardwareCost, HardwareSpec};

use super::lists::{Args, as_code};
use crate::error::CliError;

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
    let mut list = Table::new([("Hardware", Align::Left), ("What it is", Align::Left)]);
    for hardware in HARDWARE {
        list.row([hardware.name, hardware.summary]);
    }
    let mut table = Table::new([
        ("Hardware", Align::Left),
        ("Of", Align::Left),
        ("Parameter", Align::Left),
        ("Value", Align::Right),
        ("Source", Align::Left),
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
    format!("{}\n{}", list.to_text(), table.to_text())
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
