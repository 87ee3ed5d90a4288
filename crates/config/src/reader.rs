//! Typed look-up of declared keys in a parsed file. Collects errors and continues with defaults.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_policy::params::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{ConfigError, FilePosition, Snippet};
use crate::keys::{Default, KeyKind, KeySpec, SectionSpec};
pub(crate) use crate::message::{Wrong, as_number, escaped, not_one_of, quoted};
use crate::message::{bare, duration, may_be_secret, quotes, show, type_name};
use crate::value;

/// The most errors recorded.
const ERRORS_MAX: usize = 200;

/// The file and its errors so far.
pub(crate) struct ConfigReader<'a> {
    text: &'a str,
    file: &'a str,
    /// Where each line starts.
    lines: Vec<usize>,
    /// Every table, to tell where a misplaced key belongs.
    sections: &'static [SectionSpec],
    pub(crate) errors: Vec<ConfigError>,
    /// Other files that were read.
    pub(crate) files: Vec<PathBuf>,
}

/// A table of the file with its declaration; all defaults if the table is absent.
pub(crate) struct DeclaredTable<'a> {
    pub(crate) spec: &'static SectionSpec,
    /// Dotted, with the position in a list: `backend[1]`.
    pub(crate) path: String,
    pub(crate) table: Option<&'a DeTable<'a>>,
    pub(crate) span: Range<usize>,
}

/// A list of texts.
#[derive(Clone, Copy)]
pub(crate) struct ListForm {
    /// The most texts.
    pub(crate) most: usize,
    /// The remedy when there are more.
    pub(crate) fewer: &'static str,
    /// The remedy for an entry that is not a text.
    pub(crate) remedy: &'static str,
}

/// A key that is in the file.
pub(crate) struct FoundKey<'a> {
    pub(crate) key: String,
    pub(crate) spec: Option<&'static KeySpec>,
    pub(crate) value: &'a DeValue<'a>,
    pub(crate) span: Range<usize>,
}

impl FoundKey<'_> {
    /// Whether a key is written out with its default, which changes nothing.
    pub(crate) fn is_default(&self) -> bool {
        let written = self.value.as_str().or_else(|| self.value.as_integer().map(|number| number.as_str()));
        matches!(self.spec.map(|spec| spec.default), Some(Default::Is(default)) if written == Some(default))
    }
}

impl<'a> DeclaredTable<'a> {
    /// The dotted key of `name`.
    pub(crate) fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// The key if it is in the file.
    pub(crate) fn found(&self, name: &str) -> Option<FoundKey<'a>> {
        let value = self.table?.get(name)?;
        Some(FoundKey {
            key: self.key(name),
            spec: self.spec.key(name),
            value: value.get_ref(),
            span: value.span(),
        })
    }

    /// Where an error about the key `name` points: its value, or the table that lacks it.
    pub(crate) fn span_of(&self, name: &str) -> Range<usize> {
        self.found(name).map_or_else(|| self.span.clone(), |found| found.span)
    }

    /// What the key of this name accepts.
    pub(crate) fn kind(&self, name: &str) -> Option<KeyKind> {
        self.spec.key(name).map(|k| k.kind)
    }

    /// The duration under a key, or its default. Errors are reported where the key is read.
    pub(crate) fn duration(&self, name: &str) -> Option<Duration> {
        let found = self.found(name);
        value::duration(found.map_or(Some(self.default_of(name)), |found| found.value.as_str())?)
    }

    fn default_of(&self, name: &str) -> &'static str {
        match self.spec.key(name).map(|k| k.default) {
            Some(Default::Is(text)) => text,
            _ => "",
        }
    }
}

impl<'a> ConfigReader<'a> {
    pub(crate) fn new(text: &'a str, file: &'a str, sections: &'static [SectionSpec]) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, file, lines, sections, errors: Vec::new(), files: Vec::new() }
    }

    /// The directory to which paths in the file are relative.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        Path::new(self.file).parent().unwrap_or(Path::new("")).join(path)
    }

    /// As [`ConfigReader::resolve`], of a file that is read now, and again with each reload.
    pub(crate) fn file(&mut self, path: &str) -> PathBuf {
        let path = self.resolve(path);
        self.files.push(path.clone());
        path
    }

    /// Records an error at a place.
    pub(crate) fn wrong(&mut self, key: &str, span: Range<usize>, (what, remedy): Wrong) {
        if self.errors.len() >= ERRORS_MAX {
            return;
        }
        let start = self.text.floor_char_boundary(span.start.min(self.text.len()));
        let end = self.text.floor_char_boundary(span.end.clamp(start, self.text.len()));
        let number = self.lines.partition_point(|&line| line <= start);
        let line_start = self.lines.get(number - 1).copied().unwrap_or(0);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        let line = self.text[line_start..line_end].trim_end_matches('\r');
        let before = self.text[line_start..start].chars().count();
        let marks = self.text[start..end.min(line_end).max(start)].chars().count();
        self.errors.push(ConfigError {
            file: self.file.to_owned(),
            place: Some(FilePosition { line: number, column: before + 1 }),
            key: key.to_owned(),
            what,
            remedy,
            snippet: (!may_be_secret(key, line)).then(|| Snippet::new(line, before, marks)),
        });
    }

    /// Records an error in another file that was read.
    pub(crate) fn wrong_elsewhere(
        &mut self,
        file: &Path,
        line: Option<usize>,
        key: &str,
        (what, remedy): Wrong,
    ) {
        if self.errors.len() >= ERRORS_MAX {
            return;
        }
        let place = line.map(|line| FilePosition { line, column: 1 });
        let (file, key) = (file.display().to_string(), key.to_owned());
        self.errors.push(ConfigError { file, place, key, what, remedy, snippet: None });
    }

    /// Records an error of a value.
    pub(crate) fn wrong_value(&mut self, found: &FoundKey<'_>, wrong: Wrong) {
        self.wrong(&found.key, found.span.clone(), wrong);
    }

    /// Reports the keys that are not declared, except those for which `also` holds.
    pub(crate) fn unknown_keys(&mut self, section: &DeclaredTable<'a>, also: impl Fn(&str) -> bool) {
        let Some(table) = section.table else { return };
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if section.spec.key(name).is_none() && !also(name) {
                let known: Vec<_> = section.spec.keys().map(|k| k.name).collect();
                let remedy = self.unknown_remedy(name, &known, &section.spec.header());
                let dotted = section.key(&escaped(name));
                self.wrong(&dotted, key.span(), ("there is no such key".to_owned(), remedy));
            }
        }
    }

    /// A text parsed by `parse`; the default if the key is absent; `None` without a default or on an error.
    pub(crate) fn text<T>(
        &mut self,
        section: &DeclaredTable<'a>,
        name: &str,
        parse: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Option<T> {
        let Some(found) = section.found(name) else {
            if let Some(KeySpec { default: Default::Required, kind, .. }) = section.spec.key(name) {
                let wrong = ("missing".to_owned(), format!("write `{name} = …` with {}", kind.accepts()));
                self.wrong(&section.key(name), section.span.clone(), wrong);
            }
            let default = section.default_of(name);
            return if default.is_empty() { None } else { parse(default).ok() };
        };
        let DeValue::String(text) = found.value else {
            self.wrong_type(&found);
            return None;
        };
        parse(text).map_err(|wrong| self.wrong_value(&found, wrong)).ok()
    }

    /// One of the declared words.
    pub(crate) fn choice(&mut self, section: &DeclaredTable<'a>, name: &str) -> &'static str {
        let words = match section.spec.key(name).map(|k| k.kind) {
            Some(KeyKind::Choice(words)) => words,
            _ => &[],
        };
        let parse =
            |text: &str| words.iter().copied().find(|w| *w == text).ok_or_else(|| not_one_of(text, words));
        self.text(section, name, parse).unwrap_or_else(|| section.default_of(name))
    }

    /// A whole number in the declared range.
    pub(crate) fn integer(&mut self, section: &DeclaredTable<'a>, name: &str) -> u64 {
        let default = section.default_of(name).parse().unwrap_or(0);
        let Some(found) = section.found(name) else { return default };
        self.integer_of(&found).unwrap_or(default)
    }

    /// The whole number of a value that is one.
    pub(crate) fn integer_of(&mut self, found: &FoundKey<'_>) -> Option<u64> {
        let (min, max) = match found.spec.map(|k| k.kind) {
            Some(KeyKind::Integer { min, max } | KeyKind::ChoiceOrInteger { min, max, .. }) => (min, max),
            _ => (0, u64::MAX),
        };
        let DeValue::Integer(n) = found.value else {
            self.wrong_type(found);
            return None;
        };
        let value = u64::from_str_radix(n.as_str(), n.radix()).ok().filter(|v| (min..=max).contains(v));
        if value.is_none() {
            self.out_of_range(found);
        }
        value
    }

    /// A number in the declared range.
    pub(crate) fn number(&mut self, section: &DeclaredTable<'a>, name: &str) -> f64 {
        let default = section.default_of(name).parse().unwrap_or(0.0);
        let Some(found) = section.found(name) else { return default };
        let Some(number) = as_number(found.value) else {
            self.wrong_type(&found);
            return default;
        };
        match found.spec.map(|k| k.kind) {
            Some(KeyKind::Number { min, max }) if (min..=max).contains(&number) => number,
            _ => {
                self.out_of_range(&found);
                default
            }
        }
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, section: &DeclaredTable<'a>, name: &str) -> bool {
        let default = section.default_of(name) == "true";
        let Some(found) = section.found(name) else { return default };
        found.value.as_bool().unwrap_or_else(|| {
            self.wrong_type(&found);
            default
        })
    }

    /// Bytes in the declared range; `None` for the word `none` where that is allowed.
    pub(crate) fn size(&mut self, section: &DeclaredTable<'a>, name: &str) -> Option<u64> {
        let default = value::size(section.default_of(name)).ok();
        let Some(found) = section.found(name) else { return default };
        let (min, max, none) = match found.spec.map(|k| k.kind) {
            Some(KeyKind::Size { min, max }) => (min, max, false),
            Some(KeyKind::SizeOrNone { min, max }) => (min, max, true),
            _ => (0, u64::MAX, false),
        };
        let bytes = match found.value {
            DeValue::String(text) if none && text == "none" => return None,
            DeValue::String(text) => value::size(text).ok(),
            DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok(),
            _ => {
                self.wrong_type(&found);
                return default;
            }
        };
        match bytes {
            Some(bytes) if (min..=max).contains(&bytes) => Some(bytes),
            Some(_) => {
                self.out_of_range(&found);
                default
            }
            None => {
                let what = format!("{} is no size", show(found.value));
                let remedy = "write bytes or a text with unit, e.g. \"32MiB\" or \"500kB\"".to_owned();
                self.wrong_value(&found, (what, remedy));
                default
            }
        }
    }

    /// A duration in the declared range.
    pub(crate) fn duration(&mut self, section: &DeclaredTable<'a>, name: &str) -> Duration {
        let zero = matches!(section.spec.key(name).map(|k| k.kind), Some(KeyKind::DurationOrZero));
        let parse = |text: &str| duration(text, zero);
        let default = || value::duration(section.default_of(name)).unwrap_or(Duration::from_secs(1));
        self.text(section, name, parse).unwrap_or_else(default)
    }

    /// The texts of a list, read by `parse`; none when the key is absent.
    pub(crate) fn list<T>(
        &mut self,
        section: &DeclaredTable<'a>,
        name: &str,
        form: ListForm,
        parse: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Vec<T> {
        let mut out = Vec::new();
        let Some(found) = section.found(name) else { return out };
        let Some(items) = items(&found) else {
            self.wrong_type(&found);
            return out;
        };
        for (index, item) in items {
            let key = format!("{}[{index}]", found.key);
            if index == form.most {
                let wrong = (format!("there are more than {}", form.most), form.fewer.to_owned());
                self.wrong(&key, item.span(), wrong);
                break;
            }
            let read = match item.get_ref() {
                DeValue::String(text) => parse(text),
                _ => Err(("is no text".to_owned(), form.remedy.to_owned())),
            };
            match read {
                Ok(one) => out.push(one),
                Err(wrong) => self.wrong(&key, item.span(), wrong),
            }
        }
        out
    }

    /// The remedy for a key that is unknown in the table `header`.
    pub(crate) fn unknown_remedy(&self, name: &str, known: &[&str], header: &str) -> String {
        if let Some(near) = nearest(name, known.iter().copied()) {
            return format!("did you mean `{near}`?");
        }
        let elsewhere = self.sections.iter().find(|s| s.key(name).is_some() && s.header() != header);
        if let Some(section) = elsewhere {
            return format!("it belongs to {}", section.header());
        }
        format!("the keys of {header} are {}", known.join(", "))
    }

    /// A value of another type than declared.
    pub(crate) fn wrong_type(&mut self, found: &FoundKey<'_>) {
        let kind = found.spec.map(|k| k.kind);
        let number = matches!(found.value, DeValue::Integer(_) | DeValue::Float(_));
        let remedy = match kind {
            Some(KeyKind::Duration | KeyKind::DurationOrZero) if number => {
                format!("write it with its unit, e.g. \"{}s\" or \"{0}ms\"", bare(found.value))
            }
            Some(kind) => format!("write {}{}", quotes(kind), kind.accepts()),
            None => "write a number".to_owned(),
        };
        self.wrong_value(found, (format!("is {}", type_name(found.value)), remedy));
    }

    fn out_of_range(&mut self, found: &FoundKey<'_>) {
        let accepts = found.spec.map_or_else(String::new, |k| k.kind.accepts());
        self.wrong_value(
            found,
            (format!("{} is out of range", show(found.value)), format!("write {accepts}")),
        );
    }
}

/// Reads what need not be there.
pub(crate) fn optional<'a, T>(
    reader: &mut ConfigReader<'a>,
    section: &DeclaredTable<'a>,
    key: &str,
    parse: impl Fn(&str) -> Result<T, Wrong>,
) -> Option<Option<T>> {
    if section.found(key).is_none() {
        return Some(None);
    }
    reader.text(section, key, parse).map(Some)
}

/// The value and its place in a list.
pub(crate) fn items<'a>(
    found: &FoundKey<'a>,
) -> Option<impl Iterator<Item = (usize, &'a Spanned<DeValue<'a>>)>> {
    found.value.as_array().map(|items| items.iter().enumerate())
}
