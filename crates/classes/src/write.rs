//! From a table to the text of a class file.

use std::fmt::Write as _;

use crate::pattern::{ApplicationPattern, ClassPattern};
use crate::table::ClassTable;
use crate::uri::encode;

impl ClassTable {
    /// The table as the text of a class file, which [`ClassTable::read`] reads back to an equal table.
    #[must_use]
    pub fn write(&self) -> String {
        let mut out = String::new();
        for class in self.classes() {
            // Writing into a string cannot fail.
            let _ = write!(
                out,
                "[[class]]\nname = {}\ncpu_s = {:?}\ndisk_s = {:?}\nsize_bytes = {:?}\ndeviation_s = {:?}\nrequests = {}\n\n",
                quoted(&class.name),
                class.cpu_s,
                class.disk_s,
                class.size_bytes,
                class.deviation_s,
                class.requests,
            );
        }
        for merged in self.merged() {
            let same_as = self.class(merged.class).map_or("", |class| &class.name);
            let _ =
                write!(out, "[[class]]\nname = {}\nsame_as = {}\n\n", quoted(&merged.name), quoted(same_as));
        }
        for pattern in self.patterns() {
            let name = self.class(pattern.class).map_or("", |class| &class.name);
            let _ = write!(out, "[[pattern]]\nclass = {}\n{}\n", quoted(name), conditions(pattern));
        }
        let end = out.trim_end().len();
        out.truncate(end);
        if !out.is_empty() {
            out.push('\n');
        }
        out
    }
}

impl ClassPattern {
    /// What it matches, as one line: `GET /shop/** application=search sort=price page=*`.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        if let Some(method) = &self.method {
            out += &String::from_utf8_lossy(method);
            out.push(' ');
        }
        out += &self.path.text();
        if let Some(application) = &self.application {
            out += &format!(" application={}", application_text(application));
        }
        for (name, value) in &self.parameters {
            out += &format!(" {}={}", encoded(name), value_text(value.as_deref()));
        }
        out
    }
}

fn conditions(pattern: &ClassPattern) -> String {
    let mut out = format!("path = {}\n", quoted(&pattern.path.text()));
    if let Some(application) = &pattern.application {
        out += &format!("application = {}\n", quoted(&application_text(application)));
    }
    if let Some(method) = &pattern.method {
        out += &format!("method = {}\n", quoted(&String::from_utf8_lossy(method)));
    }
    if !pattern.parameters.is_empty() {
        let each = |(name, value): (&Vec<u8>, &Option<Vec<u8>>)| {
            format!("{} = {}", key(&encoded(name)), quoted(&value_text(value.as_deref())))
        };
        let list: Vec<String> = pattern.parameters.iter().map(each).collect();
        out += &format!("parameters = {{ {} }}\n", list.join(", "));
    }
    out
}

fn application_text(application: &ApplicationPattern) -> String {
    match application {
        ApplicationPattern::Named(name) => encoded(name),
        ApplicationPattern::Ending(name) => format!("*.{}", encoded(name)),
    }
}

fn value_text(value: Option<&[u8]>) -> String {
    value.map_or_else(|| "*".to_owned(), encoded)
}

fn encoded(bytes: &[u8]) -> String {
    let mut out = String::new();
    encode(bytes, &mut out);
    out
}

/// A key of TOML, in quotes where it needs them.
fn key(text: &str) -> String {
    let bare = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if bare { text.to_owned() } else { quoted(text) }
}

/// A text of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\u{:04X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
