//! The arguments of `plimsoll lab demo`.

use plimsoll_config::MechanismKind;
use plimsoll_experiments::lab_cluster::LabMechanism;
use plimsoll_lab::Rate;

use crate::values;

/// Most back-ends of the demo: each is a process.
const MOST_BACKENDS: usize = 16;
/// Largest document: each back-end has some in memory.
const MOST_BYTES: u64 = 64 << 20;

/// Arguments of `lab demo`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Needs root. With --mechanism handoff or direct the same load is also put on a front-end that proxies, with auto on proxy and \
handoff, with clone on proxy and direct, and the results stand side by side. Where there are two CPUs, the front-end's node has one to itself, so that its cost can be told, the kernel's work \
for its packets included.")]
pub(in super::super) struct Args {
    /// How a chosen back-end gets the request
    #[arg(long, value_enum, default_value = "handoff")]
    pub(super) mechanism: MechanismName,

    /// Number of back-ends, 1 to 16
    #[arg(long, default_value = "2", value_parser = backends)]
    pub(super) backends: usize,

    /// Seconds measured for each mechanism, 1 to 3600; one of warm-up comes before
    #[arg(long, default_value = "5", value_parser = seconds)]
    pub(super) seconds: f64,

    /// Size of each document, at most 64MiB
    #[arg(long, default_value = "100KiB", value_parser = size)]
    pub(super) size: u64,

    /// Connections of the client, 1 to 10000, each with one request at a time
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) connections: u32,

    /// Make a connection for each request, instead of keeping it for the next one
    #[arg(long)]
    pub(super) new_connections: bool,

    /// Policy of the front-end (see `plimsoll policies`); `lard_r` by default, with direct and clone `least_connections`, as
    /// content is not known there
    #[arg(long)]
    policy: Option<String>,

    /// Rate of every link, each way, such as 1gbit; as fast as the machine by default
    #[arg(long)]
    pub(super) rate: Option<Rate>,

    /// Print one JSON object per mechanism instead of the table
    #[arg(long)]
    pub(super) json: bool,
}

/// A mechanism on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum MechanismName {
    /// The front-end passes requests and responses on
    Proxy,
    /// The back-end gets the client's connection and answers the client directly
    Handoff,
    /// Each request is handed off or passed on, whichever costs less
    Auto,
    /// Connections are distributed at layer 4, packet by packet, and back-ends answer the client directly
    Direct,
    /// As with direct, and the back-end that has a document answers on a connection of another one
    Clone,
}

impl Args {
    /// The policy of all front-ends of the demo.
    pub(super) fn policy(&self) -> &str {
        let at_layer_4 = matches!(self.mechanism, MechanismName::Direct | MechanismName::Clone);
        let usual = if at_layer_4 { "least_connections" } else { "lard_r" };
        self.policy.as_deref().unwrap_or(usual)
    }
}

impl MechanismName {
    /// This one, after the one that it is compared with.
    pub(super) fn with_baseline(self) -> Vec<LabMechanism> {
        let proxy = MechanismKind::Proxy.into();
        match self {
            Self::Proxy => vec![proxy],
            Self::Handoff => vec![proxy, MechanismKind::Handoff.into()],
            Self::Auto => vec![proxy, MechanismKind::Handoff.into(), MechanismKind::Auto.into()],
            Self::Direct => vec![proxy, MechanismKind::Direct.into()],
            Self::Clone => vec![proxy, MechanismKind::Direct.into(), LabMechanism::Clone],
        }
    }
}

fn backends(text: &str) -> Result<usize, String> {
    let wrong = || format!("expected a number of back-ends from 1 to {MOST_BACKENDS}, not `{text}`");
    text.parse().ok().filter(|n| (1..=MOST_BACKENDS).contains(n)).ok_or_else(wrong)
}

fn seconds(text: &str) -> Result<f64, String> {
    let wrong = || format!("expected a number of seconds from 1 to 3600, not `{text}`");
    text.parse().ok().filter(|s| (1.0..=3600.0).contains(s)).ok_or_else(wrong)
}

fn size(text: &str) -> Result<u64, String> {
    let size = values::size(text)?;
    if (1..=MOST_BYTES).contains(&size) {
        Ok(size)
    } else {
        Err("expected a size from 1 to 64MiB".to_owned())
    }
}
