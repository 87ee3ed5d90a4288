//! Certificates and TLS settings of a front-end: read from files, checked, and chosen by the name that a client asks for.
//!
//! TLS itself is rustls's. What is here says which certificate a client gets, which clients are let in, and what is wrong with the
//! files that a user names. Nothing here knows a socket or a clock: who asks whether a certificate has ended gives the time.

mod authorities;
mod certificate;
mod client_config;
mod client_identity;
mod file_error;
#[doc(hidden)]
pub mod fuzz;
mod inspect;
mod pem;
mod server_config;
mod server_name;
mod server_names;
mod server_verifier;

pub use authorities::TrustedAuthorities;
pub use certificate::{Certificate, CertificateFiles};
pub use client_config::{ClientTls, ServerCheck};
pub use client_identity::client_fields;
pub use file_error::TlsFileError;
pub use server_config::{ClientCheck, OldestTls, ServerSettings, TicketKeys};
pub use server_name::is_server_name;
