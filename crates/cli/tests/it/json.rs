//! Every key that a command prints as JSON is in the documentation.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::{plimsoll, text};

const JSON: &str = include_str!("../../../../docs/json.md");
const GUIDE: &str = include_str!("../../../../docs/guide.md");

/// Objects whose keys are data, such as the names of a policy's parameters.
const MAPS: [&str; 5] = ["params", "policy_stats", "not_counted", "settings", "settings_kept"];

fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                found.insert(key.clone());
                if !(MAPS.contains(&key.as_str()) && value.is_object()) {
                    keys(value, found);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

/// The part of a page under this heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let rest = page.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no {heading}")).1;
    rest.split_once("\n## ").map_or(rest, |(section, _)| section)
}

/// Fails unless this section of the page on JSON has each key.
pub(crate) fn assert_keys_documented(value: &Value, heading: &str) {
    let mut found = BTreeSet::new();
    keys(value, &mut found);
    for key in found {
        assert!(section(JSON, heading).contains(&format!("`{key}`")), "`{key}` is not documented");
    }
}

/// Fails unless the section has each key of the output, which is an object, a list, or objects by line.
fn assert_documented(args: &[&str], documented: &str) {
    let output = plimsoll(args);
    let out = text(&output.stdout);
    let values = serde_json::Deserializer::from_str(&out).into_iter::<Value>();
    let mut found = BTreeSet::new();
    for value in values {
        keys(&value.unwrap_or_else(|e| panic!("{args:?}: {e} in {out}")), &mut found);
    }
    assert!(!found.is_empty(), "{args:?} prints no key: {}", text(&output.stderr));
    for key in found {
        assert!(documented.contains(&format!("`{key}`")), "{args:?}: `{key}` is not documented");
    }
}

#[test]
fn what_commands_print_is_documented() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("access.log");
    let mut lines: String = (0..60)
        .map(|n| format!("h - - [01/Jul/1995:00:00:{n:02} -0400] \"GET /{} HTTP/1.0\" 200 9\n", n % 3))
        .collect();
    lines += "nonsense\n";
    std::fs::write(&log, lines).unwrap();
    let log = log.to_str().unwrap();
    assert_documented(&["trace", "stats", log, "--json"], section(JSON, "`plimsoll trace stats`"));
    let simulated = ["simulate", log, "--policy", "adaptload,lard_r", "--backends", "2", "--json"];
    assert_documented(&simulated, section(GUIDE, "11. JSON of a run"));
    for list in [
        &["policies", "--json"][..],
        &["models", "--json"],
        &["hardware", "--json"],
        &["trace", "formats", "--json"],
    ] {
        assert_documented(list, section(JSON, "Lists"));
    }
    let system = ["check", "--system", "--json", "--interface", "lo", "--vip", "10.0.0.1"];
    assert_documented(&system, section(JSON, "`plimsoll check --system`"));
}

#[test]
fn every_command_with_json_is_in_the_table() {
    let table = JSON.split("\n## ").next().unwrap();
    // Commands and, of those that have some, their own.
    let help = |args: &[&str]| text(&plimsoll(&[args, &["--help"]].concat()).stdout);
    let names = |text: &str| -> Vec<String> {
        let Some((_, rest)) = text.split_once("Commands:\n") else { return Vec::new() };
        let list = rest.split_once("\n\n").map_or(rest, |(list, _)| list);
        let first = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        first
            .filter_map(|line| line.split_whitespace().next())
            .filter(|n| *n != "help")
            .map(str::to_owned)
            .collect()
    };
    let mut checked = 0;
    for command in names(&help(&[])) {
        let parts = names(&help(&[&command]));
        let all: Vec<Vec<&str>> = match &parts[..] {
            [] => vec![vec![&command]],
            parts => parts.iter().map(|part| vec![&*command, &**part]).collect(),
        };
        for path in all {
            if help(&path).lines().any(|line| line.trim_start().starts_with("--json")) {
                checked += 1;
                assert!(
                    table.contains(&path.join(" ")),
                    "`plimsoll {}` is not in docs/json.md",
                    path.join(" ")
                );
            }
        }
    }
    assert!(checked > 10, "{checked}");
}
