//! The two text formats of `/metrics`, held to what collectors ask of them.

use std::collections::{BTreeMap, BTreeSet};

use super::rig::{Metrics, Rig};
use crate::common::origin::Origin;

const ASKS_OPEN_METRICS: (&str, &str) =
    ("Accept", "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5");

/// What `promtool check metrics` asks of a family of metrics, beyond the format.
fn lint(name: &str, kind: &str, help: &str) {
    assert!(!help.trim().is_empty(), "{name} has no help");
    assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{name}");
    assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
    for end in ["_count", "_sum", "_bucket", "_info_total"] {
        assert!(!name.ends_with(end), "{name}");
    }
    let words: BTreeSet<&str> = name.split('_').collect();
    // Base units, written out; no type in a name.
    for word in [
        "ms",
        "us",
        "ns",
        "s",
        "sec",
        "milliseconds",
        "kb",
        "mb",
        "kilobytes",
        "percent",
        "counter",
        "gauge",
        "histogram",
    ] {
        assert!(!words.contains(word), "{name} has `{word}` in it");
    }
}

/// Reads the text format 0.0.4 and fails on what it does not allow.
fn parse_plain(text: &str) -> BTreeMap<String, f64> {
    let (mut helps, mut kinds, mut samples) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut current = String::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            assert!(helps.insert(name.to_owned(), help.to_owned()).is_none(), "two helps of {name}");
            // In a help text only these are escaped.
            let mut chars = help.chars();
            while let Some(c) = chars.next() {
                assert!(c != '\\' || matches!(chars.next(), Some('\\' | 'n')), "{line}");
            }
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "two types of {name}");
            lint(name, kind, helps.get(name).map_or("", String::as_str));
            name.clone_into(&mut current);
        } else {
            assert!(!line.starts_with('#'), "{line}");
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let ends: &[&str] =
                if kinds[&current] == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            let end = name.strip_prefix(&*current).unwrap_or_else(|| panic!("{line} is not of {current}"));
            assert!(ends.contains(&end), "{line}");
            assert!(samples.insert(series.to_owned(), value.parse().unwrap()).is_none(), "twice: {series}");
        }
    }
    samples
}

#[test]
fn metrics_in_the_format_that_is_asked_for() {
    let origins = [Origin::echo(), Origin::echo()];
    let rig = Rig::new(
        &[&origins[0], &origins[1]],
        "[policy]\nname = \"lard\"\n[shadow]\npolicy = \"round_robin\"\n",
    );
    rig.get_times(5, "/a");
    rig.metrics_once(|m| m.sum("plimsoll_requests_total", "") == 5.0);
    for accept in [None, Some(("Accept", "*/*")), Some(("Accept", "text/html, text/plain;q=0.5"))] {
        let answer = rig.call("GET", "/metrics", accept.as_slice(), "");
        assert_eq!(answer.field("content-type"), "text/plain; version=0.0.4; charset=utf-8");
        assert_eq!(answer.field("vary"), "Accept");
        let plain = parse_plain(&answer.body);
        assert_eq!(plain["plimsoll_requests_total{code=\"2xx\"}"], 5.0);
        assert!(
            plain.contains_key("plimsoll_backend_response_time_seconds_bucket{le=\"+Inf\",backend=\"b0\"}"),
            "{plain:?}"
        );
    }
    let answer = rig.call("GET", "/metrics", &[ASKS_OPEN_METRICS], "");
    assert_eq!(answer.field("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let open = Metrics::parse(&answer.body);
    let plain = parse_plain(&rig.call("GET", "/metrics", &[], "").body);
    assert!(open.samples.keys().eq(plain.keys()), "the same samples in both");
}
