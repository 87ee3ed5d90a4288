//! Checks back-ends behind Unix sockets against their other keys and the rest of the file.

use std::ops::Range;

use crate::reader::{ConfigReader, DeclaredTable};
use crate::sections::{BackendConfig, LoadSource, MechanismKind};

/// The keys of a back-end behind a Unix socket make sense with it.
pub(super) fn check_keys(reader: &mut ConfigReader<'_>, section: &DeclaredTable<'_>, config: &BackendConfig) {
    if config.at.socket().is_none() {
        return;
    }
    let is_there = |key: &str| section.found(key).is_some();
    let senseless = [
        (
            "resolve",
            config.resolve.is_some(),
            "has no effect: a Unix socket has no name that could be looked up",
        ),
        (
            "tls",
            config.tls,
            "TLS is not spoken over Unix sockets: what goes over them does not leave this machine",
        ),
        ("tls_name", is_there("tls_name"), "TLS is not spoken over Unix sockets"),
        ("agent", is_there("agent"), "no connection can be handed off to a back-end behind a Unix socket"),
        (
            "load_port",
            // Written out, the default says nothing.
            section.found("load_port").is_some_and(|found| !found.is_default()),
            "a Unix socket has no IP address at which an agent could tell its load",
        ),
    ];
    for (key, _, what) in senseless.into_iter().filter(|(_, is_set, _)| *is_set) {
        let wrong = (what.to_owned(), "remove it".to_owned());
        reader.wrong(&section.key(key), section.span_of(key), wrong);
    }
    if !is_there("name") && !config.name.chars().all(is_nameable) {
        let what = "is needed: the path has characters that names may not have".to_owned();
        let remedy = "write a `name` of 1 to 64 letters, digits, `-`, `_` and `.`".to_owned();
        reader.wrong(&section.key("name"), section.span_of("address"), (what, remedy));
    }
}

/// Whether the path of a socket may have this where it is the back-end's name: logs, metrics and the admin API's paths show it as it is.
fn is_nameable(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./:@+~".contains(c)
}

/// The rest of the file needs no IP address of a back-end behind a Unix socket. `backends`: each with the key of its address and the place of
/// that in the file; `loads`: where loads come from.
pub(super) fn check_beside<'b>(
    reader: &mut ConfigReader<'_>,
    backends: impl Iterator<Item = (&'b BackendConfig, String, Range<usize>)>,
    mechanism: MechanismKind,
    loads: Option<LoadSource>,
) {
    for (config, key, span) in backends.filter(|(config, ..)| config.at.socket().is_some()) {
        let (what, remedy) = match loads {
            _ if mechanism == MechanismKind::Direct => (
                "no packets can be led to a Unix socket".to_owned(),
                "write `mechanism = \"proxy\"`, or the back-end's host and port",
            ),
            Some(from @ (LoadSource::Poll | LoadSource::Broadcast)) if config.pool.is_none() => (
                format!(
                    "a Unix socket has no IP address at which an agent could tell its load, and `load_information.from` is \
                     \"{from}\""
                ),
                "write `from = \"header\"` or `\"own\"` in [load_information], or the back-end's host and port",
            ),
            _ => continue,
        };
        reader.wrong(&key, span, (what, remedy.to_owned()));
    }
}
