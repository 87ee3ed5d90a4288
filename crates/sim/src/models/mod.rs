//! The back-end models, one file each, and the registry that command line and documentation read. A new model is one file
//! and one line in [`MODELS`].

use crate::model_spec::ModelSpec;

pub mod adaptload;
mod alarm;
pub mod apache;
pub mod fifo;
mod global_memory;
pub mod lard;
mod lard_backend;
mod lard_costs;
mod lard_specs;
mod packet_ring;
mod processor_sharing;
mod read_queue;
pub mod web_nodes;

/// Every model, in the order in which help and documentation list them.
pub static MODELS: &[&ModelSpec] = &[
    &lard::SPEC,
    &lard::GLOBAL_MEMORY_SPEC,
    &adaptload::SPEC,
    &fifo::SPEC,
    &apache::SPEC,
    &web_nodes::NFS_SPEC,
    &web_nodes::COOPERATIVE_SPEC,
    &web_nodes::CLONING_SPEC,
];
