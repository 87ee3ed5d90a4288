//! Documentation, schema and example say what the code does. `UPDATE_GOLDEN=1 cargo test -p plimsoll-config` writes
//! what is generated anew.

use std::collections::BTreeSet;
use std::path::PathBuf;

use plimsoll_config::Config;
use plimsoll_policy::REGISTRY;
use serde_json::Value;

use crate::{EXAMPLE, LEAST, parse};

fn document(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Compares with a file, or writes it.
pub(crate) fn golden(path: PathBuf, actual: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = expected.lines().zip(actual.lines()).find(|(a, b)| a != b);
    assert!(
        expected == actual,
        "{} is stale ({differs:?}); UPDATE_GOLDEN=1 accepts this:\n{actual}",
        path.display()
    );
}

#[test]
fn the_reference_is_that_of_the_declarations() {
    let path = document("configuration.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- generated -->").unwrap();
    let (_, after) = rest.split_once("<!-- /generated -->").unwrap();
    let reference = Config::reference();
    golden(path, &format!("{before}<!-- generated -->\n{reference}\n<!-- /generated -->{after}"));
}

#[test]
fn the_schema_is_that_of_the_declarations() {
    golden(document("plimsoll.schema.json"), &Config::json_schema());
}

#[test]
fn the_example_is_good_and_shows_what_it_says() {
    let c = parse(EXAMPLE);
    assert_eq!((c.backends.len(), c.policy.spec.name), (2, "lard_r"));
    // What the comments call defaults are the defaults.
    let bare = parse(&format!("{LEAST}[policy]\nname = \"lard_r\"\n"));
    assert!(c.policy.params.iter().eq(bare.policy.params.iter()));
    assert_eq!((c.health, c.timeouts, c.target), (bare.health, bare.timeouts, bare.target));
    assert_eq!((c.admission, c.admin), (bare.admission, bare.admin));
}

/// Asserts that every key of `value` is declared in `schema`.
fn declared(schema: &Value, value: &Value, path: &str, policy: &[&str]) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let known = &schema["properties"][key];
                assert!(
                    known.is_object() || policy.contains(&key.as_str()),
                    "{path}.{key} is not in the schema"
                );
                declared(known, value, &format!("{path}.{key}"), policy);
            }
        }
        Value::Array(all) if schema["items"].is_object() => {
            all.iter().for_each(|one| declared(&schema["items"], one, path, policy));
        }
        _ => {}
    }
}

#[test]
fn the_schema_knows_every_key_and_every_parameter() {
    let schema: Value = serde_json::from_str(&Config::json_schema()).unwrap();
    let c = parse(EXAMPLE);
    declared(&schema, &c.to_json(), "", &["t_low", "t_high", "k_s", "max_targets"]);
    for (table, name) in [("policy", "name"), ("shadow", "policy")] {
        let branches = schema["properties"][table]["allOf"].as_array().unwrap();
        for spec in REGISTRY {
            let of = |b: &&Value| b["if"]["properties"][name]["enum"][0] == spec.name;
            let properties = branches.iter().find(of).unwrap()["then"]["properties"].as_object().unwrap();
            let keys: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
            let own = [name, "seed", "cache", "cache_policy"];
            let want: BTreeSet<&str> = spec.params.iter().map(|p| p.name).chain(own).collect();
            assert_eq!(keys, want, "{table} {}", spec.name);
        }
    }
}

#[test]
fn every_default_in_the_schema_is_accepted_as_that_default() {
    let schema: Value = serde_json::from_str(&Config::json_schema()).unwrap();
    let least = parse(LEAST);
    let mut checked = 0;
    for (table, section) in schema["properties"].as_object().unwrap() {
        let Some(keys) = section["properties"].as_object() else { continue };
        if ["discovery", "handoff", "direct", "failover", "peers", "classes"].contains(&table.as_str()) {
            // Another file has to be there: see `files`.
            continue;
        }
        let optional = ["partitions", "shadow", "sticky", "compression", "access_log", "decision_log"]
            .contains(&table.as_str());
        for (key, spec) in keys {
            let (default, required) = (&spec["default"], section["required"].as_array());
            if default.is_null() || required.is_some_and(|r| r.iter().any(|k| *k == **key)) {
                continue;
            }
            let policy = if table == "shadow" { "policy = \"lard\"\n" } else { "" };
            let without = format!("{LEAST}[{table}]\n{policy}");
            let with = parse(&format!("{without}{key} = {default}\n"));
            let expected = if optional { parse(&without) } else { least.clone() };
            assert_eq!(with, expected, "{table}.{key} = {default}");
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
}
