//! Finding words and Rust's test code in text.

/// Whether `text` holds `word` with no letter, digit or underscore next to it.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

/// Line from 1 of the byte at `offset`.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// Line from 1 of the first line that contains `part`; 1 if none does.
pub(super) fn line_with(text: &str, part: &str) -> usize {
    text.find(part).map_or(1, |offset| line_of(text, offset))
}

/// Whether `path` is a file of tests as a whole.
pub(super) fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| part == "tests") || path.ends_with("/tests.rs")
}

/// The lines of a Rust file, numbered from 1, up to its unit tests, which by convention come last.
pub(super) fn lines_before_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut lines = text.lines().peekable();
    let mut number = 0;
    std::iter::from_fn(move || {
        let line = lines.next()?;
        let tests = line == "#[cfg(test)]" && lines.peek().is_some_and(|next| next.starts_with("mod "));
        number += 1;
        (!tests).then_some((number, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole() {
        assert!(has_word("a lru::SPEC,", "lru::SPEC"));
        assert!(!has_word("a xlru::SPEC,", "lru::SPEC"));
        assert!(!has_word("lru::SPECIAL lru::SPEC_", "lru::SPEC"));
        assert!(has_word("lru::SPECIAL lru::SPEC", "lru::SPEC"));
    }

    #[test]
    fn lines_count_from_one() {
        assert_eq!(line_of("a\nb\nc", 0), 1);
        assert_eq!(line_with("a\nb\nc", "c"), 3);
        assert_eq!(line_with("a\nb\nc", "d"), 1);
    }

    #[test]
    fn unit_tests_are_left_out() {
        let text = "a\n#[cfg(test)]\nfn helper() {}\n#[cfg(test)]\nmod tests {\n}\n";
        let lines: Vec<_> = lines_before_tests(text).map(|(number, _)| number).collect();
        assert_eq!(lines, [1, 2, 3]);
        assert!(is_test_file("crates/a/tests/it/main.rs") && is_test_file("crates/a/src/b/tests.rs"));
        assert!(!is_test_file("crates/a/src/attests.rs"));
    }
}
