//! Comparison with files under `tests/golden`; `UPDATE_GOLDEN=1 cargo test -p plimsoll-report` writes them anew.

use std::{fs, path::Path};

pub(crate) fn assert_golden(name: &str, actual: &str) {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")).join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, actual).expect("the golden file can be written");
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let first_difference = expected.lines().zip(actual.lines()).position(|(left, right)| left != right);
    assert!(
        expected == actual,
        "{name} differs (first different line: {first_difference:?}); UPDATE_GOLDEN=1 accepts this:\n{actual}"
    );
}
