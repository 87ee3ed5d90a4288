//! `plimsoll lab up`: a lab that lasts until Ctrl-C.

use plimsoll_lab::{Conditions, Lab, LabConfig, Node, check_privileges};
use tokio::signal::unix::{SignalKind, signal};

use super::conditions::ConditionOptions;
use super::control::{self, ControlSocket};
use super::link;
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
  plimsoll lab up --delay 5ms --loss 0.1%
  plimsoll lab exec b0 -- plimsoll origin --root public_html --listen 10.77.0.11:80
  plimsoll lab exec client -- curl http://10.77.0.11/")]
pub(super) struct Args {
    /// Number of back-ends
    #[arg(long, default_value = "2", value_parser = super::backends)]
    backends: usize,

    /// Number of addresses of the client, from 10.77.0.101 on, at most 150
    #[arg(long, value_name = "N", default_value_t = 1)]
    clients: usize,

    /// Have nodes fill in checksums, as packets from a real network have them (needs ethtool)
    #[arg(long)]
    fill_checksums: bool,

    /// Seed of all chance on the links
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Name by which `lab exec` and `lab link` find it
    #[arg(long, default_value = "lab", value_parser = note::name)]
    name: String,

    /// Print what the lab is as one JSON object
    #[arg(long)]
    json: bool,

    /// Of every link, each way; `lab link` changes those of one
    #[command(flatten)]
    links: ConditionOptions,
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
        let mut links = Conditions::default();
        args.links.change(&mut links)?;
        let mut claim = NameClaim::new(&args.name)?;
        let control = ControlSocket::bind(&args.name)?;
        let lab = build(args, links, &claim)?;
        let note = claim.write(&lab)?;
        let text = if args.json {
            serde_json::to_string(&note).map_err(|e| CliError::Failed(e.to_string()))?
        } else {
            in_words(&note)
        };
        output::print(&text)?;
        loop {
            tokio::select! {
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
                _ = hangup.recv() => break,
                stream = control.accept() => control::answer(&lab, stream, link::carry_out).await,
            }
        }
        eprintln!("plimsoll: tearing down the lab `{}`", note.name);
        drop(lab);
        Ok(())
    })
}

fn build(args: &Args, links: Conditions, claim: &NameClaim) -> Result<Lab, CliError> {
    let config = LabConfig {
        backends: args.backends,
        clients: args.clients,
        links,
        seed: args.seed,
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
