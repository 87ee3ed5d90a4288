//! `plimsoll trace`: look at, convert and make traces.

use crate::error::CliError;

/// Arguments of `trace`.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: Args) -> Result<(), CliError> {
    Ok(())
}
