//! `plimsoll simulate` with several front-ends and what they know of loads.

use crate::common::{plimsoll, text};

/// A service of 50 ms on sixteen servers that are 90 % busy.
const BUSY: [&str; 13] = [
    "simulate",
    "synth:poisson_exp,requests=40000",
    "--model",
    "fifo",
    "--backends",
    "16",
    "--arrivals",
    "trace",
    "--speed",
    "28.8",
    "--admission",
    "none",
    "--json",
];

fn runs(more: &[&str]) -> Vec<serde_json::Value> {
    let args = [&BUSY[..], more].concat();
    let output = plimsoll(&args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn refused(more: &[&str], parts: &[&str]) {
    let args = [&BUSY[..], more].concat();
    let output = plimsoll(&args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    for part in parts {
        assert!(message.contains(part), "{args:?}: no `{part}` in: {message}");
    }
}

#[test]
fn one_scenario_with_every_kind_of_load_information() {
    let all = ["-p", "jsq", "--front-ends", "6", "--load-information", "exact,own,broadcast,poll,central"];
    let found = runs(&all);
    let kinds: Vec<&str> = found.iter().map(|run| run["load_information"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["exact", "own", "broadcast", "poll", "central"]);
    let mean = |n: usize| found[n]["response_time_s"]["mean"].as_f64().unwrap();
    // Who knows all loads is fastest, and what is known late, or of few, costs time.
    assert!((1..4).all(|n| mean(n) > 1.2 * mean(0)), "{:?}", (0..5).map(mean).collect::<Vec<_>>());
    assert!(found.iter().all(|run| run["completed"] == 40_000 && run["front_ends"] == 6));
    let messages = |n: usize| found[n]["load_traffic"]["messages"].as_u64().unwrap();
    assert_eq!((messages(0), messages(1)), (0, 0));
    // Two inquiries and two answers; a question, an answer, and word of the end.
    assert_eq!((messages(3), messages(4)), (4 * 40_000, 3 * 40_000));
    assert_eq!(runs(&all), found, "equal seeds");
}

#[test]
fn a_slow_back_end_gets_less_from_those_who_see_its_load() {
    let share = |policy: &str| {
        let found = runs(&["-p", policy, "--fault", "speed=0.33:3@0", "--service", "gamma:30ms:0.45"]);
        let requests = found[0]["per_backend"][3]["requests"].as_f64().unwrap();
        requests / 2_500.0
    };
    assert!(share("random") > 0.9);
    assert!(share("jsq") < 0.7);
}

#[test]
fn a_request_goes_to_a_host_of_its_partition() {
    let requests = |policy: &str, more: &[&str]| -> Vec<u64> {
        let found = runs(&[&["-p", policy, "--front-ends", "2", "--dealing", "random"], more].concat());
        assert_eq!(found[0]["completed"], 40_000);
        let of = found[0]["per_backend"].as_array().unwrap().iter();
        of.map(|backend| backend["requests"].as_u64().unwrap()).collect()
    };
    // One partition is on one back-end, the other on all others.
    let listed = requests("lard_r", &["--partitions", "0/1-15"]);
    assert!(listed[0] > 15_000 && listed[1..].iter().all(|n| *n < 5_000), "{listed:?}");
    // So many partitions as back-ends leave nothing to choose.
    let alone = requests("lard_r", &["--partitions", "16"]);
    assert_eq!(alone, requests("random", &["--partitions", "16"]));
    assert_ne!(alone, requests("random", &["--partitions", "8"]));
    assert_eq!(requests("lard_r", &["--partitions", "1"]), requests("lard_r", &[]));
    let found = runs(&["-p", "lard_r", "--partitions", "0-7/8-15"]);
    assert_eq!(found[0]["params"]["partitions"], "0,1,2,3,4,5,6,7/8,9,10,11,12,13,14,15");
}

#[test]
fn partitions_that_do_not_fit_are_refused() {
    refused(&["--partitions", "17"], &["1 to 16 partitions for 16 back-ends, not 17"]);
    refused(&["--partitions", "0"], &["1 to 16 partitions for 16 back-ends, not 0"]);
    refused(&["--partitions", "0-7"], &["back-end 8 hosts no partition"]);
    refused(&["--partitions", "0-15/16"], &["partition 1 names back-end 16", "only 16"]);
    for wrong in ["0-3/", "a/b", "3-1/0", "", "1.5"] {
        refused(&["--partitions", wrong], &["4 or 0-3/4-7", wrong]);
    }
    refused(&["--partitions", "16", "--front-ends", "1000"], &["1000 front-ends and 16 partitions"]);
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    refused(
        &["--load-information", "rumour"],
        &["no load information `rumour`", "exact, own, broadcast, poll, central"],
    );
    refused(&["--load-information", "pol"], &["did you mean `poll`?"]);
    refused(&["--load-information", "poll:size=9"], &["load information `poll`", "from 1 to 8"]);
    refused(&["--load-information", "poll,poll:size=3"], &["`poll` is there twice"]);
    refused(
        &["-p", "jsq", "--tables", "shared"],
        &["--tables shared", "`join_shortest_queue`", "lb_gc, lard, lard_r"],
    );
    refused(&["--tables", "common"], &["expected separate or shared, not `common`"]);
    refused(&["--hop", "1ms", "--load-information", "central"], &["leave out --hop", "`central`"]);
    refused(&["--exchange-interval", "1s"], &["there is one front-end", "--front-ends 2 or more"]);
    let args = ["simulate", "synth:hot", "--model", "lard", "--load-information", "poll:cpu_s=0.01"];
    let spent = plimsoll(&args);
    assert_eq!(spent.status.code(), Some(2));
    for part in ["`poll.cpu_s`", "model `lard`", "`fifo`"] {
        assert!(text(&spent.stderr).contains(part), "no `{part}` in: {}", text(&spent.stderr));
    }
    refused(&["--front-ends", "0"], &["from 1 to 1024"]);
    refused(&["--service", "gamma:20ms"], &["coefficient of variation"]);
    refused(&["--service", "normal:20ms:1"], &["gamma:22.2ms:0.45"]);
    for shape in ["gamma", "lognormal", "pareto", "weibull"] {
        let service = format!("{shape}:10ms:1e-200");
        refused(&["--service", &service], &["from 0.001 to 100, not", "deterministic:10ms has none"]);
        let arrivals = plimsoll(&["simulate", "synth:hot", "--arrivals", &format!("{shape}:100:1e-170")]);
        let message = text(&arrivals.stderr);
        assert!(message.contains("from 0.001 to 100, not"), "{message}");
        assert!(message.contains("deterministic:100 has none"), "{message}");
    }
    refused(&["--hot-spot", "0.5@9-3"], &["0.3@10-60"]);
    let gms = plimsoll(&["simulate", "synth:hot", "--model", "lard_gms", "--fault", "speed=0.5:0@1"]);
    assert_eq!(gms.status.code(), Some(2));
    assert!(text(&gms.stderr).contains("model `lard_gms` has no speeds"), "{}", text(&gms.stderr));
    let gamma = plimsoll(&["simulate", "synth:hot", "--arrivals", "gamma:100"]);
    assert!(text(&gamma.stderr).contains("coefficient of variation"), "{}", text(&gamma.stderr));
    refused(
        &["--set", "poll.size=3"],
        &["no policy, model or load information of this run takes `poll.size`"],
    );
}

#[test]
fn a_trace_without_clients_is_told_of() {
    let args = ["simulate", "synth:hot", "--limit", "500", "-p", "lard", "--front-ends", "4"];
    let message = text(&plimsoll(&args).stderr);
    assert!(message.contains("--dealing random"), "{message}");
    let dealt = [&args[..], &["--dealing", "random"]].concat();
    assert!(!text(&plimsoll(&dealt).stderr).contains("--dealing random"));
}

#[test]
fn load_information_that_a_policy_cannot_use_is_told_of() {
    let warned = |policy: &str, more: &[&str]| {
        let args = [&["simulate", "synth:hot", "--limit", "500", "-p", policy], more].concat();
        let output = plimsoll(&args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stderr)
    };
    let loads = |kind| ["--front-ends", "2", "--dealing", "random", "--load-information", kind];
    for kind in ["own", "broadcast", "poll", "central"] {
        let message = warned("maglev", &loads(kind));
        assert!(
            message.contains(&format!("maglev uses no loads: what load information `{kind}`")),
            "{message}"
        );
        assert!(!warned("jsq", &loads(kind)).contains("load information"), "{kind}");
        let reports = ["broadcast", "poll"].contains(&kind);
        let message = warned("prequal", &loads(kind));
        assert_eq!(message.contains("prequal cannot use load information"), !reports, "{kind}: {message}");
        assert_eq!(message.contains("it can use exact, broadcast, poll"), !reports, "{kind}: {message}");
    }
    assert!(!warned("maglev", &loads("exact")).contains("load information"));
    let exchange = ["--front-ends", "2", "--dealing", "random", "--exchange-interval", "1s"];
    assert!(warned("lard", &exchange).contains("lard shares nothing that it has seen"));
    assert!(!warned("adaptload", &exchange).contains("shares nothing"));
}

#[test]
fn what_load_information_costs_is_in_the_table() {
    let args = |kind: &'static str| {
        let fixed = &BUSY[..BUSY.len() - 1];
        [fixed, &["-p", "jsq", "--front-ends", "4", "--dealing", "random", "--load-information", kind]]
            .concat()
    };
    let costs = plimsoll(&args("exact,broadcast:cpu_s=0.001,receive_cpu_s=0.0005"));
    let table = text(&costs.stdout);
    assert!(table.contains("load CPU%") && table.contains("receive CPU%"), "{table}");
    let free = plimsoll(&args("exact"));
    assert!(!text(&free.stdout).contains("load msg/s"), "{}", text(&free.stdout));
}
