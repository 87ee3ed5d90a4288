//! An advice that is made up, and what is told of it: compared with `tests/golden/advice.txt`. `UPDATE_GOLDEN=1` writes that anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use plimsoll_sim::hardware::PAPER;

use super::advice::Advice;
use super::config_text::{haproxy_lines, nginx_lines, plimsoll_toml};
use super::contestants::CONTESTANTS;
use super::facts::LogFacts;
use super::finals::FinalFigures;
use super::inquiry::AdviseTarget;
use super::json::advice_json;
use super::levers::AdviseLever;
use super::memory::MemoryStep;
use super::report::advice_report;
use super::sizing::PolicySize;
use super::stress::{StressMeasure, StressOutcome, WARM};
use super::tables::{AdviceTable, advice_tables};
use super::verdict::verdict;
use super::words::advice_words;

fn facts() -> LogFacts {
    LogFacts {
        requests: 1_234_567,
        targets: 8_901,
        documents_bytes: 900 << 20,
        cover99_bytes: 400 << 20,
        answer_mean_bytes: 12_345.0,
        top_share: 0.31,
        top_target: "/index.html".to_owned(),
        once_share: 0.25,
        not_counted_share: 0.0,
        not_counted: Vec::new(),
        has_one_time: false,
        duration_s: 86_400.0,
        mean_rps: Some(14.3),
        peak_rps: Some(60.0),
    }
}

/// The same under other conditions.
fn made_up_stress() -> Vec<StressOutcome> {
    vec![
        StressOutcome {
            condition: WARM,
            measure: StressMeasure::Throughput,
            values: vec![100.0, 100.0, 120.0, 110.0, 120.0, 125.0],
        },
        StressOutcome {
            condition: "half the memory, saturated",
            measure: StressMeasure::Throughput,
            values: vec![50.0, 50.0, 120.0, 100.0, 90.0, 100.0],
        },
        StressOutcome {
            condition: "load at 90 %",
            measure: StressMeasure::Slowdown,
            values: vec![9.0, 9.0, 4.0, 5.0, 3.0, 2.0],
        },
    ]
}

/// Policies whose blocks take this long at saturation, and whose answers do at the peak.
fn made_up(block_s: [f64; 6], response_s: [f64; 6]) -> Advice {
    let each = CONTESTANTS.iter().zip(block_s).zip(response_s);
    let figures = each.map(|((of, block_s), response_s)| FinalFigures {
        policy: of.policy,
        capacity_rps: 1000.0 / block_s,
        miss_ratio: block_s / 20.0,
        disk: 0.9,
        cpu: 0.5,
        peak_mean_s: response_s,
        peak_p99_s: 8.0 * response_s,
        own_p99_s: Some(9.0 * response_s),
        unanswered: 0,
        answer_mean_bytes: 12_345.0,
        // Every second block is a fifth slower, and the one after it faster.
        block_s: (0..30).map(|block| block_s * if block % 2 == 0 { 1.2 } else { 0.8 }).collect(),
        block_network_s: Vec::new(),
        block_response_s: vec![response_s; 30],
    });
    let finals: Vec<FinalFigures> = figures.collect();
    let size = |(place, figures): (usize, &FinalFigures)| PolicySize {
        policy: figures.policy,
        fewest: Some(9 - place),
        capacity_rps: BTreeMap::from([(1, figures.capacity_rps / 4.0), (4, figures.capacity_rps)]),
    };
    Advice {
        facts: facts(),
        sampled: Some(300_000),
        briefly: Some(250_000),
        hardware: &PAPER,
        costs: vec!["connect_us = 19.8".to_owned()],
        network_rps: 1e9,
        target: AdviseTarget {
            peak_rps: 120.0,
            times_own_peak: Some(2.0),
            assumed: false,
            p99_s: 0.25,
            idle_p99_s: None,
        },
        memory_bytes: 64 << 20,
        memory_steps: [32, 64]
            .map(|mib: u64| MemoryStep { memory_bytes: mib << 20, capacity_rps: vec![mib as f64; 6] })
            .to_vec(),
        memory_backends: 3,
        holds_all: false,
        backends: 4,
        most_backends: 256,
        backends_given: false,
        sizes: finals.iter().enumerate().map(size).collect(),
        verdict: verdict(&finals, 120.0, false, 1),
        finals,
        stress: made_up_stress(),
        levers: vec![
            AdviseLever { change: "half the memory".to_owned(), capacity_rps: 400.0, ratio: 0.8 },
            AdviseLever { change: "t_low = 12 in place of 25".to_owned(), capacity_rps: 505.0, ratio: 1.01 },
        ],
        strips_query: false,
        seed: 1,
    }
}

/// Everything that is told of an advice.
fn told(advice: &Advice) -> String {
    let words = advice_words(advice);
    let mut out = String::new();
    for (name, texts) in [
        ("answer", &words.answer),
        ("loses", &words.loses),
        ("matters", &words.matters),
        ("notes", &words.notes),
    ] {
        let _ = writeln!(out, "{name}:\n- {}", texts.join("\n- "));
    }
    for AdviceTable { heading, table, .. } in advice_tables(advice, &words) {
        let _ = writeln!(out, "{heading}\n{}", table.to_text());
    }
    for lines in
        [Some(plimsoll_toml(advice, "plimsoll advise LOG")), haproxy_lines(advice), nginx_lines(advice)]
    {
        let _ = writeln!(out, "{}", lines.unwrap_or_else(|| "none\n".to_owned()));
    }
    out
}

#[test]
fn what_is_told_is_as_before() {
    let locality = made_up([9.0, 8.0, 4.0, 5.0, 3.0, 2.0], [0.2, 0.2, 0.1, 0.1, 0.05, 0.02]);
    let hashing = made_up([9.0, 8.0, 4.0, 5.0, 4.0, 3.95], [0.1; 6]);
    let overloaded = made_up([90.0, 80.0, 4.0, 2.0, 4.0, 3.9], [40.0, 40.0, 0.3, 0.1, 0.1, 0.1]);
    let any = Advice {
        target: AdviseTarget { peak_rps: 5.0, times_own_peak: None, ..locality.target },
        sampled: None,
        memory_steps: Vec::new(),
        ..made_up([1.0; 6], [0.1; 6])
    };
    let paths = Advice { strips_query: true, ..made_up([9.0, 8.0, 4.0, 5.0, 4.0, 3.95], [0.1; 6]) };
    let mut carrier = made_up([1.0; 6], [0.1; 6]);
    carrier.verdict = carrier.verdict.of_carrier("lard_auto", &carrier.finals, 120.0, 1);
    carrier.sizes[0].fewest = None;
    let all = [
        ("LOCALITY", locality),
        ("HASHING", hashing),
        ("BOUNDED HASHING", overloaded),
        ("ANY", any),
        ("HASHING PATHS", paths),
        ("CARRIES", carrier),
    ];
    let all: Vec<String> = all.iter().map(|(name, advice)| format!("{name}\n\n{}", told(advice))).collect();
    let all = all.join("\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/advice.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &all).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert!(all == golden, "{} differs; UPDATE_GOLDEN=1 writes it anew:\n{all}", path.display());
}

#[test]
fn the_configuration_is_good_whatever_the_log_is_called() {
    let advice = Advice { strips_query: true, ..made_up([1.0; 6], [0.1; 6]) };
    let text = plimsoll_toml(&advice, "plimsoll advise 'a\nx = 1\r.log'");
    assert!(text.starts_with("# Advised by `plimsoll advise 'a\\nx = 1\\r.log'`:\n#"), "{text}");
    assert!(text.contains("\n[target]\nkey = \"path\"\n"), "{text}");
}

#[test]
fn report_and_json_say_the_same() {
    let advice = made_up([9.0, 8.0, 4.0, 5.0, 4.0, 3.95], [0.1; 6]);
    let html = advice_report(&advice, "access.log", "plimsoll advise access.log").to_html();
    let json = advice_json(&advice, "plimsoll advise access.log");
    assert_eq!((json["policy"].as_str(), json["reason"].as_str()), (Some("uri_hash"), Some("hashing")));
    let first = json["answer"][0].as_str().unwrap();
    assert!(html.contains(first), "{first}");
    for lines in ["balance uri whole", "hash $request_uri consistent;", "name = &#34;uri_hash&#34;"] {
        assert!(html.contains(lines) || html.contains(&lines.replace("&#34;", "&quot;")), "{lines}");
    }
    assert!(json["nginx"].as_str().unwrap().contains("server 192.0.2.4:80;"));
    assert_eq!(json["verdict"]["gains"][0]["over"], "round_robin");
}

/// HAProxy's own check of these lines behind a front-end; `None` where it is not installed.
fn haproxy_says(lines: &str) -> Option<(bool, String)> {
    let before = "defaults\n    mode http\n    timeout client 1s\n    timeout server 1s\n    timeout connect 1s\n\nfrontend f\n    \
                  bind 127.0.0.1:8080\n    default_backend site\n\ndefaults\n    timeout server 1s\n    timeout connect 1s\n\n";
    let file = std::env::temp_dir().join(format!("plimsoll-haproxy-{}.cfg", std::process::id()));
    std::fs::write(&file, format!("{before}{lines}")).unwrap();
    let run = |program| std::process::Command::new(program).arg("-c").arg("-f").arg(&file).output().ok();
    let output = ["haproxy", "/usr/sbin/haproxy"].into_iter().find_map(run);
    std::fs::remove_file(&file).unwrap();
    let output = output?;
    let said =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    Some((output.status.success(), said))
}

#[test]
fn haproxy_takes_its_lines_without_falling_back_to_turns() {
    // By itself a backend is of the mode `tcp`, in which HAProxy takes hashing of URIs for a slip, and takes turns.
    let hashing = made_up([9.0, 8.0, 4.0, 5.0, 4.0, 3.95], [0.1; 6]);
    let bounded = made_up([90.0, 80.0, 4.0, 2.0, 4.0, 3.9], [40.0, 40.0, 0.3, 0.1, 0.1, 0.1]);
    for advice in [hashing, bounded, made_up([1.0; 6], [0.1; 6])] {
        let lines = haproxy_lines(&advice).unwrap();
        assert!(lines.starts_with("backend site\n    mode http\n"), "{lines}");
        let Some((good, said)) = haproxy_says(&lines) else {
            eprintln!("skipped: haproxy is not installed");
            return;
        };
        assert!(good && !said.contains("alling back") && !said.contains("WARNING"), "{lines}{said}");
    }
}

#[test]
fn a_cluster_that_was_given_is_judged_by_what_it_did() {
    let mut advice = Advice { backends: 100, backends_given: true, ..made_up([1.0; 6], [0.02; 6]) };
    advice.sizes.iter_mut().for_each(|size| size.fewest = None);
    assert!(advice.carries());
    assert!(plimsoll_toml(&advice, "").contains("that carries 120 requests/s"));
    advice.target.peak_rps = 701.0;
    assert!(!advice.carries() && !advice.overloads(advice.own()));
    assert!(plimsoll_toml(&advice, "").contains("that falls short of 701 requests/s"));
}

#[test]
fn nobody_is_told_times_of_an_overloaded_cluster() {
    let mut advice = made_up([1.0; 6], [123.0; 6]);
    advice.target.peak_rps = 1_001.0;
    let text = told(&advice);
    assert!(text.contains("so that queues grow as long as the peak lasts"), "{text}");
    assert!(!text.contains("answer of 100 would take") && !text.contains("answers then take"), "{text}");
    assert!(!text.contains(" min\n"), "{text}");
}

#[test]
fn what_is_surely_better_or_worse_is_not_called_unsure() {
    // Locality is behind hashing.
    let behind = made_up([9.0, 8.0, 4.0, 5.0, 6.0, 6.0], [0.1; 6]);
    let text = told(&behind);
    assert!(
        text.contains("0.67 (0.67 to 0.67) times as many requests/s as uri_hash: it is behind."),
        "{text}"
    );
    assert!(!text.contains("not surely better"), "{text}");
    // The best hashing is not surely better than the simpler one.
    let near = told(&made_up([9.0, 8.0, 4.0, 3.95, 6.0, 6.0], [0.1; 6]));
    assert!(
        near.contains("with bounded_load_hash: neither is surely better in all, and uri_hash is simpler"),
        "{near}"
    );
    // And here as good, and nothing else.
    let equal = told(&made_up([9.0, 8.0, 4.0, 5.0, 4.0, 4.0], [0.1; 6]));
    assert!(
        equal.contains("1.00 (1.00 to 1.00) times as many requests/s as uri_hash: no difference."),
        "{equal}"
    );
}

#[test]
fn a_log_that_is_too_short_for_so_many_back_ends_is_said_to_be() {
    let mut advice = Advice { backends: 9, most_backends: 8, ..made_up([1.0; 6], [0.1; 6]) };
    assert!(advice_words(&advice).answer.iter().any(|line| line.contains("too few to judge 9 back-ends")));
    advice.backends = 8;
    advice.sizes[0].fewest = None;
    let words = advice_words(&advice);
    assert!(words.answer.iter().any(|line| line.contains("too few to judge more than 8 back-ends")));
    assert!(words.answer.iter().any(|line| line.contains("round_robin more than 8")), "{:?}", words.answer);
}

#[test]
fn what_does_not_count_is_told_with_its_share() {
    let mut advice = made_up([9.0, 8.0, 4.0, 5.0, 4.0, 3.95], [0.1; 6]);
    assert!(!told(&advice).contains("--include-all"));
    advice.facts.not_counted_share = 0.9;
    advice.facts.not_counted = vec![("method POST".to_owned(), 5_400)];
    let words = advice_words(&advice);
    let said =
        |texts: &[String]| texts.iter().any(|text| text.contains("90.0 %") && text.contains("--include-all"));
    assert!(said(&words.answer) && said(&words.notes), "{words:?}");
    assert!(words.notes.iter().any(|note| note.contains("Not counted: method POST: 5,400.")), "{words:?}");
}

#[test]
fn a_log_of_one_second_is_not_said_to_have_no_times() {
    let mut advice = made_up([1.0; 6], [0.1; 6]);
    advice.target.assumed = true;
    assert!(told(&advice).contains("The log has no times, so"));
    advice.facts.has_one_time = true;
    let text = told(&advice);
    assert!(text.contains("within one second") && !text.contains("has no times"), "{text}");
}

#[test]
fn memories_that_hold_everything_leave_nothing_to_hash_for() {
    let mut advice = made_up([9.0, 8.0, 4.0, 5.0, 4.0, 3.95], [0.1; 6]);
    advice.holds_all = true;
    advice.verdict = verdict(&advice.finals, 120.0, true, 1);
    let text = told(&advice);
    assert!(
        text.contains("Take any balancer, e.g. with least_connections") && text.contains("all 900 MiB"),
        "{text}"
    );
    assert!(text.contains("--memory 25%") && !text.contains("surely"), "{text}");
    assert_eq!(advice_json(&advice, "")["holds_all"], true);
}
