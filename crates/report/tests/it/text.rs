//! What goes to a terminal or to another program.

use plimsoll_report::{
    LoadTraffic, Run, TableView, claims_conclusion, claims_table, json_line, measurements_table, runs_table,
};

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

const VIEW: TableView = TableView { width: 80, saturated: true, all_rows: false };

fn printed(runs: &[Run], view: TableView) -> String {
    runs_table(runs, view, "the report has them.")
}

/// Sixteen policies on these numbers of back-ends, the first one the slowest, some with the longest names there are.
fn many(backends: &[usize]) -> Vec<Run> {
    let names = [
        "round_robin",
        "random",
        "weighted_round_robin",
        "least_connections",
        "weighted_least_connections",
        "power_of_two",
        "uri_hash",
        "bounded_load_hash",
        "lb_gc",
        "join_shortest_queue",
        "join_shortest_weighted_queue",
        "sita_e",
        "adaptload",
        "adaptload_queue",
        "lard",
        "lard_r",
    ];
    let of = |(index, name): (usize, &&str), count: usize| {
        let mut run = run(index % 4, count, 1);
        run.policy = (*name).to_owned();
        run.throughput_rps = (900 * count + 111_111 * index) as f64;
        run.response_time_s.as_mut().expect("it has delays").mean = 0.1 + index as f64;
        run
    };
    backends.iter().flat_map(|&count| names.iter().enumerate().map(move |name| of(name, count))).collect()
}

#[test]
fn the_table_of_many_policies_is_as_agreed() {
    assert_golden("many_policies.txt", &printed(&many(&[2, 8]), VIEW));
}

#[test]
fn many_policies_are_sorted_and_folded_and_none_is_hidden() {
    let runs = many(&[8]);
    let first_column = |text: &str| -> Vec<String> {
        let rows = text.lines().skip(2).take_while(|line| !line.is_empty());
        rows.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let folded = printed(&runs, VIEW);
    assert_eq!(
        first_column(&folded),
        [
            // The best three, the best two that others have, and the reader's first, which is the worst.
            "lard_r",
            "lard",
            "adaptload_queue",
            "bounded_load_hash",
            "uri_hash",
            "round_robin",
        ]
    );
    let words = folded.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("10 more policies, from best to worst: adaptload, sita_e, join_shortest_"),
        "{folded}"
    );
    for run in &runs {
        assert!(folded.contains(&run.policy), "{} is hidden: {folded}", run.policy);
    }
    let all = printed(&runs, TableView { all_rows: true, ..VIEW });
    assert_eq!(first_column(&all).len(), 16);
    assert!(!all.contains("more policies"), "{all}");
    // Under given arrivals the mean delay matters.
    let given = printed(&runs, TableView { saturated: false, ..VIEW });
    assert_eq!(first_column(&given)[..2], ["round_robin", "random"]);
    let header = given.lines().next().unwrap();
    assert!(header.contains("mean") && !header.contains("idle%"), "{given}");
    // Up to eight stay in the order in which they were named.
    assert_eq!(first_column(&printed(&runs[..8], VIEW))[..2], ["round_robin", "random"]);
}

#[test]
fn lines_keep_within_the_width() {
    let mut runs = many(&[2, 4, 8]);
    runs[3].lost = 12;
    for width in [60, 80, 100] {
        for (saturated, all_rows) in [(true, true), (true, false), (false, true)] {
            let text = printed(&runs, TableView { width, saturated, all_rows });
            for line in text.lines() {
                assert!(line.chars().count() <= width.into(), "{width}: {line}\n{text}");
            }
        }
    }
    // What is left out is said.
    let text = printed(&runs, VIEW);
    assert!(text.contains("No room for"), "{text}");
    let wide = printed(&runs, TableView { width: 160, ..VIEW });
    assert!(!wide.contains("No room for") && wide.contains("joined%"), "{wide}");
}

#[test]
fn runs_table_is_as_agreed() {
    let mut runs = runs(&[1, 8]);
    runs.push(bare_run());
    assert_golden("runs_table.txt", &printed(&runs, VIEW));
    assert_eq!(printed(&[], VIEW).lines().count(), 2);
}

#[test]
fn runs_are_compared_with_the_first_policy_on_as_many_backends() {
    let runs = [run(3, 8, 1), run(0, 8, 1), run(0, 4, 1)];
    let text = printed(&runs, VIEW);
    let rows = text.lines().filter(|line| line.starts_with("lard_r") || line.starts_with("weighted"));
    let ratios: Vec<&str> = rows.map(|line| line.split_whitespace().nth(2).unwrap()).collect();
    assert!(text.contains("×: req/s over those of lard_r"), "{text}");
    let expected = format!("{:.2}", runs[1].throughput_rps / runs[0].throughput_rps);
    // The fewest back-ends come first.
    assert_eq!(ratios, ["-", "1.00", expected.as_str()]);
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
        "load_information",
        "front_ends",
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
        "load_traffic",
        "connections",
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
    for (width, golden) in [(80, "claims.txt"), (130, "claims_wide.txt")] {
        let mut table = claims_table(&claims);
        let dropped = table.drop_columns(width).join(", ");
        let text = table.to_text_within(width);
        assert!(text.lines().all(|line| line.chars().count() <= width.into()), "{text}");
        assert_golden(golden, &format!("{}\n{text}\nleft out: {dropped}\n", claims_conclusion(&claims)));
    }
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

/// What load information costs has columns where it costs something.
#[test]
fn load_information_has_columns_where_it_costs_something() {
    let of = |messages_rps, cpu, receive_cpu| {
        let mut run = run(0, 8, 1);
        run.load_traffic = Some(LoadTraffic {
            messages: 1,
            messages_rps,
            cpu,
            receive_cpu,
            inquiries: 0,
            discarded: 0,
            polls: 0,
            polls_cut_short: 0,
            poll_time_s: None,
        });
        run
    };
    let wide = TableView { width: 200, ..VIEW };
    let titles = |runs: &[Run]| {
        let text = printed(runs, wide);
        let header = text.lines().next().unwrap();
        ["load msg/s", "load CPU%", "receive CPU%"].map(|title| header.contains(title))
    };
    assert_eq!(titles(&[of(0.0, 0.0, 0.0)]), [false, false, false]);
    assert_eq!(titles(&[of(0.0, 0.0, 0.0), of(20.0, 0.0, 0.0)]), [true, false, false]);
    assert_eq!(titles(&[of(20.0, 0.03, 0.0)]), [true, true, false]);
    let text = printed(&[of(20.0, 0.03, 0.016)], wide);
    assert!(text.contains("receive CPU%") && text.contains("3.0") && text.contains("1.6"), "{text}");
}
