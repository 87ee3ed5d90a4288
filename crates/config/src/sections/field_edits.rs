//! Changes of fields of messages.

use std::fmt;

use crate::declare::KeyForm;
use crate::reader::{ConfigReader, DeclaredTable, ListForm, Wrong, quoted};
use crate::value::{ConfigValue, is_token_char};

/// A change of a message's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldEdit {
    /// In place of those of this name.
    Set(String, String),
    /// Beside those of this name.
    Add(String, String),
    /// Those of this name go.
    Remove(String),
}

impl FieldEdit {
    /// The name of the field.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Set(name, _) | Self::Add(name, _) | Self::Remove(name) => name,
        }
    }
}

impl fmt::Display for FieldEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(name, value) => write!(f, "set {name}: {value}"),
            Self::Add(name, value) => write!(f, "add {name}: {value}"),
            Self::Remove(name) => write!(f, "remove {name}"),
        }
    }
}

/// Changes, in their order.
pub(super) struct Edits;

const EDIT_REMEDY: &str = "write \"set NAME: VALUE\", \"add NAME: VALUE\" or \"remove NAME\"";

/// Fields that say where a message ends or belong to one connection, and those that the front-end writes itself.
const NOT_EDITED: [&str; 18] = [
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "max-forwards",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "plimsoll-placed-by",
];

impl KeyForm<Vec<FieldEdit>> for Edits {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        key: &str,
    ) -> Option<Vec<FieldEdit>> {
        let form = ListForm { most: 32, fewer: "change fewer fields", remedy: EDIT_REMEDY };
        Some(reader.list(section, key, form, edit))
    }

    fn show(edits: &Vec<FieldEdit>) -> Option<ConfigValue> {
        Some(ConfigValue::List(edits.iter().map(ToString::to_string).collect()))
    }
}

fn edit(text: &str) -> Result<FieldEdit, Wrong> {
    let wrong = |what: String| (what, EDIT_REMEDY.to_owned());
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim();
    let edit = match (word, rest.split_once(':')) {
        ("remove", None) => FieldEdit::Remove(field(rest, "").map_err(wrong)?.0),
        ("set" | "add", Some((name, value))) => {
            let (name, value) = field(name, value.trim()).map_err(wrong)?;
            if word == "set" { FieldEdit::Set(name, value) } else { FieldEdit::Add(name, value) }
        }
        _ => return Err(wrong(format!("{} is no change of a field", quoted(text)))),
    };
    // Some servers take underscores for dashes.
    let dashed = edit.name().to_ascii_lowercase().replace('_', "-");
    if NOT_EDITED.contains(&&*dashed) {
        let what = format!("{} says how a message travels, or is written by the front-end", edit.name());
        return Err((what, "change another field".to_owned()));
    }
    Ok(edit)
}

/// A field's name and value.
pub(super) fn field(name: &str, value: &str) -> Result<(String, String), String> {
    if name.is_empty() || name.len() > 256 || !name.chars().all(is_token_char) {
        return Err(format!("{} is no name of a field", quoted(name)));
    }
    if value.len() > 4096 || value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(format!("the value of {name} is no value of a field"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_fields() {
        assert_eq!(edit("set X-A:  b: c "), Ok(FieldEdit::Set("X-A".into(), "b: c".into())));
        assert_eq!(edit("remove Server"), Ok(FieldEdit::Remove("Server".into())));
        for bad in
            ["", "set", "set X-A", "remove X-A: b", "remove", "del X", "set X A: b", "add A: b\r\nC: d"]
        {
            assert!(edit(bad).is_err(), "{bad:?}");
        }
        for own in
            ["set Host: a", "add Transfer_Encoding: chunked", "remove connection", "set Content-Length: 3"]
        {
            assert!(edit(own).unwrap_err().0.contains("says how a message travels"), "{own}");
        }
    }
}
