//! The client library: distributes accesses to a service over its replicas, with no proxy in between.
//!
//! - [`ServiceClient`] chooses a back-end for each access by any registered policy ([`ServiceClient::choose`]), or calls one and
//!   tries another where that failed ([`ServiceClient::call`]), within a [`RetryBudget`], with [`Hedging`] where it is wanted.
//! - Loads come from the client's own count, from inquiries to agents ([`LoadPolling`]), and from what responses tell
//!   ([`ChosenBackend::tell_load`]).
//! - [`PlimsollBalance`] is the same choice as a `tower::Service` over anything that discovers services.
//! - [`WorkerPool`] is a server's side: a bounded queue and threads, which reports its load; [`LoadResponder`] answers inquiries
//!   where no agent runs.
//!
//! All decisions are made by `plimsoll_policy::Core`, as in the simulator and the front-end. `docs/client.md` is the guide.

mod access;
mod ask_table;
mod asker;
mod attempt;
mod balance;
mod budget;
mod builder;
mod call;
mod chosen;
mod client;
mod config_text;
mod endpoint;
mod error;
mod group;
mod hedging;
mod load_responder;
mod state;
mod worker_pool;

pub use access::ServiceAccess;
pub use asker::{AskCounts, LoadPolling};
pub use attempt::{AccessEnd, ErrorClass, HasErrorClass};
pub use balance::{BalanceFuture, NoReadyBackend, PlimsollBalance, PlimsollLayer};
pub use budget::{CallCounts, RetryBudget};
pub use builder::ClientBuilder;
pub use chosen::ChosenBackend;
pub use client::{CallRules, ServiceClient};
pub use config_text::read_services;
pub use endpoint::Endpoint;
pub use error::{CallError, ChooseError, ClientError};
pub use hedging::Hedging;
pub use load_responder::LoadResponder;
pub use worker_pool::{PoolSizes, WorkerPool, WorkerPoolError};

pub use plimsoll_wire::Key;
pub use plimsoll_wire::load::LoadGauge;
