//! Finds the tables of a file.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::keys::SectionSpec;
use crate::reader::{ConfigReader, DeclaredTable};
use crate::sections::{section, tables_below};

/// A table that may be left out.
pub(super) fn if_there<'a, T>(
    reader: &mut ConfigReader<'a>,
    section: &DeclaredTable<'a>,
    read: impl Fn(&mut ConfigReader<'a>, &DeclaredTable<'a>) -> Option<T>,
) -> Option<T> {
    section.table.and_then(|_| read(reader, section))
}

/// A function that reads a table.
type ReadTable<'a, T> = fn(&mut ConfigReader<'a>, &DeclaredTable<'a>) -> Option<T>;

/// Reads the table `name`, which may be absent.
pub(super) fn part<'a, T>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    read: ReadTable<'a, T>,
    name: &'static str,
) -> Option<T> {
    let section = one(reader, root, name)?;
    read(reader, &section)
}

/// Reads a table that switches something on by being present.
pub(super) fn switched<'a, T>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    read: ReadTable<'a, T>,
    name: &'static str,
) -> Option<T> {
    let section = one(reader, root, name)?;
    section.table.and_then(|_| read(reader, &section))
}

/// The table `name`, or an empty one when it is absent or of the wrong type.
pub(super) fn one<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    name: &'static str,
) -> Option<DeclaredTable<'a>> {
    named(reader, Some(root), name, name.to_owned())
}

/// The same of a table below another one.
pub(super) fn one_within<'a>(
    reader: &mut ConfigReader<'a>,
    within: &DeclaredTable<'a>,
    name: &'static str,
) -> Option<DeclaredTable<'a>> {
    named(reader, within.table, name, within.key(name))
}

fn named<'a>(
    reader: &mut ConfigReader<'a>,
    parent: Option<&'a DeTable<'a>>,
    name: &'static str,
    path: String,
) -> Option<DeclaredTable<'a>> {
    let spec = section(name)?;
    let mut out = DeclaredTable { spec, path, table: None, span: 0..0 };
    if let Some(value) = parent.and_then(|parent| parent.get(name)) {
        match value.get_ref() {
            DeValue::Table(table) => {
                out.table = Some(table);
                out.span = value.span();
                if spec.policy_key.is_none() {
                    reader.unknown_keys(&out, |_| false);
                }
            }
            _ => not_a_table(reader, spec, value.span()),
        }
    }
    Some(out)
}

/// The tables of the list `name`.
pub(super) fn list<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    name: &'static str,
) -> Option<Vec<DeclaredTable<'a>>> {
    let spec = section(name)?;
    let Some(value) = root.get(name) else {
        let remedy = match name {
            "backend" => "add at least one, with an address, or [discovery]".to_owned(),
            _ => "add at least one, with an address".to_owned(),
        };
        reader.wrong(name, 0..0, (format!("there is no [[{name}]]"), remedy));
        return Some(Vec::new());
    };
    let Some(items) = value.get_ref().as_array() else {
        not_a_table(reader, spec, value.span());
        return Some(Vec::new());
    };
    if items.is_empty() {
        let remedy = "add at least one, with an address".to_owned();
        reader.wrong(name, value.span(), (format!("there is no [[{name}]]"), remedy));
    }
    let mut sections = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let DeValue::Table(table) = item.get_ref() else {
            not_a_table(reader, spec, item.span());
            continue;
        };
        let out =
            DeclaredTable { spec, path: format!("{name}[{index}]"), table: Some(table), span: item.span() };
        reader.unknown_keys(&out, |key| tables_below(name).contains(&key));
        sections.push(out);
    }
    Some(sections)
}

fn not_a_table(reader: &mut ConfigReader<'_>, spec: &SectionSpec, span: Range<usize>) {
    let what = if spec.many { "is no list of tables" } else { "is no single table" };
    let remedy = format!("write {} above its keys", spec.header());
    reader.wrong(spec.name, span, (what.to_owned(), remedy));
}
