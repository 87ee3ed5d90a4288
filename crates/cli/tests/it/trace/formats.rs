//! `plimsoll trace formats`, and where users are told of it.

use std::fs;

use plimsoll_trace::formats::FORMATS;

use super::stdout;

#[test]
fn every_format_is_listed_with_its_summary() {
    let json = stdout(&["formats", "--json"]);
    let listed: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(listed.len(), FORMATS.len());
    let text = stdout(&["formats"]);
    for (spec, object) in FORMATS.iter().zip(&listed) {
        assert_eq!(object["name"], spec.format.name());
        assert_eq!(object["summary"], spec.summary);
        assert_eq!(object["recognised_by"], spec.recognised_by);
        assert_eq!(object["written"], spec.format.is_writable());
        // The table breaks long cells into lines, so look for the first word.
        let first = spec.summary.split(' ').next().unwrap();
        assert!(text.contains(spec.format.name()) && text.contains(first), "{text}");
    }
}

#[test]
fn the_documentation_lists_what_the_registry_holds() {
    let path = format!("{}/../../docs/traces.md", env!("CARGO_MANIFEST_DIR"));
    let doc = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (_, rest) = doc.split_once("<!-- generated -->").unwrap();
    let (generated, _) = rest.split_once("<!-- /generated -->").unwrap();
    assert_eq!(
        generated.trim(),
        stdout(&["formats", "--markdown"]).trim(),
        "docs/traces.md is stale: put the output of `plimsoll trace formats --markdown` between its markers"
    );
}

#[test]
fn the_help_leads_to_the_list() {
    assert!(stdout(&["--help"]).contains("formats"));
    for command in ["stats", "convert"] {
        assert!(stdout(&[command, "--help"]).contains("see `plimsoll trace formats`"), "{command}");
    }
}
