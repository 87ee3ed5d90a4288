//! `plimsoll replay`: replays a decision log through its own policy, or through others.

mod comparison;
mod proof;

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use plimsoll_decisions::{
    CompareOptions, ListedDecision, LogReadError, LogReader, ReplayError, compare, replay,
};
use plimsoll_policy::params::nearest;
use plimsoll_policy::{PolicySpec, find};

use crate::error::CliError;
use crate::{output, values};

/// Arguments of `replay`.
#[derive(clap::Args)]
#[command(after_help = "\
Without --policy, a fresh policy is fed what the log holds, and each decision must come out as it was logged: exit code
0 when all do, 1 when one differs or the log lacks something. With --policy, others are asked about the same requests.

Examples:
  plimsoll replay /var/lib/plimsoll/decisions
  plimsoll replay decisions-00000003.plog --partial
  plimsoll replay decisions --policy lard_r,uri_hash --cache 2GiB --set lard_r.t_high=80")]
pub(crate) struct Args {
    /// A file of a decision log, or the directory of all of them
    #[arg(value_name = "FILE|DIR")]
    log: PathBuf,

    /// Ask these policies instead, and compare what they would have done with what was done
    #[arg(short, long, value_delimiter = ',')]
    policy: Vec<String>,

    /// Set a parameter of these policies, e.g. lard_r.t_low=25 or t_low=25; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = values::setting, requires = "policy")]
    settings: Vec<(String, String)>,

    /// Memory cache of each back-end, to predict misses; by default what the log says
    #[arg(long, value_name = "SIZE", value_parser = values::size, requires = "policy")]
    cache: Option<u64>,

    /// Replacement policy of the caches; by default what the log says
    #[arg(long, value_name = "NAME", requires = "policy")]
    cache_policy: Option<String>,

    /// Succeed although the log lacks its start, its end or something in between, when the rest agrees
    #[arg(long, conflicts_with = "policy")]
    partial: bool,

    /// Write every assignment made now to this CSV file (with --policy: of one policy)
    #[arg(long, value_name = "FILE")]
    decisions: Option<PathBuf>,

    /// Print JSON: one object for the proof, or one per run and policy
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    if args.decisions.as_deref() == Some(Path::new("-")) {
        return Err(CliError::Usage(
            "--decisions takes the name of a file; standard output holds the results".into(),
        ));
    }
    if args.policy.is_empty() {
        return prove(args);
    }
    let options = options(args)?;
    if args.decisions.is_some() && options.policies.len() > 1 {
        return Err(CliError::Usage(
            "--decisions goes with one policy; give them one after the other".into(),
        ));
    }
    let mut reader = LogReader::open(&args.log)?;
    let mut csv = args.decisions.as_deref().map(DecisionCsv::create).transpose()?;
    let sink = &mut |_, assigned| csv.iter_mut().for_each(|csv| csv.line(assigned));
    let comparisons = compare(&mut reader, &options, sink)?;
    if comparisons.is_empty() {
        return Err(no_run(&args.log));
    }
    for (i, comparison) in comparisons.iter().enumerate() {
        if args.json {
            comparison::json(i, comparison).iter().try_for_each(|line| output::print(line))?;
        } else {
            let gap = if i > 0 { "\n" } else { "" };
            output::print(&format!("{gap}{}", comparison::text(i, comparison)))?;
        }
    }
    csv.map_or(Ok(()), DecisionCsv::finish)
}

fn prove(args: &Args) -> Result<(), CliError> {
    let mut reader = LogReader::open(&args.log)?;
    let mut csv = args.decisions.as_deref().map(DecisionCsv::create).transpose()?;
    let proof = replay(&mut reader, &mut |assigned| csv.iter_mut().for_each(|csv| csv.line(assigned)))?;
    if proof.runs.is_empty() {
        return Err(no_run(&args.log));
    }
    output::print(&if args.json { proof::json(&proof) } else { proof::text(&proof) })?;
    csv.map_or(Ok(()), DecisionCsv::finish)?;
    match proof::objection(&proof, args.partial) {
        Some(objection) => Err(CliError::Failed(objection)),
        None => Ok(()),
    }
}

fn no_run(log: &Path) -> CliError {
    CliError::Failed(format!("{} holds no run of a policy yet", log.display()))
}

/// The policies with their settings. A setting without a policy's name goes to all that declare it.
fn options(args: &Args) -> Result<CompareOptions, CliError> {
    let mut specs: Vec<&'static PolicySpec> = Vec::new();
    for name in &args.policy {
        let spec = find(name)?;
        if specs.iter().all(|s| s.name != spec.name) {
            specs.push(spec);
        }
    }
    let taken_by = |spec: &PolicySpec, key: &str| {
        let (owner, key) = key.split_once('.').map_or((None, key), |(owner, key)| (Some(owner), key));
        let owns = owner.is_none_or(|o| o == spec.name || spec.aliases.contains(&o));
        (owns && spec.params.iter().any(|p| p.name == key)).then(|| key.to_owned())
    };
    for (key, _) in &args.settings {
        if !specs.iter().any(|spec| taken_by(spec, key).is_some()) {
            let known: Vec<&str> = specs.iter().flat_map(|s| s.params.iter().map(|p| p.name)).collect();
            let near = nearest(key.rsplit('.').next().unwrap_or(key), known.iter().copied());
            let hint = near.map_or_else(
                || "see `plimsoll policies` for what can be set".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(CliError::Usage(format!("none of these policies takes `{key}`; {hint}")));
        }
    }
    let mut policies = Vec::new();
    for spec in specs {
        let own = |(key, value): &(String, String)| Some((taken_by(spec, key)?, value.clone()));
        let settings: Vec<_> = args.settings.iter().filter_map(own).collect();
        // Refuse unusable settings before reading a long log.
        policies.push((spec.name.to_owned(), spec.read(&settings)?.settings()));
    }
    let cache = args.cache_policy.as_deref().map(plimsoll_cache::find).transpose();
    let cache = cache.map_err(|e| CliError::Usage(e.to_string()))?;
    Ok(CompareOptions { policies, cache, cache_bytes: args.cache })
}

/// Assignments as CSV `request,time_s,target,backend`; the target as 16 hexadecimal digits, because the log
/// holds no names.
struct DecisionCsv {
    path: PathBuf,
    file: BufWriter<File>,
    failure: Option<io::Error>,
}

impl DecisionCsv {
    fn create(path: &Path) -> Result<Self, CliError> {
        let file = File::create(path).map_err(|e| CliError::writing(path, &e))?;
        let mut out = Self { path: path.to_owned(), file: BufWriter::new(file), failure: None };
        out.failure = out.file.write_all(b"request,time_s,target,backend\n").err();
        Ok(out)
    }

    fn line(&mut self, a: ListedDecision) {
        if self.failure.is_none() {
            let line = writeln!(self.file, "{},{},{:016x},{}", a.request, a.now, a.target.0, a.backend.0);
            self.failure = line.err();
        }
    }

    fn finish(mut self) -> Result<(), CliError> {
        let failure = self.failure.take().or_else(|| self.file.flush().err());
        failure.map_or(Ok(()), |error| Err(CliError::writing(&self.path, &error)))
    }
}

impl From<LogReadError> for CliError {
    fn from(error: LogReadError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<ReplayError> for CliError {
    fn from(error: ReplayError) -> Self {
        Self::Failed(error.to_string())
    }
}
