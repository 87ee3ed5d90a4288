//! Declarations of keys of the configuration file: type, range, default and meaning.

use plimsoll_policy::registered;

/// What a key accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyKind {
    /// A whole number in this range, both ends included.
    Integer { min: u64, max: u64 },
    /// A number in this range, both ends included.
    Number { min: f64, max: f64 },
    /// `true` or `false`.
    Flag,
    /// Bytes: a text such as `"32MiB"` or a whole number, in this range.
    Size { min: u64, max: u64 },
    /// A size in this range, or `"none"`.
    SizeOrNone { min: u64, max: u64 },
    /// A text such as `"250ms"`, above 0 and at most a day.
    Duration,
    /// The same, and 0.
    DurationOrZero,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, or a whole number in this range.
    ChoiceOrInteger { words: &'static [&'static str], min: u64, max: u64 },
    /// The name of a policy.
    Policy,
    /// The name of a cache.
    Cache,
    /// A text of this form; what reads it checks the rest.
    Text(&'static str),
    /// A list of texts of this form.
    Texts(&'static str),
}

/// The value of an absent key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Default {
    /// None: the key is required.
    Required,
    /// This, as a user would write it but without quotes.
    Is(&'static str),
    /// A computed value, described by these words.
    Words(&'static str),
}

/// One key.
#[derive(Debug)]
pub(crate) struct KeySpec {
    pub(crate) name: &'static str,
    pub(crate) kind: KeyKind,
    pub(crate) default: Default,
    pub(crate) help: &'static str,
    /// Whether a change is applied by a restart only.
    pub(crate) restart: bool,
}

/// One table of the file, or one kind of table in a list.
#[derive(Debug)]
pub(crate) struct SectionSpec {
    /// Its name; empty for the keys that stand before the first table.
    pub(crate) name: &'static str,
    /// Whether it is a list: `[[name]]`.
    pub(crate) many: bool,
    /// The key that names a policy, whose parameters are then keys too.
    pub(crate) policy_key: Option<&'static str>,
    pub(crate) help: &'static str,
    /// Keys that together form one value; they come before the others.
    pub(crate) group: &'static [KeySpec],
    pub(crate) keys: &'static [KeySpec],
}

/// The largest size that a key takes.
pub(crate) const SIZE_MAX: u64 = 1 << 50;

pub(crate) const fn key(name: &'static str, kind: KeyKind, default: Default, help: &'static str) -> KeySpec {
    KeySpec { name, kind, default, help, restart: false }
}

/// A key whose change only a restart applies.
pub(crate) const fn fixed(
    name: &'static str,
    kind: KeyKind,
    default: Default,
    help: &'static str,
) -> KeySpec {
    KeySpec { name, kind, default, help, restart: true }
}

impl KeySpec {
    /// What it means, in a sentence.
    pub(crate) fn help(&self) -> &'static str {
        self.help.trim()
    }
}

impl SectionSpec {
    /// The key of this name.
    pub(crate) fn key(&self, name: &str) -> Option<&'static KeySpec> {
        self.keys().find(|k| k.name == name)
    }

    /// All its keys, in the order in which the documentation has them.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static KeySpec> + use<> {
        self.group.iter().chain(self.keys)
    }

    /// What it is for, in a sentence.
    pub(crate) fn help(&self) -> &'static str {
        self.help.trim()
    }

    /// Its header in the file.
    pub(crate) fn header(&self) -> String {
        match (self.name, self.many) {
            ("", _) => "the top of the file".to_owned(),
            (name, true) => format!("[[{name}]]"),
            (name, false) => format!("[{name}]"),
        }
    }
}

impl KeyKind {
    /// What is accepted, for messages and documentation.
    pub(crate) fn accepts(&self) -> String {
        let quoted = |words: &[&str]| {
            let all: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
            all.join(", ")
        };
        let sizes = |min: u64, max: u64| {
            let (min, max) = (crate::value::show_size(min), crate::value::show_size(max));
            format!("a size from {min} to {max}")
        };
        match *self {
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Number { min, max } => format!("a number from {min} to {max}"),
            Self::Flag => "true or false".to_owned(),
            Self::Size { min, max } => sizes(min, max),
            Self::SizeOrNone { min, max } => format!("{} or \"none\"", sizes(min, max)),
            Self::Duration => "a duration above 0 and at most 24h".to_owned(),
            Self::DurationOrZero => "a duration from 0s to 24h".to_owned(),
            Self::Choice([one]) => format!("\"{one}\""),
            Self::Choice(words) => format!("one of {}", quoted(words)),
            Self::ChoiceOrInteger { words, min, max } => {
                format!("{} or a whole number from {min} to {max}", quoted(words))
            }
            Self::Policy => "the name of a policy".to_owned(),
            Self::Cache => "the name of a cache".to_owned(),
            Self::Text(form) => form.to_owned(),
            Self::Texts(form) => format!("a list, each {form}"),
        }
    }

    /// The TOML literal for a value written without quotes.
    pub(crate) fn literal(&self, text: &str) -> String {
        let bare = match self {
            Self::Integer { .. } | Self::Number { .. } | Self::Flag | Self::Texts(_) => true,
            Self::ChoiceOrInteger { words, .. } => !words.contains(&text),
            _ => false,
        };
        if bare { text.to_owned() } else { format!("\"{text}\"") }
    }
}

/// Names and aliases of all policies.
pub(crate) fn policy_names() -> Vec<&'static str> {
    registered().flat_map(|s| std::iter::once(s.name).chain(s.aliases.iter().copied())).collect()
}

/// Names and aliases of all caches.
pub(crate) fn cache_names() -> Vec<&'static str> {
    let all = plimsoll_cache::REGISTRY.iter();
    all.flat_map(|s| std::iter::once(s.name).chain(s.aliases.iter().copied())).collect()
}
