//! Advice from an access log: which policy, on how many back-ends, with how much memory, how sure that is, and where it would be wrong.
//!
//! All of it comes from runs of the simulator on the log ([`advise`]). Verdict, words, configuration and report are functions of their
//! results.

mod advice;
mod config_text;
mod contestants;
mod error;
mod facts;
mod finals;
#[cfg(test)]
mod golden;
mod inquiry;
mod intervals;
mod json;
mod levers;
mod memory;
mod notes;
mod plan;
mod question;
mod report;
mod sample;
mod sizing;
mod stress;
mod tables;
mod verdict;
mod words;

pub use advice::{Advice, advise, advise_requests};
pub use config_text::{haproxy_lines, nginx_lines, plimsoll_toml};
pub use contestants::{BASELINE, CONTESTANTS, Contestant, PolicyKind};
pub use error::AdviseError;
pub use facts::{LEAST_REQUESTS, LogFacts};
pub use finals::FinalFigures;
pub use inquiry::AdviseTarget;
pub use intervals::{BlockTimes, GainInterval, gain};
pub use json::advice_json;
pub use levers::AdviseLever;
pub use memory::MemoryStep;
pub use question::{AdviseQuestion, TargetLoad, USUAL_MOST_REQUESTS, USUAL_NETWORK_BITS_PER_S, USUAL_P99_S};
pub use report::advice_report;
pub use sizing::{MOST_UTILIZATION, PolicySize};
pub use stress::{StressMeasure, StressOutcome};
pub use tables::{AdviceTable, advice_tables};
pub use verdict::{AdviseVerdict, PolicyGain, VerdictReason, WORTH, policy_gain, verdict};
pub use words::advice_words;
