//! The arguments of `plimsoll reproduce`.

use std::path::PathBuf;

use crate::error::CliError;

/// Arguments of `reproduce`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The study
    #[arg(value_enum)]
    pub(super) study: StudyName,

    /// Only this figure of the paper; of LARD also `handoff`: the measures of its connection handoff (section 6.2); of CSLD also
    /// `table4`, `table5`, `robustness`: what has no figure, and `handoff`: connections that stay, which LARD's section 5 leaves open; of cloning also `live`: what is measured on a
    /// lab, or of that `live-8`, `live-9` (the figures) and `min-size` (from which size on documents are cloned); of robustness
    /// `design`, `judging` or `traces`: only these workloads
    #[arg(long, value_name = "N")]
    pub(super) figure: Option<String>,

    /// Fewer runs, of a shortened day for AdaptLoad: two to four minutes on two cores, less for cloning
    #[arg(long)]
    pub(super) quick: bool,

    /// AdaptLoad: requests per minute of the day, a CSV with columns `minute` and `requests`; a smooth day without it
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    pub(super) profile: Option<PathBuf>,

    /// AdaptLoad: run on these traces, joined, instead of the synthetic World Cup day. Robustness: NAME=FILE, workloads beside the
    /// synthetic ones
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(super) trace: Vec<String>,

    /// Robustness: also `lard_auto` without each of its rules
    #[arg(long)]
    pub(super) ablate: bool,

    /// Only this seed of workloads and runs; the claims are judged over fewer workloads then
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    /// CSLD and cloning: so many seeds, from 1 on [default: 3, with --quick 2 and 1]
    #[arg(long, value_name = "N", conflicts_with = "seed")]
    pub(super) seeds: Option<u64>,

    /// CSLD: minutes that a run of the tables is measured, after half as many of warm-up; the figures' days in proportion [default: 30]
    #[arg(long, value_name = "N")]
    pub(super) minutes: Option<f64>,

    /// AdaptLoad: how much of its time the network is used at the day's highest peak, from which the speed of back-ends
    /// follows; the paper does not say [default: 0.5]
    #[arg(long, value_name = "SHARE")]
    pub(super) peak_use: Option<f64>,

    /// Write an HTML report and the data of all runs into this directory
    #[arg(short, long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,

    /// Overwrite files of --out that no report of plimsoll lists as its own
    #[arg(long)]
    pub(super) force: bool,

    /// Print one JSON object per claim and calibrated statistic instead of the table
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    /// Refuses options of the study of AdaptLoad.
    pub(super) fn only_adaptload(&self) -> Result<(), CliError> {
        if self.peak_use.is_some() || self.profile.is_some() || !self.trace.is_empty() {
            let text = "--profile, --trace and --peak-use are for the study `adaptload`";
            return Err(CliError::Usage(text.into()));
        }
        Ok(())
    }

    /// Refuses numbers of seeds that are none, and options of other studies.
    pub(super) fn check_seeds(&self) -> Result<(), CliError> {
        if self.seeds.is_some() && !matches!(self.study, StudyName::Csld | StudyName::Cloning) {
            return Err(CliError::Usage("--seeds is for the studies `csld` and `cloning`".into()));
        }
        if self.minutes.is_some() && self.study != StudyName::Csld {
            return Err(CliError::Usage("--minutes is for the study `csld`".into()));
        }
        if self.ablate && self.study != StudyName::Robustness {
            return Err(CliError::Usage("--ablate is for the study `robustness`".into()));
        }
        if self.seeds.is_some_and(|count| !(1..=100).contains(&count)) {
            return Err(CliError::Usage("--seeds: give a number of seeds from 1 to 100".into()));
        }
        Ok(())
    }
}

/// The studies there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum StudyName {
    /// Locality-aware request distribution: Pai et al., ASPLOS 1998
    Lard,
    /// AdaptLoad, size-based distribution: Zhang et al., Workload-aware load balancing for clustered web servers
    Adaptload,
    /// Load information for fine-grain services: Shen et al., Cluster load balancing for fine-grain network services
    FineGrain,
    /// Content sniffer based load distribution: Hyun et al., IEICE Transactions 2003
    Csld,
    /// Socket Cloning and cooperative caching: Sit, Wang and Lau, CLUSTER 2002
    Cloning,
    /// A stress matrix of our own: where each policy loses, and how much
    Robustness,
}
