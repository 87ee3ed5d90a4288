//! The keys that stand before the first table.

use crate::declare::{KeyForm, keys, words};
use crate::keys::Default::{Is, Words};
use crate::keys::KeyKind::{Choice, Integer};
use crate::reader::{ConfigReader, DeclaredTable};
use crate::value::ConfigValue;

keys! {
    /// These stand before the first table.
    [""] pub(crate) struct Root {
        /// Threads that serve clients.
        "workers" workers: usize =
            Words("the number of CPUs available"), Integer { min: 1, max: 1024 } => Threads, restart;
        /// How a chosen back-end gets the request: `proxy`, the front-end passes request and response on; `handoff`, the
        /// back-end gets the client's connection and answers the client directly.
        "mechanism" mechanism: MechanismKind = Is("proxy"), Choice(MechanismKind::WORDS), restart;
    }
}

words! {
    /// How a chosen back-end gets the request.
    pub enum MechanismKind {
        Proxy = "proxy" / "The front-end passes request and response on.",
        Handoff = "handoff" / "The back-end gets the client's connection and answers the client directly.",
    }
}

/// A number of threads; by default one per CPU.
struct Threads;

impl KeyForm<usize> for Threads {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<usize> {
        let Some(found) = section.found(name) else {
            return Some(std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
        };
        Some(reader.integer_of(&found).and_then(|n| usize::try_from(n).ok()).unwrap_or(1))
    }

    fn show(threads: &usize) -> Option<ConfigValue> {
        Some(ConfigValue::Integer(*threads as u64))
    }
}
