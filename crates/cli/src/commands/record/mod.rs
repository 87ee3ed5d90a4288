//! `plimsoll record`: the requests that pass, as a trace.

mod collected;
mod ending;
mod observe;
mod options;
mod running;

use plimsoll_datapath::privileges::{KeptWork, PrivilegeDrop, choose};
use plimsoll_datapath::tap::{MOST_COPY_BYTES, PacketTap};
use plimsoll_report::format::count;
use plimsoll_sniffer::FileTable;

use self::collected::Collected;
use self::ending::{Losses, RecordEnd};
pub(crate) use self::options::Args;
use crate::error::CliError;
use crate::output;

/// The most documents of a list.
const MOST_FILES: usize = 10_000_000;

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let destination = args.destination.resolve(&args.output, &[], None)?;
    let files = files(args)?;
    let mut collected = Collected::new(args.requests, args.include_all, args.strip_query, files);
    let source = RecordSource::open(args)?;
    // Last, so that nothing is left of a command that fails.
    let opened = destination.open()?;
    give_privileges_away(opened.is_some() || destination.is_stdout())?;
    let ending = RecordEnd::after(args.duration)?;
    let losses = match source {
        RecordSource::Interface(tap) => observe::record(args, tap, &ending, &mut collected)?,
        RecordSource::Switch(switch) => running::record(&switch, &ending, &mut collected)?,
    };
    let summary = collected.summary();
    let trace = collected.into_trace().map_err(|error| destination.failed(error))?;
    let written = match opened {
        Some(file) => plimsoll_trace::convert_into(&trace, destination.format, &destination.path, file),
        None => plimsoll_trace::convert(&trace, destination.format, &destination.path),
    };
    written.map_err(|error| destination.failed(error))?;
    if args.json && !destination.is_stdout() {
        return output::print(&(json(&summary, losses).to_string() + "\n"));
    }
    eprintln!(
        "Wrote {} requests for {} targets by {} clients{} to {} as {}.",
        count(summary.counted),
        count(summary.targets),
        count(summary.clients),
        losses.connections.map(|n| format!(" on {} connections", count(n))).unwrap_or_default(),
        destination.name(),
        destination.format
    );
    for note in notes(&summary, losses, args.copy_bytes) {
        eprintln!("{note}");
    }
    Ok(())
}

/// Where requests are seen.
enum RecordSource {
    Interface(PacketTap),
    Switch(running::RunningSwitch),
}

impl RecordSource {
    fn open(args: &Args) -> Result<Self, CliError> {
        match (&args.observe, &args.config) {
            (Some(interface), _) => observe::open(args, interface).map(Self::Interface),
            (None, Some(config)) => running::RunningSwitch::of(config).map(Self::Switch),
            (None, None) => Err(CliError::Usage("give --observe or --config".to_owned())),
        }
    }
}

/// What comes from the network is read without privileges: as nobody, or, where the output has to be opened by its name later, as who
/// started this.
fn give_privileges_away(holds_output: bool) -> Result<(), CliError> {
    let identity = match holds_output {
        true => choose(None, &[]),
        // Who is not root stays who it is.
        false => choose(Some("root"), &[]).or_else(|_| choose(None, &[])),
    }?;
    PrivilegeDrop { identity: &identity, work: KeptWork::Answer, seccomp: true }.apply()?;
    Ok(())
}

fn files(args: &Args) -> Result<FileTable, CliError> {
    let Some(path) = &args.file_list else { return Ok(FileTable::new(0)) };
    let failed = |why: String| CliError::Failed(format!("cannot use {}: {why}", path.display()));
    let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    FileTable::read(&text, MOST_FILES).map_err(|error| failed(error.to_string()))
}

fn notes(summary: &collected::RecordSummary, losses: Losses, copy_bytes: u32) -> Vec<String> {
    let mut notes = Vec::new();
    if summary.left_out > 0 {
        notes.push(format!(
            "{} requests do not count: of another method than GET and HEAD, or not answered by 200, 206 or 304 \
             (--include-all keeps them).",
            count(summary.left_out)
        ));
    }
    if summary.unread > 0 {
        let (why, remedy) = match copy_bytes < MOST_COPY_BYTES {
            // To copy more would lose more.
            _ if losses.lost > 0 => {
                ("samples were lost, or heads stood beyond what is copied".to_owned(), String::new())
            }
            true => (
                format!(
                    "a head stood beyond the {} bytes that are copied of a packet",
                    count(copy_bytes.into())
                ),
                format!(" Give --copy-bytes {MOST_COPY_BYTES}."),
            ),
            false => ("a head was not seen".to_owned(), String::new()),
        };
        let sizes = match summary.unread_sizes {
            0 => "their sizes were taken from other answers or the file list".to_owned(),
            unknown => {
                format!("{} of their sizes are not known either and were written as 0", count(unknown))
            }
        };
        notes.push(format!(
            "{} answers were not read, as {why}. Their service times are not known, and {sizes}.{remedy}",
            count(summary.unread)
        ));
    }
    let did_not_pass = summary.unknown_sizes - summary.unread_sizes;
    if did_not_pass > 0 {
        notes.push(format!(
            "The size of {} answers is not known, as they did not pass here, and was written as 0; --file-list tells \
             the sizes of documents.",
            count(did_not_pass)
        ));
    }
    if losses.lost > 0 {
        notes.push(format!(
            "{} of {} samples were lost, as they came faster than they could be read; some requests are missing.",
            count(losses.lost),
            count(losses.packets)
        ));
    }
    if losses.refused > 0 {
        notes.push(format!(
            "{} samples of connections beyond {} at a time were not read.",
            count(losses.refused),
            count(observe::MOST_CONNECTIONS as u64)
        ));
    }
    if summary.is_full {
        notes.push("It ended early: the names of targets took all the memory that they may take.".to_owned());
    }
    notes
}

fn json(summary: &collected::RecordSummary, losses: Losses) -> serde_json::Value {
    serde_json::json!({
        "requests": summary.counted,
        "targets": summary.targets,
        "clients": summary.clients,
        "connections": losses.connections,
        "left_out": summary.left_out,
        "unknown_sizes": summary.unknown_sizes,
        "unread_answers": summary.unread,
        "unread_sizes": summary.unread_sizes,
        "samples": losses.packets,
        "samples_lost": losses.lost,
        "samples_refused": losses.refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_were_not_read_are_told_apart_from_those_that_did_not_pass() {
        let summary = collected::RecordSummary {
            counted: 30,
            targets: 2,
            clients: 1,
            left_out: 0,
            unknown_sizes: 9,
            unread: 19,
            unread_sizes: 9,
            is_full: false,
        };
        let wanted = "19 answers were not read, as a head stood beyond the 2,048 bytes that are copied of a packet. Their service \
                      times are not known, and 9 of their sizes are not known either and were written as 0. Give --copy-bytes 65536.";
        assert_eq!(notes(&summary, Losses::default(), 2048), [wanted]);
        // All is copied: samples were lost, or answers had begun before.
        let lost = notes(&summary, Losses { packets: 9, lost: 1, ..Losses::default() }, 2048);
        assert!(lost[0].contains("samples were lost, or") && !lost[0].contains("--copy-bytes"), "{lost:?}");
        let most = notes(&summary, Losses::default(), MOST_COPY_BYTES);
        assert!(most[0].contains("a head was not seen") && !most[0].contains("--copy-bytes"), "{most:?}");
        let notes =
            notes(&collected::RecordSummary { unknown_sizes: 10, ..summary }, Losses::default(), 2048);
        assert!(
            notes[1].starts_with("The size of 1 answers") && notes[1].contains("--file-list"),
            "{notes:?}"
        );
    }
}
