//! What goes to a terminal or to another program.

use plimsoll_report::{Run, claims_conclusion, claims_table, json_line, measurements_table, runs_table};

use crate::{
    golden::assert_golden,
    sample::{run, runs},
    sample_claims::claims,
};

/// A run of a model without cache and disk that answered nothing.
fn bare_run() -> Run {
    let mut bare = run(0, 2, 7);
    bare.model = "fifo".to_owned();
    bare.params.clear();
    bare.policy_stats.clear();
    bare.per_backend.truncate(1);
    bare.per_backend[0].miss_ratio = None;
    bare.per_backend[0].disk = None;
    (bare.miss_ratio, bare.joined_ratio, bare.response_time_s, bare.slowdown) = (None, None, None, None);
    bare.utilization.disk = None;
    bare.trace.sha256 = None;
    bare.trace.path = "a\"b\n</script>".to_owned();
    bare.throughput_rps = f64::NAN;
    bare
}

#[test]
fn runs_table_is_as_agreed() {
    let mut runs = runs(&[1, 8]);
    runs.push(bare_run());
    assert_golden("runs_table.txt", &runs_table(&runs));
    assert_eq!(runs_table(&[]).lines().count(), 2);
}

#[test]
fn runs_are_compared_with_the_first_policy_on_as_many_backends() {
    let runs = [run(3, 8, 1), run(0, 8, 1), run(0, 4, 1)];
    let text = runs_table(&runs);
    let last: Vec<&str> = text.lines().skip(2).map(|line| line.split_whitespace().last().unwrap()).collect();
    assert!(text.lines().next().unwrap().ends_with("× lard_r"), "{text}");
    let expected = format!("{:.2}", runs[1].throughput_rps / runs[0].throughput_rps);
    assert_eq!(last, ["1.00", expected.as_str(), "-"]);
}

#[test]
fn json_line_is_as_agreed() {
    let mut timed = run(3, 2, 1);
    (timed.wall_s, timed.requests_per_wall_s) = (Some(0.25), Some(2e6));
    assert_golden("runs.jsonl", &format!("{}\n{}\n", json_line(&timed), json_line(&bare_run())));
}

#[test]
fn json_line_has_the_documented_keys_in_order() {
    let line = json_line(&bare_run());
    assert!(!line.contains('\n'));
    let keys = [
        "policy",
        "model",
        "backends",
        "seed",
        "params",
        "requests",
        "completed",
        "rejected",
        "lost",
        "sent_bytes",
        "simulated_s",
        "throughput_rps",
        "miss_ratio",
        "joined_ratio",
        "idle_ratio",
        "response_time_s",
        "slowdown",
        "utilization",
        "per_backend",
        "policy_stats",
        "policy_tables",
        "wall_s",
        "requests_per_wall_s",
        "trace",
    ];
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line).unwrap();
    let mut sorted = keys;
    sorted.sort_unstable();
    assert_eq!(object.keys().map(String::as_str).collect::<Vec<_>>(), sorted);
    // Behind the first of each key stands the next one: the keys of inner objects come later than their owner's.
    let mut rest = line.as_str();
    for key in keys {
        let at =
            rest.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("{key} is missing or out of order"));
        rest = &rest[at + key.len()..];
    }
    for key in ["miss_ratio", "response_time_s", "slowdown", "wall_s", "throughput_rps"] {
        assert!(object[key].is_null(), "{key}");
    }
}

#[test]
fn json_line_reads_back() {
    let mut original = run(2, 4, 9);
    let read: Run = serde_json::from_str(&json_line(&original)).unwrap();
    original.load_series = plimsoll_report::LoadSeries::default();
    assert_eq!(read, original);
}

#[test]
fn claims_are_as_agreed() {
    let claims = claims();
    let text = format!("{}\n{}\n", claims_conclusion(&claims), claims_table(&claims).to_text_within(100));
    assert_golden("claims.txt", &text);
    assert_golden("claims.html", &claims_table(&claims).to_html());
}

#[test]
fn measurements_are_grouped_by_workload() {
    let mut claims = claims();
    claims.truncate(2);
    claims[0].measured.iter_mut().for_each(|measured| measured.workload.truncate(4));
    assert_eq!(
        measurements_table(&claims).to_text(),
        concat!(
            "id  workload  median  min … max  n\n",
            "──────────────────────────────────\n",
            "7a  rice       3.9 ×  3.6 … 4.4  5\n",
            "7b  rice-0      72 %          -  1\n",
            "7b  rice-1     140 %          -  1\n"
        )
    );
}

#[test]
fn claims_have_a_median_and_a_spread() {
    let mut claims = claims();
    let claim = &mut claims[0];
    assert_eq!((claim.min(), claim.median(), claim.max()), (Some(3.6), Some(3.9), Some(4.4)));
    claim.measured[0].value = f64::NAN;
    assert_eq!(claim.median(), Some(4.0));
    claim.measured.clear();
    assert_eq!((claim.min(), claim.median(), claim.max()), (None, None, None));
    assert!(claims_table(&claims).to_text().contains("holds"));
}
