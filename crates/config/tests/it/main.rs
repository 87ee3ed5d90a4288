//! Integration tests of the configuration.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bad_connections;
mod bad_resilience;
mod bad_routes;
mod bad_sockets;
mod defaults;
mod diff;
mod documents;
mod errors;
mod files;
mod mutations;

/// The least that is a configuration.
pub(crate) const LEAST: &str =
    "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"10.0.0.1:80\"\n";

/// The example.
pub(crate) const EXAMPLE: &str = include_str!("../../../../examples/plimsoll.toml");

/// Parses what has to be right.
pub(crate) fn parse(text: &str) -> plimsoll_config::Config {
    plimsoll_config::Config::parse(text, "plimsoll.toml").unwrap_or_else(|e| panic!("{text}\n{e}"))
}

/// The messages about what has to be wrong.
pub(crate) fn wrong(text: &str) -> plimsoll_config::ConfigErrors {
    plimsoll_config::Config::parse(text, "plimsoll.toml").err().unwrap_or_else(|| panic!("accepted: {text}"))
}
