//! Fuzz targets: class files, and the requests that are told apart by them.

use crate::ClassTable;

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[("class_file", file), ("class_uri", uri)];

/// A class file is wrong, or its table reads back equal.
fn file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(read) = ClassTable::read(text) else { return };
    let written = read.table.write();
    let again = ClassTable::read(&written).expect("what was written can be read");
    assert_eq!(again.table.write(), written);
    for target in [&b"/"[..], b"/a/b?c=d", bytes] {
        let class = read.table.class_of(b"GET", target);
        assert!(class == 0 || read.table.class(class).is_some());
    }
}

const TABLE: &str = r#"
[[class]]
name = "search"
cpu_s = 0.012
[[class]]
name = "image"
cpu_s = 0.001
[[pattern]]
class = "search"
path = "/shop/search"
parameters = { sort = "price", page = "*" }
[[pattern]]
class = "image"
path = "/img/**"
application = "*.gif"
[[pattern]]
class = "search"
path = "/shop/*/graphql"
parameters = { operationName = "Search" }
"#;

/// Any target of a request has a class, or none, which is 0.
fn uri(bytes: &[u8]) {
    let table = ClassTable::read(TABLE).expect("the table is good").table;
    let end = bytes.iter().position(|&b| b == b'\n').unwrap_or(bytes.len());
    let operation = bytes.get(end + 1..);
    let class = table.class_of_named(b"POST", &bytes[..end], operation);
    assert_eq!(table.class_of_named(b"POST", &bytes[..end], operation), class);
    assert!(class == 0 || table.class(class).is_some());
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_and_mutations_of_it() {
        let corpus = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
        plimsoll_testkit::replay_corpus(super::TARGETS, corpus, 200);
    }
}
