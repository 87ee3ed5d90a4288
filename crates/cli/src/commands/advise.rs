//! `plimsoll advise`: from an access log to a policy, a size of the cluster, and a configuration.

use std::path::PathBuf;

use plimsoll_lab::Rate;
use plimsoll_policy::Nanos;
use plimsoll_policy::params::{GivenValue, ParamSet};
use plimsoll_sim::hardware::HardwareSpec;
use plimsoll_sim::models::lard;
use plimsoll_studies::Workload;
use plimsoll_studies::advise::{
    Advice, AdviseError, AdviseQuestion, TargetLoad, USUAL_MOST_REQUESTS, advice_json, advice_report, advise,
    advise_requests, plimsoll_toml,
};

use self::shown::shown;
use crate::error::CliError;
use crate::input::{self, ReadArgs};
use crate::out_dir::OutDir;
use crate::output;
use crate::values;

mod shown;

/// The configuration beside the report.
const CONFIG: &str = "plimsoll.toml";
/// The advice as JSON beside it.
const JSON: &str = "advice.json";

/// Arguments of `advise`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The policies are simulated on the log, on clusters of several sizes and under several conditions; a long log is represented by a \
part of it. Nothing is measured on your servers.

Examples:
  plimsoll advise access.log.gz --out advice
  plimsoll advise access.log --hardware network_storage --memory 2GiB --target-load 10x --p99 100ms
  plimsoll advise access.log --set lard.connect_us=19.8 --backends 6 --target-load 3000")]
pub(crate) struct Args {
    /// Access logs, read as one; `-` for standard input; `synth:NAME[,key=value…]` for a synthetic workload
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<String>,

    /// Hardware of the back-ends (see `plimsoll hardware`)
    #[arg(long, value_name = "NAME", default_value = "nvme", value_parser = plimsoll_sim::hardware::find_hardware)]
    hardware: &'static HardwareSpec,

    /// A cost that was measured, e.g. lard.connect_us=19.8 (see `plimsoll measure`); wins over the hardware's; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = values::parameter)]
    settings: Vec<(String, GivenValue)>,

    /// Memory for documents of each back-end: a size, or per cent of the size of all documents; found out unless given
    #[arg(long, value_name = "SIZE", value_parser = values::cache_size)]
    memory: Option<values::CacheSize>,

    /// Number of back-ends; the fewest that carry the load unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    backends: Option<u16>,

    /// What is to be carried at the peak: requests per second, or a multiple of the log's own busiest minute, such as 3x
    #[arg(long, value_name = "RATE", default_value = "1x", value_parser = target_load)]
    target_load: TargetLoad,

    /// The longest time at the peak that one answer of 100 may exceed
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = values::time)]
    p99: Nanos,

    /// What the network of each back-end can send, such as 1Gbit or 500Mbit (a second)
    #[arg(long, value_name = "RATE", default_value = "10Gbit", value_parser = network)]
    network: f64,

    /// Requests that are simulated of a longer log: neighbours, with its busiest minute
    #[arg(long, value_name = "N", default_value_t = USUAL_MOST_REQUESTS, value_parser = clap::value_parser!(u64).range(10_000..))]
    sample: u64,

    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    read: ReadArgs,

    /// Write an HTML report, the advice as JSON and a configuration into this directory
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Overwrite files of --out that no report of plimsoll lists as its own
    #[arg(long)]
    force: bool,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What `--target-load` is unless it is given.
const LOG_AS_IT_IS: TargetLoad = TargetLoad::Times(1.0);

/// Requests per second, or `3x`.
fn target_load(text: &str) -> Result<TargetLoad, String> {
    let (number, times) = text.strip_suffix(['x', '×']).map_or((text, false), |number| (number, true));
    let number = number.trim().parse().ok().filter(|&n: &f64| n > 0.0 && n.is_finite());
    let number = number
        .ok_or_else(|| format!("expected requests per second, such as 1500, or a multiple of the log's peak, such as 3x, not `{text}`"))?;
    Ok(if times { TargetLoad::Times(number) } else { TargetLoad::Rate(number) })
}

/// Bits per second, such as `1Gbit`.
fn network(text: &str) -> Result<f64, String> {
    let rate = text.parse::<Rate>().map_err(|error| {
        format!("expected what a network sends in a second, such as 10Gbit or 500Mbit: {error}")
    });
    rate.map(|rate| rate.bits_per_s() as f64)
}

/// Costs of the model.
fn costs(settings: &[(String, GivenValue)]) -> Result<ParamSet, CliError> {
    let own = |key: &'_ str| key.strip_prefix("lard.").unwrap_or(key).to_owned();
    let given: Vec<(String, GivenValue)> =
        settings.iter().map(|(key, value)| (own(key), value.clone())).collect();
    let given = given.iter().map(|(key, value)| (key.as_str(), value.clone()));
    ParamSet::read(lard::SPEC.params, given).map_err(|error| {
        CliError::Usage(format!(
            "--set takes costs of the model `lard`, as `plimsoll measure` prints them: {error}"
        ))
    })
}

impl Args {
    fn question(&self) -> Result<AdviseQuestion, CliError> {
        if self.p99.is_zero() {
            return Err(CliError::Usage("--p99 takes a time above 0, such as 100ms".into()));
        }
        if self.memory.is_some_and(|memory| memory.bytes(u64::MAX) == 0) {
            return Err(CliError::Usage("--memory takes a size above 0, such as 512MiB".into()));
        }
        Ok(AdviseQuestion {
            hardware: self.hardware,
            costs: costs(&self.settings)?,
            memory: self.memory,
            backends: self.backends.map(usize::from),
            load: self.target_load,
            p99_s: self.p99.as_secs_f64(),
            network_bits_per_s: self.network,
            strips_query: self.read.strip_query,
            seed: self.seed,
            most_requests: self.sample,
        })
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let question = args.question()?;
    let open = |dir: &PathBuf| OutDir::open(dir, "advise", &[CONFIG, JSON], args.force);
    let out = args.out.as_ref().map(open).transpose()?;
    let workload = input::workload(&args.logs, &args.read.options(args.seed))?;
    for warning in input::warnings(&workload.trace) {
        eprintln!("plimsoll: warning: {warning}");
    }
    let bar = output::Bar::new(advise_requests(workload.trace.len(), &question));
    let advice = advise(&workload, &question, &bar);
    bar.finish();
    let advice = advice.map_err(|error| match error {
        AdviseError::Load { .. } if args.target_load != LOG_AS_IT_IS => CliError::Usage(error.to_string()),
        error => CliError::Failed(format!("{}: {error}", workload.name)),
    })?;
    let written = out.as_ref().map_or(Ok(()), |out| write(out, &workload, &advice));
    let out = out.as_ref().filter(|_| written.is_ok());
    if args.json {
        output::print(&advice_json(&advice, &output::command_line()).to_string())?;
    } else {
        output::print(&shown(&workload, &advice, out.map(OutDir::told)))?;
    }
    written
}

fn write(out: &OutDir, workload: &Workload, advice: &Advice) -> Result<(), CliError> {
    let command = output::command_line();
    let mut report = advice_report(advice, &workload.name, &command);
    for note in input::notes(&workload.trace.report) {
        report = report.fact("Input", note);
    }
    for warning in input::warnings(&workload.trace) {
        report = report.warning(warning);
    }
    if let Some(sha256) = &workload.info.sha256 {
        report = report.footer("SHA-256", sha256);
    }
    out.write(report.footer("Version", format!("plimsoll {}", env!("CARGO_PKG_VERSION"))))?;
    output::write(&out.file(CONFIG), &plimsoll_toml(advice, &command))?;
    output::write(&out.file(JSON), &format!("{}\n", advice_json(advice, &command)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_rates_or_multiples() {
        assert_eq!(target_load("1500"), Ok(TargetLoad::Rate(1500.0)));
        assert_eq!(target_load("2.5x"), Ok(TargetLoad::Times(2.5)));
        for bad in ["", "x", "0", "0x", "-3", "nan", "infx", "many"] {
            assert!(target_load(bad).unwrap_err().contains("such as 3x"), "{bad}");
        }
    }

    #[test]
    fn networks_have_units() {
        assert_eq!(network("10Gbit"), Ok(1e10));
        assert_eq!(network("2.5 Mbit"), Ok(2.5e6));
        for bad in ["", "10", "Gbit", "0Gbit", "-1Mbit", "nanGbit", "1GB"] {
            assert!(network(bad).unwrap_err().contains("such as 10Gbit"), "{bad}");
        }
    }

    #[test]
    fn costs_are_those_that_measure_prints() {
        let of = |key: &str| costs(&[(key.to_owned(), GivenValue::Text("12.5".to_owned()))]);
        let read = of("lard.connect_us").unwrap();
        assert_eq!(read.get::<f64>("connect_us"), Some(12.5));
        assert_eq!(of("teardown_us").unwrap().get::<f64>("teardown_us"), Some(12.5));
        assert!(of("lard_r.t_low").unwrap_err().to_string().contains("plimsoll measure"));
    }
}
