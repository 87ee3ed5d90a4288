//! `plimsoll lab exec`: a command in a node.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;

use plimsoll_lab::{Node, check_privileges, enter};

use super::note;
use crate::error::CliError;

/// Arguments of `lab exec`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The command runs in the node's network and mount namespaces, in the present directory; its exit code is that of this \
command. It sees the machine's files, but its own /run, /sys and BPF file system.

Examples:
  plimsoll lab exec client -- curl http://10.77.0.100/
  plimsoll lab exec front-end -- plimsoll balance -c plimsoll.toml
  plimsoll lab exec mylab b1 -- ip address")]
pub(super) struct Args {
    /// The lab, which may be left out if there is only one, and the node: client, front-end, switch, b0, b1 and so on
    #[arg(value_names = ["LAB", "NODE"], num_args = 1..=2, required = true)]
    place: Vec<String>,

    /// What to run, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let (lab, node) = match args.place.as_slice() {
        [lab, node] => (Some(lab.as_str()), node.as_str()),
        // There is at least one.
        _ => (None, args.place.first().map_or("", String::as_str)),
    };
    node.parse::<Node>()?;
    check_privileges()?;
    let note = note::find(lab)?;
    let pid = note.node(node)?.pid;
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(CliError::Usage("give a command after --".to_owned()));
    };
    let error = enter(pid, program).args(arguments).exec();
    Err(CliError::Failed(format!("cannot run nsenter: {error}")))
}
