//! The live and the shadow policy: a name, and whatever parameters that policy declares.

use std::sync::Arc;

use plimsoll_cache::CacheSpec;
use plimsoll_policy::estimator::ClassCost;
use plimsoll_policy::params::{GivenValue, ParamError, ParamSet, ParamSpec, ParamValue, nearest};
use plimsoll_policy::{BuildContext, BuildError, Policy, PolicySpec, Thresholds};
use toml::de::DeValue;

use crate::declare::Entries;
use crate::keys::Default::{Is, Required};
use crate::keys::KeyKind::{Cache, Integer, Size};
use crate::keys::{KeyKind, KeySpec, SIZE_MAX, SectionSpec, key};
use crate::reader::{ConfigReader, DeclaredTable, FoundKey, Wrong, as_number, escaped, quoted};
use crate::value::{ConfigValue, show_size};

/// A policy with its parameters, which it takes.
#[derive(Debug, Clone)]
pub struct PolicyConfig {
    /// The policy.
    pub spec: &'static PolicySpec,
    /// Its parameters.
    pub params: ParamSet,
    /// Seed of its randomness.
    pub seed: u64,
    /// Memory cache of one back-end in bytes, for policies that model it.
    pub cache_bytes: u64,
    /// Replacement policy of that cache.
    pub cache: &'static CacheSpec,
}

impl PartialEq for PolicyConfig {
    fn eq(&self, other: &Self) -> bool {
        self.spec.name == other.spec.name
            && self.params == other.params
            && self.seed == other.seed
            && self.cache_bytes == other.cache_bytes
            && self.cache.name == other.cache.name
    }
}

/// A policy that runs beside the live one and moves no traffic. The `cache_bytes` and `cache` of its policy are also
/// the caches by which its and the live policy's miss ratios are predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct ShadowConfig {
    /// The policy.
    pub policy: PolicyConfig,
}

const SEED: KeySpec =
    key("seed", Integer { min: 0, max: i64::MAX as u64 }, Is("1"), "Seed of its randomness.");
const CACHE_SIZE: KeySpec = key(
    "cache",
    Size { min: 1, max: SIZE_MAX },
    Is("32MiB"),
    "Memory cache of one back-end, for policies that model it.",
);
const CACHE_POLICY: KeySpec = key("cache_policy", Cache, Is("gds"), "Replacement policy of that cache.");

impl PolicyConfig {
    pub(crate) const SECTION: SectionSpec = SectionSpec {
        name: "policy",
        many: false,
        policy_key: Some("name"),
        help: "How a back-end is chosen. Every other key is a parameter of the policy, under its name there.",
        group: &[],
        keys: &[
            key("name", KeyKind::Policy, Is("weighted_round_robin"), "The policy."),
            SEED,
            CACHE_SIZE,
            CACHE_POLICY,
        ],
    };

    /// Reads the table of a live or a shadow policy.
    pub(crate) fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>) -> Option<Self> {
        let name = section.spec.policy_key?;
        let spec = reader.text(section, name, find)?;
        let cache = reader.text(section, "cache_policy", |text| {
            plimsoll_cache::find(text).map_err(|e| {
                let names: Vec<_> = plimsoll_cache::REGISTRY.iter().map(|s| s.name).collect();
                let remedy = format!("did you mean \"{}\"? There are {}", e.nearest, names.join(", "));
                (format!("there is no cache {}", quoted(text)), remedy)
            })
        });
        let seed = reader.integer(section, "seed");
        let cache_bytes = reader.size(section, "cache").unwrap_or_default();
        let params = params(reader, section, spec);
        Some(Self { spec, params, seed, cache_bytes, cache: cache? })
    }

    /// The policy's build context.
    #[must_use]
    pub fn context(&self) -> BuildContext {
        BuildContext {
            seed: self.seed,
            cache_bytes: self.cache_bytes,
            cache: self.cache,
            ..BuildContext::default()
        }
    }

    /// Builds the policy, with this seed of its hash tables. The classes of requests cost this, from class 1 on.
    ///
    /// # Errors
    /// Never for what [`Config::load`](crate::Config::load) or [`Config::parse`](crate::Config::parse) returned.
    pub fn build(
        &self,
        table_seed: u64,
        class_costs: Arc<[ClassCost]>,
    ) -> Result<Box<dyn Policy>, BuildError> {
        self.spec.build(&BuildContext { table_seed, class_costs, ..self.context() }, &self.params)
    }

    /// The thresholds by which LARD's admission limit is computed: `t_low` and `t_high` of the policy, or 25 and 65.
    #[must_use]
    pub fn thresholds(&self) -> Thresholds {
        Thresholds::of(&self.params)
    }

    /// The keys with their values; that of the policy's name is called `name`.
    pub(crate) fn entries(&self, name: &'static str) -> Entries {
        let text = |text: &str| ConfigValue::Text(text.to_owned());
        let mut out = vec![
            (name, text(self.spec.name)),
            ("seed", ConfigValue::Integer(self.seed)),
            ("cache", ConfigValue::Text(show_size(self.cache_bytes))),
            ("cache_policy", text(self.cache.name)),
        ];
        out.extend(self.params.iter().map(|(key, value)| (key, parameter(value))));
        out
    }
}

impl ShadowConfig {
    pub(crate) const SECTION: SectionSpec = SectionSpec {
        name: "shadow",
        many: false,
        policy_key: Some("policy"),
        help: "A policy that is scored beside the live one and moves no traffic; without this table there is none. The cache \
               is also the one by which miss ratios of both are predicted. Every other key is a parameter of the policy.",
        group: &[],
        keys: &[key("policy", KeyKind::Policy, Required, "The policy."), SEED, CACHE_SIZE, CACHE_POLICY],
    };

    /// Reads the table.
    pub(crate) fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>) -> Option<Self> {
        Some(Self { policy: PolicyConfig::read(reader, section)? })
    }
}

/// Shows a whole value as an integer.
fn parameter(value: ParamValue) -> ConfigValue {
    value.as_u64().map_or_else(|| ConfigValue::Number(value.as_f64()), ConfigValue::Integer)
}

fn find(name: &str) -> Result<&'static PolicySpec, Wrong> {
    plimsoll_policy::find(name).map_err(|error| {
        let names: Vec<_> = plimsoll_policy::registered().map(|s| s.name).collect();
        let remedy = match error {
            BuildError::UnknownPolicy { nearest: Some(near), .. } => format!("did you mean \"{near}\"?"),
            _ => format!("write one of {}", names.join(", ")),
        };
        (format!("there is no policy {}", quoted(name)), remedy)
    })
}

/// The parameters in the file, and defaults for the rest.
fn params<'a>(
    reader: &mut ConfigReader<'a>,
    section: &DeclaredTable<'a>,
    spec: &'static PolicySpec,
) -> ParamSet {
    let mut given = Vec::new();
    for key in section.table.into_iter().flat_map(|table| table.keys()) {
        let name = key.get_ref().as_ref();
        if section.spec.key(name).is_some() {
            continue;
        }
        let Some(param) = spec.params.iter().find(|p| p.name == name) else {
            let own = section.spec.keys().map(|k| k.name);
            let known: Vec<_> = own.chain(spec.params.iter().map(|p| p.name)).collect();
            let header = format!("{} with the policy {}", section.spec.header(), spec.name);
            let remedy = match (name, section.spec.policy_key) {
                ("name" | "policy", Some(key)) => format!("write `{key}` for the name of the policy"),
                _ => elsewhere(name, &known).unwrap_or_else(|| reader.unknown_remedy(name, &known, &header)),
            };
            let what = format!("the policy {} has no such parameter", spec.name);
            reader.wrong(&section.key(&escaped(name)), key.span(), (what, remedy));
            continue;
        };
        if let Some(found) = section.found(name)
            && let Some(value) = value(reader, &found, param)
        {
            given.push((param.name, value.into()));
        }
    }
    // Each value is valid, but together they may be inconsistent.
    ParamSet::read(spec.params, given).unwrap_or_else(|error| {
        conflict(reader, section, spec, &error);
        ParamSet::defaults(spec.params)
    })
}

/// The policies that have the key, for an unknown key without a near match.
fn elsewhere(name: &str, known: &[&str]) -> Option<String> {
    if nearest(name, known.iter().copied()).is_some() {
        return None;
    }
    let with = plimsoll_policy::registered().filter(|s| s.params.iter().any(|p| p.name == name));
    let with: Vec<_> = with.map(|s| s.name).collect();
    (!with.is_empty()).then(|| format!("remove it; it is a parameter of {}", with.join(", ")))
}

fn value(reader: &mut ConfigReader<'_>, found: &FoundKey<'_>, param: &ParamSpec) -> Option<ParamValue> {
    let remedy = || format!("write {}", param.accepts());
    let given = match found.value {
        DeValue::Integer(n) => match i64::from_str_radix(n.as_str(), n.radix()) {
            Ok(n) => u64::try_from(n).map_or(GivenValue::Number(n as f64), GivenValue::Integer),
            Err(_) => GivenValue::Text(n.to_string()),
        },
        DeValue::Float(x) => {
            as_number(found.value).map_or_else(|| GivenValue::Text(x.as_str().to_owned()), GivenValue::Number)
        }
        _ => {
            reader.wrong_value(found, ("is no number".to_owned(), remedy()));
            return None;
        }
    };
    let value = param.read(&given);
    value.map_err(|_| reader.wrong_value(found, (format!("{given} is not accepted"), remedy()))).ok()
}

/// Reports inconsistent values at the first of them in the file.
fn conflict(
    reader: &mut ConfigReader<'_>,
    section: &DeclaredTable<'_>,
    spec: &PolicySpec,
    error: &ParamError,
) {
    let keys: &[&str] = if let ParamError::Conflict { keys, .. } = error { keys } else { &[] };
    let (key, span) = match keys.iter().find(|key| section.found(key).is_some()) {
        Some(name) => (section.key(name), section.span_of(name)),
        None => (section.path.clone(), section.span.clone()),
    };
    let values: Vec<String> = spec.params.iter().map(|p| format!("{} ({})", p.name, p.default)).collect();
    let remedy = format!("change one of them, or leave them to their defaults: {}", values.join(", "));
    reader.wrong(&key, span, (error.to_string(), remedy));
}
