//! The live and the shadow policy: a name, and whatever parameters that policy declares.

use plimsoll_policy::params::{self, ParamError, ParamKind, ParamSpec};
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
    let before = reader.errors.len();
    let settings = settings(reader, section, spec);
    let config = PolicyConfig { spec, settings, seed, cache_bytes, cache: cache? };
    if reader.errors.len() == before
        && let Err(error) = config.build()
    {
        unbuildable(reader, section, spec, &error);
    }
    Some(config)
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

/// The parameters that are in the file, as texts.
fn settings<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    spec: &'static PolicySpec,
) -> Vec<(String, String)> {
    let mut out = Vec::new();
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
            && let Some(text) = setting(reader, &found, param)
        {
            out.push((name.to_owned(), text));
        }
    }
    out
}

/// For a key that no known one is near to: the policies that have it.
fn elsewhere(name: &str, known: &[&str]) -> Option<String> {
    if params::nearest(name, known.iter().copied()).is_some() {
        return None;
    }
    let with = plimsoll_policy::REGISTRY.iter().filter(|s| s.params.iter().any(|p| p.name == name));
    let with: Vec<_> = with.map(|s| s.name).collect();
    (!with.is_empty()).then(|| format!("remove it; it is a parameter of {}", with.join(", ")))
}

fn setting(reader: &mut Reader<'_>, found: &Found<'_>, param: &'static ParamSpec) -> Option<String> {
    let unit = if param.unit.is_empty() { String::new() } else { format!(" ({})", param.unit) };
    let remedy = format!("write {}{unit}", param.kind);
    let text = match found.value {
        DeValue::Integer(n) => {
            i64::from_str_radix(n.as_str(), n.radix()).map_or_else(|_| n.to_string(), |n| n.to_string())
        }
        DeValue::Float(x) => as_number(found.value).map_or_else(|| x.as_str().to_owned(), |x| x.to_string()),
        _ => {
            reader.wrong_value(found, ("is no number".to_owned(), remedy));
            return None;
        }
    };
    let checked = match param.kind {
        ParamKind::Integer { .. } => params::read::<u64>(param, &text).map(drop),
        ParamKind::Number { .. } => params::read::<f64>(param, &text).map(drop),
    };
    if checked.is_err() {
        reader.wrong_value(found, (format!("{text} is not accepted"), remedy));
        return None;
    }
    Some(text)
}

/// Each parameter is good, but not all of them together.
fn unbuildable(reader: &mut Reader<'_>, section: &Section<'_>, spec: &PolicySpec, error: &ParamError) {
    let why = error.to_string();
    // The first parameter that the message names, of those that are in the file.
    let named = spec.params.iter().filter(|p| section.found(p.name).is_some());
    let blamed = named.filter_map(|p| Some((why.find(p.name)?, p))).min_by_key(|(at, _)| *at).map(|(_, p)| p);
    let (key, span) = match blamed {
        Some(param) => (section.key(param.name), section.span_of(param.name)),
        None => (section.path.clone(), section.span.clone()),
    };
    let values: Vec<String> = spec.params.iter().map(|p| format!("{} ({})", p.name, (p.default)())).collect();
    let remedy = format!("change one of them, or leave them to their defaults: {}", values.join(", "));
    reader.wrong(&key, span, (why, remedy));
}
