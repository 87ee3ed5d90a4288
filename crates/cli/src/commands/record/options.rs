//! The command line of `record`.

use std::path::PathBuf;

use plimsoll_policy::Nanos;

use crate::commands::destination::DestinationArgs;
use crate::values;

/// Arguments of `record`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Forwards nothing and changes nothing. Ends after the given time or number of requests, or at SIGINT or SIGTERM, and then writes what
it has. Recording at an interface needs CAP_NET_RAW.

Examples:
  plimsoll record --observe eth0 --port 80 --duration 600s -o day.parquet
  plimsoll record --config balance.toml --duration 60s -o minute.parquet
  plimsoll simulate day.parquet --policy lard_r,least_connections")]
pub(crate) struct Args {
    /// Record at this network interface: beside a server, or a balancer of any kind
    #[arg(long, value_name = "INTERFACE", required_unless_present = "config")]
    pub(super) observe: Option<String>,

    /// Record what a running switch sees (`mechanism = "direct"`): the configuration of its front-end, which is asked by its admin API
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["observe", "ports", "copy_bytes"])]
    pub(super) config: Option<PathBuf>,

    /// Port of the servers that are asked
    #[arg(long = "port", value_name = "PORT", default_value = "80", value_delimiter = ',')]
    pub(super) ports: Vec<u16>,

    /// File to write; its ending tells the format and compression, such as .parquet or .csv.zst; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: PathBuf,

    #[command(flatten)]
    pub(super) destination: DestinationArgs,

    /// End after this time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time)]
    pub(super) duration: Nanos,

    /// End after so many requests
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=MOST_REQUESTS))]
    pub(super) requests: u64,

    /// Bytes that are copied of each packet, headers included: must hold the line of a request and the head of an answer; 65536 where
    /// requests are sent ahead (pipelined)
    #[arg(long, value_name = "BYTES", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(128..=65536))]
    pub(super) copy_bytes: u32,

    /// Sizes of documents whose answers are not seen: a list as `find DIR -type f -printf '%s %T@ /%P\n'` writes it
    #[arg(long, value_name = "FILE")]
    pub(super) file_list: Option<PathBuf>,

    /// Record all requests, not only those that a simulation of documents counts: GET and HEAD, answered by 200, 206 or 304
    #[arg(long)]
    pub(super) include_all: bool,

    /// Leave the part of a target behind the question mark out
    #[arg(long)]
    pub(super) strip_query: bool,

    /// Print what was recorded as one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// The most requests: each takes some 100 bytes of memory until it is written.
const MOST_REQUESTS: u64 = 10_000_000;
