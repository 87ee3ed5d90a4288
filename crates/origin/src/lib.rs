//! The origin: an HTTP/1.1 file server with a whole-file memory cache.
//!
//! It stands behind the front-end in demos, tests and studies, and beside back-ends that have files to serve. Its memory
//! cache follows the very policies that the simulator runs (`plimsoll-cache`), its disk and CPU can be slowed down to
//! those of the LARD study (Pai et al., ASPLOS 1998, section 3.1), and its contents may be generated, with the targets
//! and sizes of a synthetic workload. What it serves follows RFC 9110 and RFC 9112.
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
//! A request goes this way: `respond` finds the object in the [`Source`], weighs the preconditions (`conditional`) and
//! ranges (`range`), has the `store` fetch the bytes, and makes a `body` of them; `emulate` says how long each step
//! takes; `connection` bounds what a client may do.

mod body;
mod conditional;
mod config;
mod connection;
mod emulate;
mod error;
mod files;
mod found;
mod numbers;
mod object;
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
pub use emulate::{CpuModel, DiskModel};
pub use error::OriginError;
pub use object::ContentError;
pub use serve::{Origin, OriginHandle};
pub use service::OriginService;
pub use source::Source;
pub use stats::OriginStats;
