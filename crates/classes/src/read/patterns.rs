//! The tables `[[pattern]]`.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::bounds::{PARAMETERS_MOST, PATTERNS_MOST};
use crate::path_pattern::PathPattern;
use crate::pattern::{ApplicationPattern, ClassPattern};
use crate::read::classes::ReadClasses;
use crate::read::reader::{ClassFileTable, FileReader, kind};
use crate::uri::UriDecoded;

/// The patterns of a file.
#[derive(Default)]
pub(super) struct ReadPatterns {
    pub(super) patterns: Vec<ClassPattern>,
    /// The line of each.
    pub(super) lines: Vec<usize>,
}

impl ReadPatterns {
    pub(super) fn read<'a>(
        reader: &mut FileReader<'_>,
        tables: Vec<(Range<usize>, &'a DeTable<'a>)>,
        classes: &ReadClasses<'_>,
    ) -> Self {
        let mut out = Self::default();
        if tables.len() > PATTERNS_MOST {
            let what = format!("there are more than {PATTERNS_MOST} patterns");
            reader.wrong_file("pattern", &what, "put `*` for segments and parameters that do not matter");
            return out;
        }
        let mut keys = Vec::new();
        for (at, (span, table)) in tables.into_iter().enumerate() {
            let table = ClassFileTable { key: format!("pattern[{at}]"), span, table };
            if let Some(pattern) = pattern(reader, &table, classes) {
                out.lines.push(reader.line(table.span.start));
                out.patterns.push(pattern);
                keys.push(table.key);
            }
        }
        let mut seen = BTreeMap::new();
        for ((pattern, line), key) in out.patterns.iter().zip(&out.lines).zip(&keys) {
            if let Some(other) = seen.insert(pattern.conditions(), line) {
                let what = format!("matches the same requests as the pattern in line {other}");
                reader.wrong_line(key, *line, &what, "remove one of the two");
            }
        }
        out
    }
}

fn pattern(
    reader: &mut FileReader<'_>,
    table: &ClassFileTable<'_>,
    classes: &ReadClasses<'_>,
) -> Option<ClassPattern> {
    reader.unknown_keys(&table.key, table.table, &["class", "path", "application", "method", "parameters"]);
    let class = reader.needed_text(table, "class", "the name of a class");
    let class = class.and_then(|(name, span)| {
        let number = classes.number(name);
        if number.is_none() {
            reader.wrong(
                &table.of("class"),
                span,
                &format!("there is no class `{name}`"),
                &classes.remedy(name),
            );
        }
        number
    });
    let path = reader.needed_text(table, "path", "a path, as \"/shop/item\" or \"/shop/**\"");
    let path = path.and_then(|(text, span)| {
        let read = PathPattern::parse(text);
        read.map_err(|(what, remedy)| reader.wrong(&table.of("path"), span, &what, &remedy)).ok()
    });
    let application = application(reader, table, path.as_ref());
    let method = reader.text(table, "method").and_then(|(text, span)| {
        let good =
            !text.is_empty() && text.len() <= 32 && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
        if !good {
            let remedy = "write it in capitals, as \"GET\"";
            reader.wrong(&table.of("method"), span, &format!("`{text}` is no method"), remedy);
        }
        good.then(|| text.as_bytes().to_vec())
    });
    let parameters = parameters(reader, table);
    Some(ClassPattern { class: class?, path: path?, application, method, parameters })
}

fn application(
    reader: &mut FileReader<'_>,
    table: &ClassFileTable<'_>,
    path: Option<&PathPattern>,
) -> Option<ApplicationPattern> {
    let (text, span) = reader.text(table, "application")?;
    let key = table.of("application");
    if path.is_some_and(|path| !path.below) {
        let remedy = "end the path with \"/**\", or write the application as its last segment";
        reader.wrong(&key, span.clone(), "stands beside a path that does not end with `/**`", remedy);
    }
    let (name, ending) = match text.strip_prefix("*.") {
        Some(ending) => (ending, true),
        None => (text, false),
    };
    if name.contains(['/', '*', '?', '#']) || (ending && (name.is_empty() || name.contains('.'))) {
        let remedy = "write the last segment of a path, as \"search.php\", or how it ends, as \"*.gif\"";
        reader.wrong(&key, span, &format!("`{text}` is no application"), remedy);
        return None;
    }
    let name = UriDecoded::segment(name.as_bytes()).collect();
    Some(if ending { ApplicationPattern::Ending(name) } else { ApplicationPattern::Named(name) })
}

fn parameters(reader: &mut FileReader<'_>, table: &ClassFileTable<'_>) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    let mut out = BTreeMap::new();
    let Some(value) = table.table.get("parameters") else { return out };
    let key = table.of("parameters");
    let remedy = "write { name = \"value\" }, with \"*\" for any value";
    let DeValue::Table(found) = value.get_ref() else {
        reader.wrong(&key, value.span(), &format!("is {}", kind(value.get_ref())), remedy);
        return out;
    };
    if found.len() > PARAMETERS_MOST {
        let what = format!("names more than {PARAMETERS_MOST} parameters");
        reader.wrong(&key, value.span(), &what, "name those that tell the cost");
    }
    for (name, value) in found {
        let (text, decoded) = (name.get_ref(), UriDecoded::in_query(name.get_ref().as_bytes()).collect());
        let dotted = format!("{key}.{text}");
        let DeValue::String(value_text) = value.get_ref() else {
            reader.wrong(
                &dotted,
                value.span(),
                &format!("is {}", kind(value.get_ref())),
                "write the value in double quotes",
            );
            continue;
        };
        let wanted = if value_text == "*" {
            None
        } else {
            Some(UriDecoded::in_query(value_text.as_bytes()).collect())
        };
        if out.insert(decoded, wanted).is_some() {
            reader.wrong(
                &dotted,
                name.span(),
                "is named twice once it is percent-decoded",
                "keep one of the two",
            );
        }
    }
    out
}
