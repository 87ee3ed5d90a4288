//! Back-ends that run Apache 1.3 on Linux, and the clients that connect to them through a layer-4 front-end.
//!
//! Source: Hyun, Jung, Lee and Maeng, *Content sniffer based load distribution in a Web server cluster*, IEICE Transactions 2003,
//! section 4.1. The front-end chooses a back-end for each connection when its SYN arrives, without knowing what will be asked for. The
//! request follows one round trip later. Readings of what the paper leaves open, all of them parameters:
//!
//! - A connection counts as load from its establishment, with the request, until its last segment.
//! - An idle process holds a connection from the SYN; without one the connection waits, up to the backlog. Above that it is refused, and
//!   its client tries again after 3 s and 6 s.
//! - The CPU runs processes by credits (`cpu.rs`). The kernel establishes connections, and sends what follows the first window of a
//!   response; that delays whoever runs. The process does everything else, also the teardown.
//! - A response goes out by slow start. The process is free again when the rest of the response fits into the send buffer.
//! - Requests for a document that is being read wait for that read. Dynamic requests and those without a document need no disk.
//! - The server latency ends with the first segment of the answer. The kernel's work in the same slice, after that segment, counts in.
//! - Front-ends that read requests (`front_end`) are those of Pai et al., ASPLOS 1998, section 5.
//! - An HTTP/1.1 request goes on its client's connection if that has answered all before; otherwise its client opens another one,
//!   for that request alone where the first is at work.

use plimsoll_policy::params::{ParamSet, Params as _};

use crate::model_spec::{ModelSpec, RunResult, Simulation};

mod clients;
mod cluster;
mod connections;
mod cpu;
mod node;
mod page_disk;
mod params;
mod processes;

pub use params::ApacheParams;

fn run(params: &ParamSet, simulation: Simulation<'_>) -> RunResult {
    cluster::ApacheCluster::new(ApacheParams::of(params), simulation).run()
}

/// Registry entry.
pub static SPEC: ModelSpec = ModelSpec {
    name: "apache",
    summary: "Apache 1.3 processes, connections of clients with round trips, a CPU by credits, a disk, memory cache of whole files",
    source: "Hyun, Jung, Lee and Maeng (CSLD), IEICE Transactions 2003, section 4.1",
    has_cache: true,
    spends_on_messages: false,
    params: ApacheParams::SPECS,
    run,
};
