//! `plimsoll tunnel-end`: takes packets of a switch out of their tunnel on a back-end.

use std::net::IpAddr;

use plimsoll_datapath::TunnelEnd;

use crate::error::CliError;

/// Arguments of `tunnel-end`.
#[derive(clap::Args)]
#[command(after_help = "\
The packet program stays at the interface when the command ends, until --remove or a restart of the machine.

Examples:
  plimsoll tunnel-end --interface eth0 --switch 192.0.2.10     # `via = \"ipip\"` or \"gue\" in the switch's [direct]
  plimsoll tunnel-end --interface eth0 --remove")]
pub(crate) struct Args {
    /// Network interface at which the switches' packets arrive
    #[arg(long, value_name = "NAME")]
    interface: String,

    /// A switch's address, from which its tunnel begins; may be repeated. Packets of others stay in their tunnels
    #[arg(long, value_name = "ADDRESS", required_unless_present = "remove", conflicts_with = "remove")]
    switch: Vec<IpAddr>,

    /// Name of this end, which no other one of this machine has
    #[arg(long, value_name = "NAME", default_value = "tunnel-end")]
    name: String,

    /// Take the program away
    #[arg(long)]
    remove: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let done = match args.remove {
        true => TunnelEnd::remove(&args.name, &args.interface),
        false => TunnelEnd::attach(&args.name, &args.interface, &args.switch).map(drop),
    };
    done.map_err(|error| CliError::Failed(error.to_string()))
}
