//! The origin: an HTTP/1.1 file server with a whole-file memory cache.
//!
//! It answers behind the front-end in demos, tests and studies, and in the agent of a back-end that has files to serve.
//! Its memory cache uses the replacement policies of the simulator (`plimsoll-cache`). It can be slowed down to the
//! disk and the CPU of the LARD study (Pai et al., ASPLOS 1998, section 3.1). It serves files, or generated contents
//! with the targets and sizes of a synthetic workload. Its answers follow RFC 9110 and RFC 9112.
//!
//! ```no_run
//! use plimsoll_origin::{Origin, OriginConfig, Source};
//!
//! # async fn example() -> Result<(), plimsoll_origin::OriginError> {
//! let config = OriginConfig::new(Source::files("public_html", false)?);
//! let origin = Origin::bind(config, "127.0.0.1:0".parse().expect("an address")).await?;
//! println!("listening on http://{}", origin.local_addr());
//! let handle = origin.handle();
//! origin.serve(std::future::pending()).await;
//! println!("{:?}", handle.stats());
//! # Ok(())
//! # }
//! ```
//!
//! For each request, `respond` finds the object in the [`Source`], evaluates preconditions (`conditional`) and ranges
//! (`range`), has the `store` fetch the bytes, and makes a `body` of them. `emulate` makes it wait for the emulated disk
//! and CPU. `connection` limits what a client may do.

mod body;
mod conditional;
mod config;
mod connection;
mod emulate;
mod error;
mod files;
mod found;
#[doc(hidden)]
pub mod fuzz;
mod numbers;
mod object;
mod own_memory;
mod peers;
mod range;
mod respond;
mod serve;
mod service;
mod source;
mod stats;
mod store;
pub mod synthetic;

pub use body::OriginBody;
pub use config::OriginConfig;
pub use emulate::{CpuModel, DiskModel, Resource};
pub use error::OriginError;
pub use object::ContentError;
pub use peers::{OwnDocument, OwnMemory, PeerFetch, PeerMemory, SharedDocument};
pub use serve::{Origin, OriginHandle};
pub use service::OriginService;
pub use source::Source;
pub use stats::OriginStats;
