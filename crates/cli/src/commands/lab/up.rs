//! `plimsoll lab up`: a lab that lasts until Ctrl-C.

use std::time::Duration;

use plimsoll_lab::{Lab, LabConfig, Node, Rate, check_privileges};
use tokio::signal::unix::{SignalKind, signal};

use super::note::{self, NameClaim, Note};
use crate::error::CliError;
use crate::output;

/// Arguments of `lab up`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Needs root, and the programs ip, nsenter and unshare. Whatever happens to this process, its nodes end with it, with all \
that runs and is pinned in them.

Examples:
  plimsoll lab up --backends 3
  plimsoll lab exec b0 -- plimsoll origin --root public_html --listen 10.77.0.11:80
  plimsoll lab exec client -- curl http://10.77.0.11/")]
pub(super) struct Args {
    /// Number of back-ends
    #[arg(long, default_value = "2", value_parser = super::backends)]
    backends: usize,

    /// Number of addresses of the client, from 10.77.0.101 on, at most 150
    #[arg(long, value_name = "N", default_value_t = 1)]
    clients: usize,

    /// Rate of every link, each way, such as 1gbit; as fast as the machine by default
    #[arg(long)]
    rate: Option<Rate>,

    /// Delay of every link, each way, such as 1ms; a round trip crosses four. Needs sch_netem of the kernel
    #[arg(long, value_name = "TIME", value_parser = duration)]
    delay: Option<Duration>,

    /// Have nodes fill in checksums, as packets from a real network have them (needs ethtool)
    #[arg(long)]
    fill_checksums: bool,

    /// Name by which `lab exec` finds it
    #[arg(long, default_value = "lab", value_parser = note::name)]
    name: String,

    /// Print what the lab is as one JSON object
    #[arg(long)]
    json: bool,
}

/// `1ms`, `250us`, `0.5s`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("expected a time such as 1ms, 250us or 0.5s, not `{text}`");
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (number, unit_s) =
        units.into_iter().find_map(|(unit, s)| Some((text.strip_suffix(unit)?, s))).ok_or_else(wrong)?;
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * unit_s).map_err(|_| wrong())
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    check_privileges()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| CliError::Failed(format!("cannot start: {e}")))?;
    let failed = |e: std::io::Error| CliError::Failed(format!("cannot wait for signals: {e}"));
    runtime.block_on(async {
        // Before anything is built: a signal from then on ends it in order.
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
        let mut claim = NameClaim::new(&args.name)?;
        let lab = build(args, &claim)?;
        let note = claim.write(&lab)?;
        let text = if args.json {
            serde_json::to_string(&note).map_err(|e| CliError::Failed(e.to_string()))?
        } else {
            in_words(&note)
        };
        output::print(&text)?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        eprintln!("plimsoll: tearing down the lab `{}`", note.name);
        drop(lab);
        Ok(())
    })
}

fn build(args: &Args, claim: &NameClaim) -> Result<Lab, CliError> {
    let config = LabConfig {
        backends: args.backends,
        clients: args.clients,
        rate: args.rate,
        delay: args.delay,
        fill_checksums: args.fill_checksums,
        remove_at_end: Some(claim.path.clone()),
        ..LabConfig::default()
    };
    Ok(Lab::build(&config)?)
}

fn in_words(note: &Note) -> String {
    let mut text = format!(
        "The lab `{}` is up (process {}); Ctrl-C tears it down.\n\n{:<10} {:<13} {:<11} holder\n",
        note.name, note.pid, "node", "IPv4", "IPv6"
    );
    for node in &note.nodes {
        text += &format!("{:<10} {:<13} {:<11} {}\n", node.name, node.address, node.address_v6, node.pid);
    }
    text + &format!(
        "\nClients reach the {} also at {} and {}, the virtual addresses.\n\nRun something in a node:\n  plimsoll lab \
         exec {} client -- COMMAND\n",
        Node::FrontEnd,
        note.virtual_address,
        note.virtual_address_v6,
        note.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(duration("1ms"), Ok(Duration::from_millis(1)));
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(duration("0.5s"), Ok(Duration::from_millis(500)));
        for bad in ["", "1", "ms", "-1ms", "nans", "1h", "1e400s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
