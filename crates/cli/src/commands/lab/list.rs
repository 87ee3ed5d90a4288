//! `plimsoll lab list`: the running labs.

use super::note;
use crate::error::CliError;
use crate::output;

/// Arguments of `lab list`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Print one JSON object per lab
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let notes = note::running()?;
    if args.json {
        return notes.iter().try_for_each(|note| {
            output::print(&serde_json::to_string(note).map_err(|e| CliError::Failed(e.to_string()))?)
        });
    }
    if notes.is_empty() {
        eprintln!("plimsoll: no lab is running");
        return Ok(());
    }
    let mut text = format!("{:<16} {:>8}  nodes\n", "lab", "process");
    for note in &notes {
        let nodes: Vec<&str> = note.nodes.iter().map(|node| node.name.as_str()).collect();
        text += &format!("{:<16} {:>8}  {}\n", note.name, note.pid, nodes.join(" "));
    }
    output::print(&text)
}
