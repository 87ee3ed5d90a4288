//! The JSON schema of the configuration file, from the declarations of its keys and of the policies' parameters.

use plimsoll_policy::params::{ParamKind, ParamSpec};
use plimsoll_policy::{PolicySpec, registered};
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::keys::{Default, KeyKind, KeySpec, SectionSpec, cache_names, policy_names};
use crate::sections::{SECTIONS, tables_below};

impl Config {
    /// The JSON schema (draft 7, which editors for TOML understand) of the configuration file, as text.
    #[must_use]
    pub fn json_schema() -> String {
        let mut properties = Map::new();
        for section in SECTIONS {
            if section.name.is_empty() {
                properties.extend(keys(section));
            } else if section.many {
                let items = table(section);
                let list =
                    json!({ "type": "array", "minItems": 1, "description": section.help(), "items": items });
                properties.insert(section.name.to_owned(), list);
            } else {
                properties.insert(section.name.to_owned(), table(section));
            }
        }
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "Configuration of plimsoll",
            "type": "object",
            "properties": properties,
            "required": ["listener"],
            "anyOf": [{ "required": ["backend"] }, { "required": ["discovery"] }],
            "additionalProperties": false,
        });
        format!("{schema:#}\n")
    }
}

fn keys(section: &SectionSpec) -> Map<String, Value> {
    section.keys().map(|k| (k.name.to_owned(), key(k))).collect()
}

fn table(section: &SectionSpec) -> Value {
    let required: Vec<&str> =
        section.keys().filter(|k| matches!(k.default, Default::Required)).map(|k| k.name).collect();
    let mut properties = keys(section);
    for &below in tables_below(section.name) {
        properties.insert(below.to_owned(), json!({ "$ref": format!("#/properties/{below}") }));
    }
    let mut out = json!({ "type": "object", "description": section.help(), "properties": properties });
    if !required.is_empty() {
        out["required"] = json!(required);
    }
    match section.policy_key {
        None => out["additionalProperties"] = json!(false),
        Some(name) => out["allOf"] = registered().map(|spec| with_policy(section, name, spec)).collect(),
    }
    out
}

/// The further keys of a table that names this policy.
fn with_policy(section: &SectionSpec, name: &str, spec: &PolicySpec) -> Value {
    let is_default =
        matches!(section.key(name).map(|k| k.default), Some(Default::Is(text)) if text == spec.name);
    let names: Vec<&str> = std::iter::once(spec.name).chain(spec.aliases.iter().copied()).collect();
    let mut condition = json!({ "properties": { name: { "enum": names } } });
    // A condition on an absent key holds, so that the default policy needs no more.
    if !is_default {
        condition["required"] = json!([name]);
    }
    let mut properties: Map<String, Value> =
        section.keys().map(|k| (k.name.to_owned(), json!(true))).collect();
    properties.extend(spec.params.iter().map(|p| (p.name.to_owned(), parameter(p))));
    json!({ "if": condition, "then": { "properties": properties, "additionalProperties": false } })
}

fn parameter(param: &ParamSpec) -> Value {
    let unit = if param.unit.is_empty() { String::new() } else { format!(" Unit: {}.", param.unit) };
    let description = format!("{}{unit}", param.help.trim());
    match param.kind {
        ParamKind::Integer { min, max } => {
            json!({ "description": description, "default": param.default, "type": "integer", "minimum": min, "maximum": max })
        }
        ParamKind::Number { min, max } | ParamKind::Seconds { min, max } => {
            json!({ "description": description, "default": param.default, "type": "number", "minimum": min, "maximum": max })
        }
    }
}

fn key(key: &KeySpec) -> Value {
    let mut out = match key.kind {
        KeyKind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        KeyKind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        KeyKind::Flag => json!({ "type": "boolean" }),
        KeyKind::Size { min, max } | KeyKind::SizeOrNone { min, max } => {
            let none = if matches!(key.kind, KeyKind::SizeOrNone { .. }) { "none|" } else { "" };
            json!({ "anyOf": [
                { "type": "integer", "minimum": min, "maximum": max },
                { "type": "string", "pattern": format!("^({none}[0-9.]+ *([kKmMgGtT][iI]?)?[bB]?)$") },
            ] })
        }
        KeyKind::Duration | KeyKind::DurationOrZero => {
            json!({ "type": "string", "examples": ["250ms", "10s", "5m"] })
        }
        KeyKind::Choice(words) => json!({ "enum": words }),
        KeyKind::ChoiceOrInteger { words, min, max } => {
            json!({ "anyOf": [{ "enum": words }, { "type": "integer", "minimum": min, "maximum": max }] })
        }
        KeyKind::Policy => json!({ "enum": policy_names() }),
        KeyKind::Cache => json!({ "enum": cache_names() }),
        KeyKind::Text(_) => json!({ "type": "string", "minLength": 1 }),
        KeyKind::Texts(_) => json!({ "type": "array", "items": { "type": "string" } }),
    };
    out["description"] = json!(format!("{} Accepts {}.", key.help(), key.kind.accepts()));
    if let Default::Is(text) = key.default {
        let literal = key.kind.literal(text);
        out["default"] = serde_json::from_str(&literal).unwrap_or(Value::Null);
    }
    out
}
