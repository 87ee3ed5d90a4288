//! The deterministic core reads no clock, does no input or output and starts no thread: its sources name none of the
//! modules for it.

use super::Violation;
use super::tree::Tree;
use super::words::line_of;

const RULE: &str = "core-sources";
const CORE: &[&str] = &["crates/policy/src/", "crates/cache/src/", "crates/sim/src/"];
const FORBIDDEN: &[&str] =
    &["std::time::Instant", "std::time::SystemTime", "std::fs", "std::net", "std::thread", "getrandom"];

/// Checks all sources of the core, unit tests included.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.texts() {
        if !path.ends_with(".rs") || !CORE.iter().any(|directory| path.starts_with(directory)) {
            continue;
        }
        let code = without_comments(text);
        for (offset, name) in paths(&code) {
            if let Some(forbidden) = FORBIDDEN.iter().find(|f| starts_with_path(&name, f)) {
                let remedy = format!(
                    "uses {forbidden}; the core is a function of its arguments, so hand the value in"
                );
                violations.push(Violation::new(path, line_of(&code, offset), RULE, remedy));
            }
        }
    }
    violations
}

/// The code with every comment's text replaced by spaces, so that offsets stay.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let end = line.find("//").unwrap_or(line.len());
        code.push_str(&line[..end]);
        code.extend(line[end..].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
    }
    code
}

fn starts_with_path(name: &str, forbidden: &str) -> bool {
    name.strip_prefix(forbidden).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Every `a::b::c` in the code with its offset, those in the braces of a `use` with what stands before the braces.
fn paths(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // Prefixes of the open braces; `None` for a brace that does not belong to a path.
    let mut open: Vec<Option<String>> = Vec::new();
    let mut path = String::new();
    let mut start = 0;
    for (offset, c) in code.char_indices().chain([(code.len(), '\n')]) {
        if c.is_alphanumeric() || c == '_' || c == ':' {
            if path.is_empty() {
                start = offset;
            }
            path.push(c);
            continue;
        }
        if c.is_whitespace() && path.ends_with("::") {
            continue;
        }
        let prefix = open.last().cloned().flatten().unwrap_or_default();
        if c == '{' && path.ends_with("::") {
            open.push(Some(prefix + &path));
        } else {
            if !path.is_empty() {
                found.push((start, prefix + path.trim_start_matches("::")));
            }
            match c {
                '{' => open.push(None),
                '}' => drop(open.pop()),
                _ => {}
            }
        }
        path.clear();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn lines(code: &str) -> Vec<usize> {
        let violations = check(&Tree::of(&[("crates/sim/src/a/b.rs", code)]));
        violations.iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn every_forbidden_name_is_found() {
        for name in FORBIDDEN {
            assert_eq!(lines(&format!("\nuse {name};\n")), [2], "{name}");
            assert_eq!(lines(&format!("\nfn f() {{ let x = {name}::y(); }}")), [2], "{name}");
        }
    }

    #[test]
    fn names_in_braces_are_found() {
        assert_eq!(
            lines("use std::{\n    fmt,\n    fs::File,\n    time::{Duration, Instant},\n};\n"),
            [3, 4]
        );
        assert_eq!(lines("use std::{fmt, io};\nfn f() { fs::g(); }\n"), NONE);
        assert_eq!(lines("use ::std::net;\nuse std::\n    thread::spawn;"), [1, 2]);
    }

    #[test]
    fn the_like_of_it_is_allowed() {
        assert_eq!(lines("use std::time::Duration; // not std::fs\n/// std::net\nuse std::fsx;"), NONE);
        assert_eq!(check(&Tree::of(&[("crates/cli/src/main.rs", "use std::fs;")])), []);
    }
}
