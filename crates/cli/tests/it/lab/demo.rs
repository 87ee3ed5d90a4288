//! `plimsoll lab demo`: the whole system in nodes of its own.

use crate::common::{plimsoll, text};

fn demo(args: &[&str]) -> Vec<serde_json::Value> {
    let output = plimsoll(&[&["lab", "demo", "--json", "--seconds", "1"], args].concat());
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(object: &serde_json::Value, pointer: &str) -> f64 {
    object
        .pointer(pointer)
        .and_then(serde_json::Value::as_f64)
        .unwrap_or_else(|| panic!("{pointer}: {object}"))
}

#[test]
fn a_proxy_passes_every_byte() {
    let results = demo(&["--mechanism", "proxy", "--size", "20KiB", "--connections", "4"]);
    let [proxy] = results.as_slice() else { panic!("{results:?}") };
    assert_eq!(proxy["mechanism"], "proxy");
    assert!(number(proxy, "/requests") > 10.0 && number(proxy, "/failed") == 0.0, "{proxy}");
    assert!(number(proxy, "/front_end/share_of_bytes_to_clients") > 0.999, "{proxy}");
    assert!(number(proxy, "/front_end/sent_bytes") > 20_480.0 * number(proxy, "/requests"), "{proxy}");
    assert!(proxy["handoffs"].is_null(), "{proxy}");
    if proxy["front_end"]["cpu"].is_number() {
        assert!(number(proxy, "/front_end/cpu_per_request_s") > 0.0, "{proxy}");
    }
}

#[test]
fn answers_of_connections_that_are_handed_off_bypass_the_front_end() {
    let results = demo(&["--size", "20KiB", "--connections", "4", "--policy", "round_robin"]);
    let [proxy, handoff] = results.as_slice() else { panic!("{results:?}") };
    assert_eq!((&proxy["mechanism"], &handoff["mechanism"]), (&"proxy".into(), &"handoff".into()));
    assert!(number(handoff, "/requests") > 10.0 && number(handoff, "/failed") == 0.0, "{handoff}");
    assert!(number(handoff, "/handoffs") > 0.0, "{handoff}");
    let share = |one| number(one, "/front_end/share_of_bytes_to_clients");
    assert!(share(proxy) > 0.999 && share(handoff) < 0.05, "{results:?}");
}

#[test]
fn small_answers_on_new_connections_are_handed_off() {
    let results = demo(&["--new-connections", "--size", "1KiB", "--connections", "4"]);
    let [_, handoff] = results.as_slice() else { panic!("{results:?}") };
    assert!(number(handoff, "/requests") > 10.0 && number(handoff, "/failed") == 0.0, "{handoff}");
    let (requests, handoffs) = (number(handoff, "/requests"), number(handoff, "/handoffs"));
    assert!(handoffs >= 0.9 * requests, "{handoff}");
    assert!(number(handoff, "/front_end/share_of_bytes_to_clients") < 0.5, "{handoff}");
}

#[test]
fn packets_of_distributed_connections_pass_and_answers_do_not() {
    let results =
        demo(&["--mechanism", "direct", "--new-connections", "--size", "20KiB", "--connections", "4"]);
    let [proxy, direct] = results.as_slice() else { panic!("{results:?}") };
    assert_eq!((&proxy["mechanism"], &direct["mechanism"]), (&"proxy".into(), &"direct".into()));
    assert_eq!(direct["policy"], "least_connections");
    assert!(number(direct, "/requests") > 10.0 && number(direct, "/failed") == 0.0, "{direct}");
    assert!(number(direct, "/distributed") >= 0.9 * number(direct, "/requests"), "{direct}");
    assert!(proxy["distributed"].is_null() && direct["handoffs"].is_null(), "{results:?}");
    let share = |one| number(one, "/front_end/share_of_bytes_to_clients");
    assert!(share(proxy) > 0.999 && share(direct) < 0.05, "{results:?}");
}

#[test]
fn clones_answer_what_belongs_to_another_node() {
    let results = demo(&["--mechanism", "clone", "--backends", "3", "--size", "20KiB", "--connections", "6"]);
    let [proxy, direct, clone] = results.as_slice() else { panic!("{results:?}") };
    assert_eq!((&direct["mechanism"], &clone["mechanism"]), (&"direct".into(), &"clone".into()));
    assert!(number(clone, "/requests") > 10.0 && number(clone, "/failed") == 0.0, "{clone}");
    // Of three nodes two do not have a document.
    let share = number(clone, "/clones/by_clones") / number(clone, "/clones/requests");
    assert!((0.4..0.9).contains(&share), "{clone}");
    assert!(proxy["clones"].is_null() && direct["clones"].is_null(), "{results:?}");
    assert!(number(clone, "/front_end/share_of_bytes_to_clients") < 0.05, "{clone}");
}

#[test]
fn a_policy_that_needs_content_is_refused_with_direct() {
    let output = plimsoll(&["lab", "demo", "--mechanism", "direct", "--policy", "lard"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("lard") && stderr.contains("direct"), "{stderr}");
}

#[test]
fn a_configuration_that_the_front_end_refuses_is_shown() {
    let output = plimsoll(&["lab", "demo", "--mechanism", "proxy", "--policy", "no_such_policy"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("no_such_policy"), "{stderr}");
}
