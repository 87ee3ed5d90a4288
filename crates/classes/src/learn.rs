//! Learns classes and their costs from the requests of an access log.
//!
//! A [`ClassLearner`] is given the requests in any order. From begins and durations it reconstructs how many requests each
//! back-end had at each moment, and takes from every duration what was waiting for others: what is left is the *demand*
//! of the request. Requests are grouped by path, method and parameters as far as these explain the demand; groups of similar
//! demand become classes.
//!
//! Memory is bounded by the constants of [`bounds`]; what was merged or dropped for that is in [`LearnReport::dropped`].

pub mod bounds;
mod capture;
mod coarse;
mod collapse;
mod combinations;
mod demand;
mod demand_method;
mod discipline;
mod groups;
mod learned;
mod log_traits;
mod merge;
mod path_tree;
mod patterns;
mod queueing;
mod rough_groups;
mod samples;
mod slowness;
mod statistic;

pub use capture::{ClassLearner, LearnError, LearnOptions, ObservedRequest};
pub use demand_method::DemandMethod;
pub use discipline::QueueDiscipline;
pub use learned::{LearnReport, LearnedClass, LearnedClasses, SizeFit};

#[cfg(test)]
mod tests;
