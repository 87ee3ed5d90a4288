//! Fuzz targets: configuration files.

use crate::Config;

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[("config_file", file)];

/// A file is good, and then its effective values can be shown; or each of its errors says where and what. Files that it names are not
/// read: what follows such a name is not looked at here.
fn file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if text.contains("file") {
        return;
    }
    match Config::parse(text, "fuzzed.toml") {
        Ok(config) => {
            assert!(config.to_json().is_object());
            assert!(Config::diff(&config, &config).is_empty(), "nothing differs from itself");
        }
        Err(errors) => {
            let shown = errors.to_string();
            assert!(shown.contains("fuzzed.toml"), "{shown}");
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_and_mutations_of_it() {
        let corpus = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
        plimsoll_testkit::replay_corpus(super::TARGETS, corpus, 200);
    }
}
