//! The back-end models, one file each, and the registry that command line and documentation read.

use plimsoll_policy::params::{ParamSpec, Params as _};

pub mod adaptload;
mod alarm;
pub mod fifo;
mod global_memory;
pub mod lard;
mod lard_costs;
mod lognormal;
mod packet_ring;
mod processor_sharing;
mod read_queue;

/// One model as registered.
#[derive(Debug)]
pub struct ModelSpec {
    /// Name, also the prefix of its parameters.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Declared parameters.
    pub params: &'static [ParamSpec],
}

/// Every model.
pub static MODELS: &[&ModelSpec] = &[&LARD, &LARD_GMS, &ADAPTLOAD, &FIFO];

/// See [`lard`].
pub static LARD: ModelSpec = ModelSpec {
    name: "lard",
    summary: "CPU and disks with a queue each, memory cache of whole files",
    source: "Pai et al., ASPLOS 1998, section 3.1",
    params: lard::LardModelParams::SPECS,
};

/// See [`lard`] and its global memory.
pub static LARD_GMS: ModelSpec = ModelSpec {
    name: "lard_gms",
    summary: "the lard model with the back-ends' memories joined to one global memory",
    source: "Pai et al., ASPLOS 1998, section 4 (WRR/GMS); Feeley et al., SOSP 1995",
    params: lard::LardModelParams::SPECS,
};

/// See [`adaptload`].
pub static ADAPTLOAD: ModelSpec = ModelSpec {
    name: "adaptload",
    summary: "network served packet by packet, a disk, memory cache of whole files, and a server for dynamic requests",
    source: "Zhang et al. (AdaptLoad), sections 5 and 7.1",
    params: adaptload::AdaptLoadModelParams::SPECS,
};

/// See [`fifo`].
pub static FIFO: ModelSpec = ModelSpec {
    name: "fifo",
    summary: "one server with a queue, service times from the trace or exponential",
    source: "textbook G/M/1",
    params: fifo::FifoParams::SPECS,
};
