//! Fuzz targets: what clients and servers send by an agent.

use crate::{daemon, load};

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[
    ("agent_request", daemon::fuzzed::request),
    ("agent_response", daemon::fuzzed::response),
    ("agent_chunks", daemon::fuzzed::chunks),
    ("agent_scoreboard", load::fuzzed::scoreboard),
];

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_and_mutations_of_it() {
        let corpus = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
        plimsoll_testkit::replay_corpus(super::TARGETS, corpus, 200);
    }
}
