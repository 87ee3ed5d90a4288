//! Every key that the admin API answers with is in its page.

use std::collections::BTreeSet;

use serde_json::Value;

use super::rig::Rig;
use crate::common::origin::Origin;

const PAGE: &str = include_str!("../../../../../docs/admin.md");

/// Objects whose keys are data.
const MAPS: [&str; 3] = ["stats", "parameters", "answers"];

fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                found.insert(key.clone());
                if !MAPS.contains(&key.as_str()) {
                    keys(value, found);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

/// The part of the page that explains this path.
fn section(path: &str) -> &'static str {
    let path = path.split('?').next().unwrap();
    let begin = format!("\n## `GET {path}");
    let at = PAGE.match_indices(&begin).find(|(at, _)| PAGE[at + begin.len()..].starts_with(['`', '?']));
    let rest = &PAGE[at.unwrap_or_else(|| panic!("no section on {path}")).0 + 4..];
    rest.split_once("\n## ").map_or(rest, |(section, _)| section)
}

#[test]
fn every_key_is_documented() {
    let origin = Origin::echo();
    let directory = tempfile::tempdir().unwrap();
    let tables = format!(
        "[policy]\nname = \"lard_r\"\n[shadow]\npolicy = \"round_robin\"\n[decision_log]\ndirectory = \"{}\"\n",
        directory.path().display()
    );
    let rig = Rig::new(&[&origin], &tables);
    rig.get_times(3, "/a");
    assert_eq!(rig.client().asked("bad target").status(), 400);
    rig.metrics_once(|m| m.sum("plimsoll_refusals_total", "") == 1.0);
    for path in ["/backends", "/policy", "/why?target=/a", "/refusals", "/flows", "/decisions"] {
        let (mut found, section) = (BTreeSet::new(), section(path));
        keys(&rig.get(path).json(), &mut found);
        assert!(!found.is_empty(), "{path}");
        for key in found {
            assert!(section.contains(&format!("`{key}`")), "`{key}` of {path} is not explained");
        }
    }
}
