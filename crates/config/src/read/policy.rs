//! The live and the shadow policy: a name, and whatever parameters that policy declares.

use plimsoll_policy::params::{GivenValue, ParamError, ParamSet, ParamSpec, ParamValue, nearest};
use plimsoll_policy::{BuildError, PolicySpec};
use toml::de::DeValue;

use crate::model::{PolicyConfig, ShadowConfig};
use crate::reader::{Found, Reader, Section, Wrong, as_number, escaped, quoted, unknown_remedy};

/// The live policy.
pub(super) fn read<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<PolicyConfig> {
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
    Some(PolicyConfig { spec, params, seed, cache_bytes, cache: cache? })
}

/// The policy beside the live one.
pub(super) fn shadow<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<ShadowConfig> {
    Some(ShadowConfig { policy: read(reader, section)? })
}

fn find(name: &str) -> Result<&'static PolicySpec, Wrong> {
    plimsoll_policy::find(name).map_err(|error| {
        let names: Vec<_> = plimsoll_policy::REGISTRY.iter().map(|s| s.name).collect();
        let remedy = match error {
            BuildError::UnknownPolicy { nearest: Some(near), .. } => format!("did you mean \"{near}\"?"),
            _ => format!("write one of {}", names.join(", ")),
        };
        (format!("there is no policy {}", quoted(name)), remedy)
    })
}

/// The parameters that are in the file over the defaults.
fn params<'a>(reader: &mut Reader<'a>, section: &Section<'a>, spec: &'static PolicySpec) -> ParamSet {
    let mut given = Vec::new();
    for key in section.table.into_iter().flat_map(|table| table.keys()) {
        let name = key.get_ref().as_ref();
        if section.spec.key(name).is_some() {
            continue;
        }
        let Some(param) = spec.params.iter().find(|p| p.name == name) else {
            let own = section.spec.keys.iter().map(|k| k.name);
            let known: Vec<_> = own.chain(spec.params.iter().map(|p| p.name)).collect();
            let header = format!("{} with the policy {}", section.spec.header(), spec.name);
            let remedy = match (name, section.spec.policy_key) {
                ("name" | "policy", Some(key)) => format!("write `{key}` for the name of the policy"),
                _ => elsewhere(name, &known).unwrap_or_else(|| unknown_remedy(name, &known, &header)),
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
    // Each of them is good, but perhaps not all of them together.
    ParamSet::read(spec.params, given).unwrap_or_else(|error| {
        conflict(reader, section, spec, &error);
        ParamSet::defaults(spec.params)
    })
}

/// For a key that no known one is near to: the policies that have it.
fn elsewhere(name: &str, known: &[&str]) -> Option<String> {
    if nearest(name, known.iter().copied()).is_some() {
        return None;
    }
    let with = plimsoll_policy::REGISTRY.iter().filter(|s| s.params.iter().any(|p| p.name == name));
    let with: Vec<_> = with.map(|s| s.name).collect();
    (!with.is_empty()).then(|| format!("remove it; it is a parameter of {}", with.join(", ")))
}

fn value(reader: &mut Reader<'_>, found: &Found<'_>, param: &ParamSpec) -> Option<ParamValue> {
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

/// Reports values that do not go together at the first of them that is in the file.
fn conflict(reader: &mut Reader<'_>, section: &Section<'_>, spec: &PolicySpec, error: &ParamError) {
    let keys: &[&str] = if let ParamError::Conflict { keys, .. } = error { keys } else { &[] };
    let (key, span) = match keys.iter().find(|key| section.found(key).is_some()) {
        Some(name) => (section.key(name), section.span_of(name)),
        None => (section.path.clone(), section.span.clone()),
    };
    let values: Vec<String> = spec.params.iter().map(|p| format!("{} ({})", p.name, p.default)).collect();
    let remedy = format!("change one of them, or leave them to their defaults: {}", values.join(", "));
    reader.wrong(&key, span, (error.to_string(), remedy));
}
