//! Destinations of converted and synthetic traces, checked before any work is done.

use std::fs::{self, File, Metadata};
use std::io::{IsTerminal as _, stdin, stdout};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use plimsoll_trace::{Format, TraceError, format_of_output};

use crate::error::CliError;

/// Where to write and how; shared by `convert` and `synth`.
#[derive(clap::Args, Debug)]
pub(crate) struct DestinationArgs {
    /// Format to write: csv, parquet, oracle-general or time-id-size (see `plimsoll trace formats`); by default told from
    /// the ending of the name
    #[arg(long, value_name = "FORMAT")]
    to_format: Option<Format>,

    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
}

/// An output that may be written.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

impl DestinationArgs {
    /// Checks that the format can be written and that no file is overwritten against the user's will.
    /// `fallback` is the format if neither option nor name gives one.
    pub(crate) fn resolve(
        &self,
        to: &Path,
        inputs: &[String],
        fallback: Option<Format>,
    ) -> Result<Destination, CliError> {
        let destination = Destination { path: to.to_owned(), format: self.format(to, fallback)? };
        if destination.is_stdout() {
            if destination.format.spec().binary && stdout().is_terminal() {
                return Err(CliError::Usage(format!(
                    "the format {} is binary and would garble the terminal; write to a file or a pipe",
                    destination.format
                )));
            }
            return Ok(destination);
        }
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(missing) = parent.filter(|parent| !parent.is_dir()) {
            return Err(CliError::Failed(format!(
                "cannot write {}: there is no directory {}; make it first",
                to.display(),
                missing.display()
            )));
        }
        // Devices and pipes are not overwritten.
        if let Some(existing) = fs::metadata(to).ok().filter(Metadata::is_file) {
            if let Some(input) = inputs.iter().find(|input| is_same(input, &existing)) {
                return Err(CliError::Usage(format!(
                    "the output {} is the same file as the input {input}, which would be lost; write to another file",
                    to.display()
                )));
            }
            if !self.force {
                return Err(CliError::Usage(format!(
                    "the output {} exists already; give --force to overwrite it, or another name",
                    to.display()
                )));
            }
        }
        Ok(destination)
    }

    fn format(&self, to: &Path, fallback: Option<Format>) -> Result<Format, CliError> {
        let format = self.to_format.or_else(|| format_of_output(to)).or(fallback);
        let format = format.ok_or_else(|| {
            CliError::Usage(if to.as_os_str() == "-" {
                "standard output has no name that tells the format; give --to-format, e.g. --to-format csv".into()
            } else {
                format!(
                    "the name of the output {} does not tell the format; let it end in .csv, .parquet, .oracleGeneral or \
                     .tr (for time-id-size), followed by .gz, .zst or .xz to compress, or give --to-format",
                    to.display()
                )
            })
        })?;
        if format.is_writable() {
            return Ok(format);
        }
        Err(CliError::Usage(format!(
            "the format {format} can be read but not written, for a trace keeps less than such a log tells; write {}",
            Format::writable_names()
        )))
    }
}

impl Destination {
    pub(crate) fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        if self.is_stdout() { "standard output".to_owned() } else { self.path.display().to_string() }
    }

    /// The fields that the format lacks, as a sentence; empty when it keeps everything.
    pub(crate) fn loss(&self) -> &'static str {
        self.format.loss()
    }

    /// Checks that the file can be written, before anything in it is lost.
    pub(crate) fn begin(&self) -> Result<(), CliError> {
        self.open().map(drop)
    }

    /// The file, in which nothing is lost yet; none where it is standard output, a device or a pipe.
    pub(crate) fn open(&self) -> Result<Option<File>, CliError> {
        if self.is_stdout() || fs::metadata(&self.path).is_ok_and(|found| !found.is_file()) {
            return Ok(None);
        }
        let opened = fs::OpenOptions::new().write(true).create(true).truncate(false).open(&self.path);
        opened.map(Some).map_err(|error| CliError::writing(&self.path, &error))
    }

    /// The error of a write that failed after [`Destination::begin`]. Removes the incomplete file, which
    /// could pass for a complete one.
    pub(crate) fn failed(&self, error: TraceError) -> CliError {
        if matches!(error, TraceError::ClosedPipe) {
            return CliError::ClosedPipe;
        }
        if fs::metadata(&self.path).is_ok_and(|found| found.is_file()) && !self.is_stdout() {
            // Report only the first error.
            let _ = fs::remove_file(&self.path);
        }
        error.into()
    }
}

/// Whether an input, or standard input for `-`, is this file under any name.
fn is_same(input: &str, file: &Metadata) -> bool {
    let found = if input == "-" {
        stdin().as_fd().try_clone_to_owned().and_then(|handle| fs::File::from(handle).metadata())
    } else {
        fs::metadata(input)
    };
    found.is_ok_and(|found| (found.dev(), found.ino()) == (file.dev(), file.ino()))
}
