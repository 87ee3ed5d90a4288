//! `plimsoll reproduce`.

use crate::error::CliError;

/// Arguments of `reproduce`.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Result<(), CliError> {
    Ok(())
}
