//! `plimsoll completions` and `plimsoll man`: what shells and `man` know of the command line, made from its own declaration.

use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;

use crate::error::CliError;
use crate::output;

/// Arguments of `completions`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll completions bash >/usr/share/bash-completion/completions/plimsoll
  plimsoll completions zsh >/usr/local/share/zsh/site-functions/_plimsoll
  plimsoll completions fish >~/.config/fish/completions/plimsoll.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Arguments of `man`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll man /usr/local/share/man/man1 && man plimsoll-balance
  plimsoll man out && man -l out/plimsoll.1")]
pub(crate) struct ManArgs {
    /// Directory for one page of each command; it is made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Prints the script by which a shell completes this command line.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "plimsoll", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// Writes the manual pages.
pub(crate) fn man(args: &ManArgs, command: Command) -> Result<(), CliError> {
    output::make_dir(&args.directory)?;
    clap_mangen::generate_to(command, &args.directory)
        .map_err(|error| CliError::writing(&args.directory, &error))
}
