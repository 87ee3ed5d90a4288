//! The differences between two configurations.

use std::fmt;

use crate::config::Config;
use crate::declare::Entries;
use crate::sections::{BackendConfig, BackendName, ListenerConfig, PoolName, section};
use crate::value::ConfigValue;

/// A key with its values before and after.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyChange {
    /// Name of the table as in the file; empty for the keys that stand before the first table.
    pub section: &'static str,
    /// The key.
    pub key: &'static str,
    /// Value before; `None` when there was none.
    pub old: Option<ConfigValue>,
    /// Value after; `None` when there is none.
    pub new: Option<ConfigValue>,
}

impl KeyChange {
    /// Whether only a restart applies it: the running system keeps the old value.
    #[must_use]
    pub fn needs_restart(&self) -> bool {
        section(self.section).and_then(|s| s.key(self.key)).is_some_and(|k| k.restart)
    }
}

impl fmt::Display for KeyChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.section.is_empty() {
            write!(f, "{}: ", self.section)?;
        }
        write!(f, "{} ", self.key)?;
        match (&self.old, &self.new) {
            (Some(ConfigValue::Secret), Some(ConfigValue::Secret)) => f.write_str("changed"),
            (old, new) => {
                let shown = |v: &Option<ConfigValue>| {
                    v.as_ref().map_or_else(|| "(none)".to_owned(), ConfigValue::to_string)
                };
                write!(f, "{} -> {}", shown(old), shown(new))
            }
        }
    }
}

/// A back-end that both configurations have.
#[derive(Debug, Clone, PartialEq)]
pub struct BackendChange {
    /// Its name.
    pub name: BackendName,
    /// Its old configuration.
    pub old: BackendConfig,
    /// Its new configuration.
    pub new: BackendConfig,
}

impl BackendChange {
    /// Whether the address changed, which makes it another back-end for connections and caches.
    #[must_use]
    pub fn moved(&self) -> bool {
        self.old.at != self.new.at
    }
}

impl fmt::Display for BackendChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.old.entries().into_iter().zip(self.new.entries());
        let changed: Vec<String> = pairs
            .filter(|(old, new)| old != new)
            .map(|((key, old), (_, new))| format!("{key} {old} -> {new}"))
            .collect();
        write!(f, "backend {}: {}", self.name, changed.join(", "))
    }
}

/// The differences between two configurations. Displays as one line per change.
///
/// Compares effective values: writing out a default, reordering back-ends or listeners, or using another name
/// of the same policy are no changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    /// New addresses to listen on.
    pub listeners_added: Vec<ListenerConfig>,
    /// Addresses no longer listened on.
    pub listeners_removed: Vec<ListenerConfig>,
    /// New back-ends, by name.
    pub backends_added: Vec<BackendConfig>,
    /// Removed back-ends, by name.
    pub backends_removed: Vec<BackendConfig>,
    /// Changed back-ends, by name.
    pub backends_changed: Vec<BackendChange>,
    /// New pools.
    pub pools_added: Vec<PoolName>,
    /// Removed pools.
    pub pools_removed: Vec<PoolName>,
    /// Keys of pools that both have.
    pub pool_keys: Vec<(PoolName, KeyChange)>,
    /// Routes before and after, if any of them differs.
    pub routes: Option<(usize, usize)>,
    /// All else, key by key.
    pub keys: Vec<KeyChange>,
}

impl Changes {
    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a key of the table `name` (as in the file, without brackets; not `listener` and `backend`) changes.
    #[must_use]
    pub fn section_changed(&self, name: &str) -> bool {
        self.keys.iter().any(|k| k.section == name)
    }

    /// The changes that a running system cannot apply: number of workers, mechanism, user, filter of system calls, most of the
    /// tables `handoff` and `direct`, and where the admin API listens.
    #[must_use]
    pub fn needs_restart(&self) -> Vec<&KeyChange> {
        self.keys.iter().filter(|k| k.needs_restart()).collect()
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.listeners_added.iter().map(|a| format!("listener {a}: added")));
        lines.extend(self.listeners_removed.iter().map(|a| format!("listener {a}: removed")));
        lines.extend(
            self.backends_added.iter().map(|b| format!("backend {}: added, {}", b.name, b.address())),
        );
        lines.extend(self.backends_removed.iter().map(|b| format!("backend {}: removed", b.name)));
        lines.extend(self.backends_changed.iter().map(BackendChange::to_string));
        lines.extend(self.pools_added.iter().map(|name| format!("pool {name}: added")));
        lines.extend(self.pools_removed.iter().map(|name| format!("pool {name}: removed")));
        lines.extend(self.pool_keys.iter().map(|(name, key)| format!("pool {name}: {key}")));
        lines.extend(self.routes.map(|(old, new)| format!("routes: changed, {old} -> {new}")));
        lines.extend(self.keys.iter().map(|key| {
            let note = if key.needs_restart() { " (after a restart)" } else { "" };
            format!("{key}{note}")
        }));
        f.write_str(&lines.join("\n"))
    }
}

impl Config {
    /// The changes from `old` to `new`.
    #[must_use]
    pub fn diff(old: &Self, new: &Self) -> Changes {
        let listeners_but = |of: &Self, but: &Self| -> Vec<ListenerConfig> {
            of.listeners.iter().filter(|l| !but.listeners.contains(l)).cloned().collect()
        };
        let named = |of: &'_ Self| -> std::collections::BTreeMap<BackendName, BackendConfig> {
            of.all_backends().map(|b| (b.name.clone(), b.clone())).collect()
        };
        let (old_backends, new_backends) = (named(old), named(new));
        let changed = new.all_backends().filter_map(|b| {
            let before = old_backends.get(&b.name).filter(|before| *before != b)?;
            Some(BackendChange { name: b.name.clone(), old: before.clone(), new: b.clone() })
        });
        let mut keys = Vec::new();
        for ((section, before), (_, after)) in old.sections().into_iter().zip(new.sections()) {
            compare(section, &before, &after, &mut keys);
        }
        let token = |c: &Self| c.admin.as_ref().and_then(|a| a.token.clone());
        if let (Some(before), Some(after)) = (token(old), token(new))
            && before != after
        {
            let secret = Some(ConfigValue::Secret);
            keys.push(KeyChange { section: "admin", key: "token", old: secret.clone(), new: secret });
        }
        keys.extend(changed_files(old, new));
        Changes {
            listeners_added: listeners_but(new, old),
            listeners_removed: listeners_but(old, new),
            backends_added: new
                .all_backends()
                .filter(|b| !old_backends.contains_key(&b.name))
                .cloned()
                .collect(),
            backends_removed: old
                .all_backends()
                .filter(|b| !new_backends.contains_key(&b.name))
                .cloned()
                .collect(),
            backends_changed: changed.collect(),
            pools_added: pools_but(new, old),
            pools_removed: pools_but(old, new),
            pool_keys: pool_keys(old, new),
            routes: (old.routes != new.routes).then_some((old.routes.len(), new.routes.len())),
            keys,
        }
    }
}

/// Names of pools that the other one does not have.
fn pools_but(of: &Config, but: &Config) -> Vec<PoolName> {
    let has = |name: &PoolName| but.pools.iter().any(|pool| pool.name == *name);
    of.pools.iter().map(|pool| &pool.name).filter(|name| !has(name)).cloned().collect()
}

/// What differs of pools that both have.
fn pool_keys(old: &Config, new: &Config) -> Vec<(PoolName, KeyChange)> {
    let mut out = Vec::new();
    for before in &old.pools {
        let Some(after) = new.pools.iter().find(|pool| pool.name == before.name) else { continue };
        let mut keys = Vec::new();
        for ((section, before), (_, after)) in before.sections().into_iter().zip(after.sections()) {
            compare(section, &before, &after, &mut keys);
        }
        out.extend(keys.into_iter().map(|key| (PoolName::clone(&before.name), key)));
    }
    out
}

/// Keys under which other files are named that have changed, while the names may be the same.
fn changed_files(old: &Config, new: &Config) -> Vec<KeyChange> {
    let contents = |section, key| {
        let secret = Some(ConfigValue::Secret);
        KeyChange { section, key, old: secret.clone(), new: secret }
    };
    let mut keys = Vec::new();
    if let (Some(before), Some(after)) = (&old.classes, &new.classes)
        && before.file != after.file
        && before.file.path == after.file.path
    {
        keys.push(contents("classes", "file"));
    }
    if old.certificates != new.certificates {
        let named = |of: &Config| -> Option<ConfigValue> {
            let files = of.certificates.iter().map(|c| c.files.chain.display().to_string());
            Some(ConfigValue::List(files.collect()))
        };
        let (before, after) = (named(old), named(new));
        keys.push(match before == after {
            true => contents("certificate", "chain"),
            false => KeyChange { section: "certificate", key: "chain", old: before, new: after },
        });
    }
    if old.client_check != new.client_check && old.tls == new.tls {
        keys.push(contents("tls", "client_authorities"));
    }
    if let (Some(before), Some(after)) = (&old.client_tls, &new.client_tls)
        && before != after
        && old.backend_tls == new.backend_tls
    {
        keys.push(contents("backend_tls", "authorities"));
    }
    keys
}

/// Adds the keys in which the two differ: those that stay and those that go in the old order, then the new ones.
fn compare(section: &'static str, old: &Entries, new: &Entries, out: &mut Vec<KeyChange>) {
    let value = |of: &Entries, key: &str| of.iter().find(|(k, _)| *k == key).map(|(_, v)| v.clone());
    let added = new.iter().filter(|(key, _)| value(old, key).is_none());
    for &(key, _) in old.iter().chain(added) {
        let (old, new) = (value(old, key), value(new, key));
        if old != new {
            out.push(KeyChange { section, key, old, new });
        }
    }
}
