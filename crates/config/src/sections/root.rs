//! The keys that stand before the first table.

use super::pool_name::{DEFAULT_POOL, PoolName};
use crate::declare::{KeyForm, keys, words};
use crate::keys::Default::{Is, Words};
use crate::keys::KeyKind::{Choice, Flag, Integer, Text};
use crate::name::name;
use crate::reader::{ConfigReader, DeclaredTable, Wrong, quoted};
use crate::value::ConfigValue;

keys! {
    /// These stand before the first table.
    [""] pub(crate) struct Root {
        /// Threads that serve clients.
        "workers" workers: usize =
            Words("the number of CPUs available"), Integer { min: 1, max: 1024 } => Threads, restart;
        /// How a chosen back-end gets the request: `proxy`, the front-end passes request and response on; `handoff`, the
        /// back-end gets the client's connection and answers the client directly; `direct`, connections are distributed at layer 4, and back-ends
        /// answer clients directly; `auto`, each request in the way that costs
        /// less.
        "mechanism" mechanism: MechanismKind = Is("proxy"), Choice(MechanismKind::WORDS), restart;
        /// What takes requests that no `[[route]]` takes: the name of a pool; `404`, nothing, and they are answered so.
        "unmatched" unmatched: Unmatched = Is("default"), Text("the name of a pool, or \"404\"") => UnmatchedForm;
        /// Whom a front-end that root starts becomes, once it has started: a user, by name or number, or `root`; `auto`:
        /// `nobody`, where `nobody` may use all files that are needed later, or else `root` with few capabilities.
        "user" user: Option<String> = Is("auto"), Text("\"auto\", or the name or number of a user") => WantedUser, restart;
        /// Whether the kernel refuses system calls that the front-end never makes, such as to start a program.
        "seccomp" seccomp: bool = Is("true"), Flag, restart;
    }
}

words! {
    /// How a chosen back-end gets the request.
    pub enum MechanismKind {
        Proxy = "proxy" / "The front-end passes request and response on.",
        Handoff = "handoff" / "The back-end gets the client's connection and answers the client directly.",
        Direct = "direct" / "Connections are distributed at layer 4, and back-ends answer clients directly.",
        Auto = "auto" / "Requests are handed off where that costs less, and the others are proxied.",
    }
}

impl MechanismKind {
    /// Whether connections may be handed off.
    #[must_use]
    pub fn hands_off(self) -> bool {
        matches!(self, Self::Handoff | Self::Auto)
    }
}

/// What takes requests that no route takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmatched {
    /// A pool; none is `default`.
    Pool(Option<PoolName>),
    /// They are answered with 404.
    NotFound,
}

struct UnmatchedForm;

impl KeyForm<Unmatched> for UnmatchedForm {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, key: &str) -> Option<Unmatched> {
        reader.text(section, key, |text| match text {
            "404" => Ok(Unmatched::NotFound),
            DEFAULT_POOL => Ok(Unmatched::Pool(None)),
            text => Ok(Unmatched::Pool(Some(name(text)?.into()))),
        })
    }

    fn show(unmatched: &Unmatched) -> Option<ConfigValue> {
        Some(ConfigValue::Text(match unmatched {
            Unmatched::NotFound => "404".to_owned(),
            Unmatched::Pool(name) => name.as_ref().map_or(DEFAULT_POOL, |name| &**name).to_owned(),
        }))
    }
}

/// A number of threads; by default one per CPU.
struct Threads;

impl KeyForm<usize> for Threads {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<usize> {
        let Some(found) = section.found(name) else {
            return Some(std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
        };
        Some(reader.integer_of(&found).and_then(|n| usize::try_from(n).ok()).unwrap_or(1))
    }

    fn show(threads: &usize) -> Option<ConfigValue> {
        Some(ConfigValue::Integer(*threads as u64))
    }
}

/// A user of the machine, who need not be there; none is `auto`.
struct WantedUser;

impl KeyForm<Option<String>> for WantedUser {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<String>> {
        let text = reader.text(section, name, user)?;
        Some((text != "auto").then_some(text))
    }

    fn show(user: &Option<String>) -> Option<ConfigValue> {
        Some(ConfigValue::Text(user.clone().unwrap_or_else(|| "auto".to_owned())))
    }
}

/// A name that a user database can hold.
fn user(text: &str) -> Result<String, Wrong> {
    let good = |c: char| !c.is_whitespace() && !c.is_control() && !":/,".contains(c);
    if text.is_empty() || text.len() > 256 || text.starts_with('-') || !text.chars().all(good) {
        let remedy = "write the name or the number of one user, or \"auto\"".to_owned();
        return Err((format!("{} is no name of a user", quoted(text)), remedy));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::user;

    #[test]
    fn names_of_users() {
        for good in ["auto", "nobody", "root", "0", "65534", "www-data", "a.b@example", "plimsoll$"] {
            assert_eq!(user(good).as_deref(), Ok(good));
        }
        for bad in ["", "-1", "a b", "a:b", "a/b", "a,b", "a\n"] {
            assert!(user(bad).is_err(), "{bad:?}");
        }
    }
}
