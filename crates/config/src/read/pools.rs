//! Reads `[[pool]]` with the tables below it, and checks back-ends and the rest of the file against them.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_policy::Weight;
use toml::de::DeTable;

use crate::config::Config;
use crate::read::peers::Answering;
use crate::read::tables::{list, one_within};
use crate::reader::{ConfigReader, DeclaredTable, Wrong};
use crate::sections::{
    AdmissionConfig, CompressionConfig, DEFAULT_POOL, EjectionConfig, HealthConfig, Limits, MechanismKind,
    POOLS_MAX, PolicyConfig, PoolConfig, PoolName, PoolTable, RetryBudgetConfig, StickyConfig, TargetConfig,
    Timeouts,
};

/// Keys of tables below `[[pool]]` that are about clients before a pool is known, or about the whole front-end.
const OF_ALL: [(&str, &[&str]); 3] = [
    ("target", &["hash_key"]),
    ("timeouts", &["head", "idle", "backend_idle", "drain"]),
    ("limits", &["head", "fields", "connections", "requests_per_connection"]),
];

/// A pool as it was read; what is not there is as for the pool `default`.
pub(super) struct ReadPool {
    pub(super) name: PoolName,
    policy: Option<PolicyConfig>,
    sticky: Option<StickyConfig>,
    /// The key of the cookie's name with its place, where it has one.
    cookie: Option<(String, Range<usize>)>,
    target: Option<TargetConfig>,
    admission: Option<AdmissionConfig>,
    health: Option<HealthConfig>,
    ejection: Option<EjectionConfig>,
    retry_budget: Option<RetryBudgetConfig>,
    timeouts: Option<Timeouts>,
    limits: Option<Limits>,
    compression: Option<CompressionConfig>,
}

impl ReadPool {
    /// Whether it says how responses are compressed.
    pub(super) fn compresses(&self) -> bool {
        self.compression.is_some()
    }
}

/// The pools beside the pool `default`, checked against back-ends and mechanism.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    mechanism: MechanismKind,
    backends: &[Answering],
) -> Option<Vec<ReadPool>> {
    let sections = if root.get("pool").is_some() { list(reader, root, "pool")? } else { Vec::new() };
    if let Some(beyond) = sections.get(POOLS_MAX) {
        let wrong = (format!("there are more than {POOLS_MAX}"), "use fewer".to_owned());
        reader.wrong(&beyond.path, beyond.span.clone(), wrong);
    }
    if let Some(first) = sections.first() {
        beside(reader, first, root, mechanism);
    }
    let mut pools: Vec<ReadPool> = Vec::new();
    for section in sections.iter().take(POOLS_MAX) {
        let Some(pool) = read_one(reader, section) else { continue };
        if pools.iter().any(|other| other.name == pool.name) {
            let wrong =
                ("is the name of an earlier pool".to_owned(), "give each pool a name of its own".to_owned());
            reader.wrong(&section.key("name"), section.span_of("name"), wrong);
        }
        answered(reader, section, &pool.name, backends);
        pools.push(pool);
    }
    for backend in backends {
        checked(reader, backend, &pools);
    }
    Some(pools)
}

/// What cannot be together with several pools.
fn beside(
    reader: &mut ConfigReader<'_>,
    first: &DeclaredTable<'_>,
    root: &DeTable<'_>,
    mechanism: MechanismKind,
) {
    let mut wrong = |what: String, remedy: &str| {
        reader.wrong(&first.path, first.span.clone(), (what, remedy.to_owned()));
    };
    if mechanism != MechanismKind::Proxy {
        let what =
            format!("requests come to pools by routes, which `mechanism = \"{mechanism}\"` does not follow");
        wrong(what, "write `mechanism = \"proxy\"`, or remove [[pool]]");
    }
    if root.get("peers").is_some() {
        let what = "front-ends beside one another share what they see of one pool alone".to_owned();
        wrong(what, "remove [peers], or [[pool]]");
    }
}

fn read_one<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>) -> Option<ReadPool> {
    macro_rules! table {
        ($name:literal, $read:path) => {{
            let table = one_within(reader, section, $name)?;
            if table.table.is_some() { Some($read(reader, &table)?) } else { None }
        }};
    }
    for (name, keys) in OF_ALL {
        let table = one_within(&mut ConfigReader::new("", "", &[]), section, name)?;
        for found in keys.iter().filter_map(|key| table.found(key)) {
            let remedy = format!("write it below [{name}]");
            reader.wrong_value(&found, ("is of the whole front-end".to_owned(), remedy));
        }
    }
    let sticky = one_within(reader, section, "sticky")?;
    let cookie = sticky.found("cookie").map(|_| (sticky.key("cookie"), sticky.span_of("cookie")));
    Some(ReadPool {
        cookie,
        policy: table!("policy", PolicyConfig::read),
        sticky: table!("sticky", StickyConfig::read),
        target: table!("target", TargetConfig::read),
        admission: table!("admission", AdmissionConfig::read),
        health: table!("health", HealthConfig::read_checked),
        ejection: table!("ejection", EjectionConfig::read),
        retry_budget: table!("retry_budget", RetryBudgetConfig::read),
        timeouts: table!("timeouts", Timeouts::read),
        limits: table!("limits", Limits::read),
        compression: table!("compression", CompressionConfig::read),
        name: PoolTable::read(reader, section)?.name,
    })
}

/// A pool has back-ends, and not all of weight 0.
fn answered(
    reader: &mut ConfigReader<'_>,
    section: &DeclaredTable<'_>,
    name: &PoolName,
    backends: &[Answering],
) {
    let mut own = backends.iter().filter(|b| b.config.pool.as_ref() == Some(name)).peekable();
    let wrong = if own.peek().is_none() {
        let remedy =
            format!("write `pool = \"{name}\"` in the [[backend]] of each that is to be in it, or remove it");
        ("has no back-end".to_owned(), remedy)
    } else if own.all(|b| b.config.weight == Weight::ZERO) {
        let what = "all of its back-ends have weight 0, so that none takes requests".to_owned();
        (what, "give one of them a weight above 0".to_owned())
    } else {
        return;
    };
    reader.wrong(&section.key("name"), section.span_of("name"), wrong);
}

/// The pool of a back-end is there, and what is of the pool `default` alone is not set.
fn checked(reader: &mut ConfigReader<'_>, backend: &Answering, pools: &[ReadPool]) {
    let Some(name) = &backend.config.pool else { return };
    if pools.iter().all(|pool| pool.name != *name) {
        reader.wrong(&backend.pool_path, backend.pool_span.clone(), no_pool(name, pools));
    }
    if !backend.config.partitions.is_empty() {
        let what = "partitions are of the pool `default` alone".to_owned();
        reader.wrong(
            &backend.partitions_path,
            backend.partitions_span.clone(),
            (what, "remove it, or `pool`".to_owned()),
        );
    }
}

/// Each pool has a cookie of its own: one would not know the sessions of the other. `named`: pools that name theirs, with key and place.
fn check_cookies(
    reader: &mut ConfigReader<'_>,
    named: &[(PoolName, (String, Range<usize>))],
    config: &Config,
) {
    let all = std::iter::once((DEFAULT_POOL, config.sticky.as_ref()))
        .chain(config.pools.iter().map(|pool| (&*pool.name, pool.sticky.as_ref())));
    let all: Vec<_> = all.filter_map(|(name, sticky)| Some((name, &*sticky?.cookie))).collect();
    for (pool, (key, span)) in named {
        let Some(own) = all.iter().find(|(name, _)| *name == &**pool) else { continue };
        if let Some((other, cookie)) = all.iter().find(|other| other.0 != own.0 && other.1 == own.1) {
            let what = format!("the sessions of the pool \"{other}\" have the cookie \"{cookie}\", too");
            let remedy = "give each pool a cookie of its own, or remove it".to_owned();
            reader.wrong(key, span.clone(), (what, remedy));
        }
    }
}

/// That there is no pool of this name.
pub(super) fn no_pool(name: &str, pools: &[ReadPool]) -> Wrong {
    let names: String = pools.iter().map(|pool| format!("\"{}\", ", pool.name)).collect();
    let remedy = match names.len() {
        0 => format!("add [[pool]] with `name = \"{name}\"`, or remove it"),
        _ => format!("write one of {names}\"{DEFAULT_POOL}\""),
    };
    (format!("there is no pool \"{name}\""), remedy)
}

/// The pools, with what they have from the pool `default`, whose back-ends alone stay in `config`.
pub(super) fn complete(reader: &mut ConfigReader<'_>, mut config: Config, read: Vec<ReadPool>) -> Config {
    let (first, of_pools): (Vec<_>, Vec<_>) =
        std::mem::take(&mut config.backends).into_iter().partition(|b| b.pool.is_none());
    config.backends = first;
    let complete = |pool: ReadPool| PoolConfig {
        backends: of_pools.iter().filter(|b| b.pool.as_ref() == Some(&pool.name)).cloned().collect(),
        name: Arc::clone(&pool.name),
        policy: pool.policy.unwrap_or_else(|| config.policy.clone()),
        sticky: match pool.sticky {
            Some(own) => Some(own.named(Some(&pool.name))),
            None => config.sticky.clone().map(|of_file| of_file.inherited(&pool.name)),
        },
        target: pool.target.map_or_else(
            || config.target.clone(),
            |own| TargetConfig { hash_key: config.target.hash_key.clone(), ..own },
        ),
        admission: pool.admission.unwrap_or_else(|| config.admission.clone()),
        health: pool.health.unwrap_or_else(|| config.health.clone()),
        ejection: pool.ejection.unwrap_or_else(|| config.ejection.clone()),
        retry_budget: pool.retry_budget.unwrap_or_else(|| config.retry_budget.clone()),
        timeouts: pool.timeouts.map_or_else(
            || config.timeouts.clone(),
            |own| Timeouts {
                connect: own.connect,
                first_byte: own.first_byte,
                body: own.body,
                ..config.timeouts.clone()
            },
        ),
        limits: pool.limits.map_or_else(
            || config.limits.clone(),
            |own| Limits { body_bytes: own.body_bytes, retries: own.retries, ..config.limits.clone() },
        ),
        compression: pool.compression.or_else(|| config.compression.clone()).filter(|c| c.enabled),
    };
    let cookies: Vec<_> =
        read.iter().filter_map(|pool| Some((Arc::clone(&pool.name), pool.cookie.clone()?))).collect();
    config.pools = read.into_iter().map(complete).collect();
    config.compression = config.compression.filter(|compression| compression.enabled);
    config.sticky = config.sticky.map(|sticky| sticky.named(None));
    let around = |policy: &mut PolicyConfig, sticky: Option<&StickyConfig>| {
        if sticky.is_some() {
            *policy = StickyConfig::around(policy);
        }
    };
    around(&mut config.policy, config.sticky.as_ref());
    config.pools.iter_mut().for_each(|pool| around(&mut pool.policy, pool.sticky.as_ref()));
    check_cookies(reader, &cookies, &config);
    config
}
