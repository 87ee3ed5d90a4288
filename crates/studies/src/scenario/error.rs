//! Why a scenario cannot be run.

use plimsoll_policy::BuildError;
use plimsoll_policy::params::ParamError;
use plimsoll_sim::models::MODELS;
use plimsoll_sim::{LOAD_INFORMATION, PartitionError, SourceError};
use plimsoll_trace::TraceError;

use super::tables::policies_with_tables;

/// The most front-ends times partitions: each has a policy object and a view of its own.
pub(super) const MOST_CORES: usize = 4096;

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// No such model.
    #[error("no model `{name}`; {}", suggestion(*nearest))]
    UnknownModel {
        /// As written.
        name: String,
        /// The nearest known name, when one is near.
        nearest: Option<&'static str>,
    },
    /// The policy cannot be built.
    #[error(transparent)]
    Policy(#[from] BuildError),
    /// The model's parameters are wrong.
    #[error("model `{model}`: {error}")]
    Model {
        /// The model.
        model: &'static str,
        /// What is wrong.
        error: ParamError,
    },
    /// The parameters of load information are wrong.
    #[error("load information `{name}`: {error}")]
    LoadInformation {
        /// Its name.
        name: &'static str,
        /// What is wrong.
        error: ParamError,
    },
    /// No such load information.
    #[error("no load information `{name}`; {}", load_suggestion(*nearest))]
    UnknownLoadInformation {
        /// As written.
        name: String,
        /// The nearest known name, when one is near.
        nearest: Option<&'static str>,
    },
    /// A fault that the model cannot simulate.
    #[error("model `{0}` has no speeds: `speed=X:B@T` goes with the models `fifo`, `apache` and `lard`")]
    NoSpeeds(&'static str),
    /// Another memory on a model whose back-ends' memories stay as they are.
    #[error("model `{0}` has no memories that change: `memory=BYTES:B@T` goes with the model `lard`")]
    NoMemories(&'static str),
    /// A policy that goes by what is asked for, where only the connection is known.
    #[error(
        "in the model `{model}` the front-end chooses when a connection is opened, and knows nothing of the request then, by which \
         `{policy}` chooses: take a policy that goes by loads or in turn, or a front-end \
         that reads requests (`--set {model}.front_end=1`)"
    )]
    UnknownAtSyn {
        /// The model.
        model: &'static str,
        /// The policy.
        policy: &'static str,
    },
    /// A saturated cluster on a model whose clients decide when they come.
    #[error(
        "in the model `{0}` clients come by themselves: give --arrivals poisson:RATE or --arrivals trace"
    )]
    OpenArrivals(&'static str),
    /// Several front-ends, or one that does not know all loads, on a model that has one.
    #[error(
        "the model `{0}` has one front-end, which knows the loads of all back-ends: leave out --front-ends, --load-information, \
         --partitions and --hop, and take no policy that probes"
    )]
    OneFrontEnd(&'static str),
    /// No front-ends, or too many.
    #[error("there are 1 to 1,024 front-ends, not {0}")]
    FrontEnds(u16),
    /// CPU time of messages on a model whose back-ends cannot spend it.
    #[error(
        "`{load_information}.cpu_s` is CPU time of back-ends, which those of the model `{model}` cannot spend: give it with the model \
         {}, or leave it at 0",
        models_with_cpu()
    )]
    MessageCpu {
        /// The kind of load information.
        load_information: &'static str,
        /// The model.
        model: &'static str,
    },
    /// Front-ends on back-ends that a load index manager chooses for.
    #[error(
        "--hop has each front-end run on a back-end, and with the load information `central` a manager apart from them chooses: leave \
         out --hop, or choose another kind of load information"
    )]
    HopToManager,
    /// An exchange with nobody.
    #[error(
        "--exchange-interval is how often front-ends tell one another what they have seen, and here {0}: give --front-ends 2 or more \
         with another kind of load information than `central`, or leave it out"
    )]
    ExchangeAlone(&'static str),
    /// A policy without tables that could be shared.
    #[error(
        "--tables shared has front-ends share what a policy remembers of targets, and `{policy}` has no such table; {} have one",
        policies_with_tables()
    )]
    NoTables {
        /// The policy.
        policy: &'static str,
    },
    /// Partitions that do not fit the cluster.
    #[error("partitions: {0}")]
    Partitions(#[from] PartitionError),
    /// Too many cores.
    #[error(
        "{front_ends} front-ends and {partitions} partitions are too many: at most {MOST_CORES} of them multiplied"
    )]
    Cores {
        /// Front-ends.
        front_ends: u16,
        /// Partitions.
        partitions: usize,
    },
    /// A setting that neither policy nor model has.
    #[error("{0}")]
    Setting(String),
    /// A speed although requests do not arrive at the times of the trace.
    #[error("--speed goes with --arrivals trace")]
    Speed,
    /// No back-ends, or too many.
    #[error("a cluster has 1 to 65,534 back-ends, not {0}")]
    Backends(usize),
    /// A fault names a back-end that does not exist.
    #[error("a fault names back-end {backend}, but there are only {backends} (numbered from 0)")]
    Fault {
        /// As named.
        backend: u16,
        /// How many there are.
        backends: usize,
    },
    /// Dynamic share outside [0, 1].
    #[error("the share of dynamic requests is from 0 to 1, not {0}")]
    DynamicShare(f64),
    /// Global memory on a model without memory.
    #[error("`wrr_gms` needs back-ends with a memory cache: the model `lard`, not `{0}`")]
    NoMemory(&'static str),
    /// Simulated time ran over.
    #[error(
        "simulated time went beyond 584 years: give a higher arrival rate or `--speed`, or shorter service times"
    )]
    TimeOverflow,
    /// Nothing was measured.
    #[error("the trace ended within the warm-up of {0} requests, so there is nothing to report; give fewer")]
    OnlyWarmUp(u64),
    /// The trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Another source of requests failed.
    #[error(transparent)]
    Source(SourceError),
    /// Stopped by the user.
    #[error("stopped")]
    Stopped,
}

/// The names of the models whose back-ends can spend CPU time on messages.
fn models_with_cpu() -> String {
    let names: Vec<String> = MODELS
        .iter()
        .filter(|model| model.spends_on_messages)
        .map(|model| format!("`{}`", model.name))
        .collect();
    names.join(", ")
}

fn load_suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(
        || format!("there are {}", LOAD_INFORMATION.iter().map(|l| l.name).collect::<Vec<_>>().join(", ")),
        |name| format!("did you mean `{name}`?"),
    )
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(
        || format!("there are {}", MODELS.iter().map(|m| m.name).collect::<Vec<_>>().join(", ")),
        |name| format!("did you mean `{name}`?"),
    )
}
