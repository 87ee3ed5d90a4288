//! The tables `[[class]]`.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::DeTable;

use crate::bounds::{CLASSES_MOST, COUNT_MOST, NAME_BYTES_MOST};
use crate::content_class::{ContentClass, MergedClass};
use crate::read::reader::{ClassFileTable, FileReader, nearest};

/// The longest time that a cost may have: a day, in seconds.
const TIME_MOST_S: f64 = 86_400.0;

const COST_KEYS: [&str; 5] = ["cpu_s", "disk_s", "size_bytes", "deviation_s", "requests"];

/// The classes of a file.
#[derive(Default)]
pub(super) struct ReadClasses<'a> {
    pub(super) classes: Vec<ContentClass>,
    pub(super) merged: Vec<MergedClass>,
    /// The line of each class.
    pub(super) lines: Vec<usize>,
    /// Numbers of all names. Names with errors have 0, so that patterns cause no further ones.
    numbers: BTreeMap<&'a str, u16>,
}

/// A class that says `same_as`.
struct Alias<'a> {
    name: &'a str,
    same_as: &'a str,
    key: String,
    span: Range<usize>,
}

impl<'a> ReadClasses<'a> {
    pub(super) fn read(reader: &mut FileReader<'_>, tables: Vec<(Range<usize>, &'a DeTable<'a>)>) -> Self {
        let mut out = Self::default();
        let mut aliases = Vec::new();
        let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, (span, table)) in tables.into_iter().enumerate() {
            let table = ClassFileTable { key: format!("class[{at}]"), span, table };
            reader.unknown_keys(
                &table.key,
                table.table,
                &["name", "same_as", "cpu_s", "disk_s", "size_bytes", "deviation_s", "requests"],
            );
            let name = reader.needed_text(&table, "name", "a name that no other class has");
            if let Some((name, span)) = &name {
                let line = reader.line(span.start);
                check_name(reader, &table, name, span);
                if let Some(other) = lines.insert(name, line) {
                    let what = format!("`{name}` is the name of the class in line {other}, too");
                    reader.wrong(&table.of("name"), span.clone(), &what, "give each class a name of its own");
                    continue;
                }
            }
            if table.table.get("same_as").is_some() {
                out.alias(reader, &table, name.map(|(name, _)| name), &mut aliases);
            } else {
                out.class(reader, &table, name.map_or("", |(name, _)| name));
            }
        }
        if out.classes.len() > CLASSES_MOST {
            let what = format!("there are more than {CLASSES_MOST} classes");
            reader.wrong_file("class", &what, "merge classes of similar cost");
        }
        out.resolve(reader, &aliases);
        out
    }

    fn class(&mut self, reader: &mut FileReader<'_>, table: &ClassFileTable<'_>, name: &'a str) {
        if table.table.get("cpu_s").is_none() {
            let remedy = "write `cpu_s = …` with the mean CPU time of a request in seconds, or `same_as = \"…\"` with the name of another class";
            reader.wrong(&table.of("cpu_s"), table.span.clone(), "is missing", remedy);
        }
        let [cpu_s, disk_s, deviation_s] = ["cpu_s", "disk_s", "deviation_s"]
            .map(|key| reader.number(table, key, TIME_MOST_S).unwrap_or(0.0));
        let size_bytes = reader.number(table, "size_bytes", COUNT_MOST as f64).unwrap_or(0.0);
        let requests = reader.count(table, "requests", COUNT_MOST);
        self.lines.push(reader.line(table.span.start));
        self.classes.push(ContentClass {
            name: name.to_owned(),
            cpu_s,
            disk_s,
            size_bytes,
            deviation_s,
            requests,
        });
        // Beyond the bound there is an error.
        self.numbers.insert(name, u16::try_from(self.classes.len()).unwrap_or(0));
    }

    fn alias(
        &mut self,
        reader: &mut FileReader<'_>,
        table: &ClassFileTable<'a>,
        name: Option<&'a str>,
        to: &mut Vec<Alias<'a>>,
    ) {
        for key in COST_KEYS {
            if let Some(value) = table.table.get(key) {
                let remedy = "remove it: a class that says `same_as` has the costs of the other one";
                reader.wrong(&table.of(key), value.span(), "stands beside `same_as`", remedy);
            }
        }
        let same_as = reader.text(table, "same_as");
        if let Some(name) = name {
            self.numbers.insert(name, 0);
        }
        if let (Some(name), Some((same_as, span))) = (name, same_as) {
            to.push(Alias { name, same_as, key: table.of("same_as"), span });
        }
    }

    /// Follows each `same_as` to a class with costs.
    fn resolve(&mut self, reader: &mut FileReader<'_>, aliases: &[Alias<'a>]) {
        let next: BTreeMap<&str, &str> = aliases.iter().map(|alias| (alias.name, alias.same_as)).collect();
        for alias in aliases {
            // Each step of a way without a circle leads to another alias.
            let mut target = alias.same_as;
            let mut steps = 0;
            while let Some(further) = next.get(target)
                && steps <= aliases.len()
            {
                target = further;
                steps += 1;
            }
            if steps > aliases.len() {
                let what = format!("leads from `{}` to itself or into a circle", alias.name);
                reader.wrong(&alias.key, alias.span.clone(), &what, "name a class that has costs of its own");
                continue;
            }
            match self.numbers.get(target) {
                Some(0) => {}
                Some(&class) => self.merged.push(MergedClass { name: alias.name.to_owned(), class }),
                None if target == alias.same_as => {
                    let what = format!("there is no class `{target}`");
                    let remedy = self.remedy(target);
                    reader.wrong(&alias.key, alias.span.clone(), &what, &remedy);
                }
                // Said at the class that names it.
                None => {}
            }
        }
        for merged in &self.merged {
            if let Some(number) = self.numbers.get_mut(merged.name.as_str()) {
                *number = merged.class;
            }
        }
    }

    /// The number of a class by its name; 0 for a class with errors.
    pub(super) fn number(&self, name: &str) -> Option<u16> {
        self.numbers.get(name).copied()
    }

    /// What to do about a name that there is not.
    pub(super) fn remedy(&self, name: &str) -> String {
        match nearest(name, self.numbers.keys().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "name a class that the file has as [[class]]".to_owned(),
        }
    }
}

fn check_name(reader: &mut FileReader<'_>, table: &ClassFileTable<'_>, name: &str, span: &Range<usize>) {
    let key = table.of("name");
    if name.is_empty() {
        reader.wrong(&key, span.clone(), "is empty", "give the class a name");
    } else if name.len() > NAME_BYTES_MOST || name.chars().any(char::is_control) {
        let what = format!("is longer than {NAME_BYTES_MOST} bytes or has control characters");
        reader.wrong(&key, span.clone(), &what, "write a short name");
    }
}
