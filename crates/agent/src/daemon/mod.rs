//! The agent: takes clients' connections over from front-ends and has them answered here.
//!
//! What front-end and agent tell one another, and in which order, stands in `docs/mechanisms/handoff.md`.
//!
//! ```no_run
//! use plimsoll_agent::daemon::{Agent, AgentConfig, FrontEnd, ServeConfig};
//! use plimsoll_origin::{OriginConfig, Source};
//! use plimsoll_wire::Key;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let serve = ServeConfig::Origin(OriginConfig::new(Source::files("public_html", false)?).into());
//! let key = Key::load("handoff.key".as_ref())?;
//! let mut config = AgentConfig::new("b1", "10.0.0.21:7400".parse()?, key, serve);
//! config.front_ends = vec![FrontEnd { name: "front-end".into(), address: "10.0.0.11".parse()? }];
//! config.interface = "eth0".into();
//! config.vips = vec!["10.0.0.10:80".parse()?];
//! let agent = Agent::start(config)?;
//! // …
//! println!("{:?}", agent.stop()?);
//! # Ok(())
//! # }
//! ```
//!
//! One thread ([`Agent`]'s control) accepts links, reads the packets that the guard holds, and sweeps what is over. The
//! others serve: each link belongs to one of them, with the connections that come by it. `talk` reads the messages of a
//! `link`; `take` restores a connection; `drive` leads it from request to request, `placing` asks the front-end where each one
//! belongs, and `outcome` reports each answer. `serve` answers, or a server does by way of `shim`. `client` is the socket;
//! `connection` is what others may ask of it; `flows` knows where each flow is, and `queue` what the kernel still has to send.

mod accepting;
mod active;
mod agent;
mod caching;
mod client;
mod clone;
mod closing;
mod config;
mod connection;
mod drive;
mod flows;
pub(crate) mod fuzzed;
mod greet;
mod head;
mod link;
mod lost;
mod noise;
mod opening;
mod outcome;
mod placing;
mod queue;
mod reports;
mod serve;
mod setup;
mod shared;
mod shim;
mod spawn;
mod succession;
mod take;
mod talk;
mod threads;

pub use agent::{Agent, AgentHandle, AgentStats, PreparedAgent};
pub use caching::{CacheCounts, CacheLocation, CacheNode, CacheNodeConfig, CachePeer, PreparedCacheNode};
pub use clone::{CLONE_TIMES, CloneConfig, CloneNode, ClonePeer, CloneStats, NodeLoads, PreparedCloneNode};
pub use config::{AgentConfig, AgentError, FrontEnd, ServeConfig};
