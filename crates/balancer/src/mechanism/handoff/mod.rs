//! The mechanism `handoff`: a back-end gets the client's connection itself, and answers the client directly.
//!
//! `carry` decides for each request whether its connection goes, `send` hands the connection to an agent, `messages` handles
//! what agents say, `adopt` takes over what an agent still has, and `recover` takes connections back or resets their clients. Each worker has its own links and its own
//! connections ([`Handoffs`]); what the workers share is in `system`.

mod active;
mod adopt;
mod carry;
mod earlier_flows;
mod failover;
mod handoffs;
mod last_look;
mod leaving;
mod leftovers;
mod link;
mod link_task;
mod lost_client;
mod messages;
mod metrics;
mod numbers;
mod offers;
mod orphan;
mod payoff;
mod recover;
mod registry;
mod relief;
mod repeats;
mod role;
mod send;
mod shared_role;
mod stuck;
mod sweep;
mod system;
mod table;
mod times;

pub(crate) use handoffs::Handoffs;
