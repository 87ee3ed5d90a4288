//! Request-distribution policies: pure code that hears of requests, completions, membership and time, and
//! answers which back-end serves a request.
//!
//! Nothing here reads a clock, does I/O, spawns a thread or draws unseeded randomness. So the simulator, the
//! live front-end and the replay of a decision log can drive the same policy objects.

mod capability;
mod choice;
mod cluster;
mod core;
mod data_histogram;
mod decision;
pub mod estimator;
mod fading_ratio;
mod fresh_loads;
mod latency_by_load;
mod load_use;
mod lru_map;
mod lru_order;
mod min_blocks;
pub mod params;
mod partition;
mod place_table;
pub mod policies;
mod policy;
mod policy_spec;
mod probe_pool;
mod reads_under_way;
mod registry;
mod request;
mod rng;
mod saved;
mod share_turn;
mod shortest_queue;
mod size_based;
mod size_bins;
mod size_intervals;
mod slowness;
mod sniffed;
mod thresholds;
mod time;
mod turn;
mod two_choices;
pub mod units;
mod waiting_model;
mod weight;
mod weighted_turn;
mod work_by_cost;

pub use capability::{
    BadState, Polls, Probes, SavesState, SharesState, ShowsState, Sniffs, TakesMetrics, TakesReports,
    least_polled,
};
pub use choice::{ChoiceError, PolicyChoice};
pub use cluster::{BackendId, Change, Cluster, ClusterView, Health};
pub use core::{
    AdmissionControl, AdmissionLimit, Assigned, ClusterFull, Core, Ending, Inquiries, OfferOptions, Offered,
    Phase, Rejection, Started, Tried, WaitingRequest, Witness, random_candidates,
};
pub use data_histogram::DataHistogram;
pub use decision::{
    BackendList, Candidates, Completion, Decision, LoadReport, PolicyTable, PollAnswer, assign_or_reject,
};
pub use fresh_loads::FreshLoads;
pub use latency_by_load::LatencyByLoad;
pub use load_use::LoadUse;
pub use lru_map::{CacheLine, LruMap};
pub use partition::partition_of;
pub use policies::REGISTRY;
pub use policy::Capabilities;
pub use policy::Policy;
pub use policy_spec::{BuildContext, BuildError, Built, PolicySpec};
pub use registry::{RegisterError, build, find, register, registered, sticky_around};
pub use request::{Features, Kind, Outcome, Request, TargetId};
pub use rng::{Exponentials, Rng, mix};
pub use size_based::{SizeBased, Sizing};
pub use size_bins::SizeBins;
pub use size_intervals::{Boundary, BoundaryChange, Intervals};
pub use sniffed::{HostMetrics, SniffedKind, SniffedRequest};
pub use thresholds::Thresholds;
pub use time::{Nanos, Time};
pub use weight::{RelativeLoad, Weight};
pub use weighted_turn::WeightedTurn;
