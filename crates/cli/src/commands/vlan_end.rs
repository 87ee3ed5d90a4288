//! `plimsoll vlan-end`: puts an interface of this machine into a VLAN.

use plimsoll_datapath::VlanEnd;

use crate::error::CliError;

/// Arguments of `vlan-end`.
#[derive(clap::Args)]
#[command(after_help = "\
For kernels without 8021q; others make an interface of their own for a VLAN (ip link add link eth0 name eth0.20 type vlan id 20). All
that this machine sends at the interface gets the tag. The packet programs stay there when the command ends, until --remove or a
restart of the machine.

Examples:
  plimsoll vlan-end --interface eth0 --vlan 20
  plimsoll vlan-end --interface eth0 --remove")]
pub(crate) struct Args {
    /// Network interface
    #[arg(long, value_name = "NAME")]
    interface: String,

    /// Number of the VLAN
    #[arg(long, value_name = "NUMBER", required_unless_present = "remove", conflicts_with = "remove",
          value_parser = clap::value_parser!(u16).range(1..=4094))]
    vlan: Option<u16>,

    /// Name of this end, which no other one of this machine has
    #[arg(long, value_name = "NAME", default_value = "vlan-end")]
    name: String,

    /// Take the programs away
    #[arg(long)]
    remove: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let done = match args.vlan {
        None => VlanEnd::remove(&args.name, &args.interface),
        Some(number) => VlanEnd::attach(&args.name, &args.interface, number).map(drop),
    };
    done.map_err(|error| CliError::Failed(error.to_string()))
}
