//! `plimsoll shim`: the library through which an unmodified server takes connections over.

use std::path::PathBuf;

use plimsoll_datapath::shim;

use crate::error::CliError;

/// Arguments of `shim`.
#[derive(clap::Args)]
#[command(after_help = "\
Load it into the server with LD_PRELOAD, have the server listen on a Unix socket, and name that socket to the agent.

Examples:
  plimsoll shim /usr/local/lib/plimsoll-shim.so
  LD_PRELOAD=/usr/local/lib/plimsoll-shim.so nginx        # with `listen unix:/run/http.sock;`
  plimsoll agent … --serve shim:/run/http.sock
  # Apache cannot listen on a Unix socket; the shim has it do so in place of port 8080:
  PLIMSOLL_SHIM_LISTEN=8080=/run/http.sock LD_PRELOAD=/usr/local/lib/plimsoll-shim.so apache2 -k start")]
pub(crate) struct Args {
    /// File to write; a server that runs with an earlier one keeps it
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    shim::write_to(&args.file).map_err(|error| CliError::writing(&args.file, &error))
}
