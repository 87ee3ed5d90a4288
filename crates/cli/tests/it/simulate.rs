//! `plimsoll simulate`, `policies`, `models` and `reproduce`, run as a user runs them.

use std::fs;

use crate::common::{plimsoll, shared, text};

/// The keys of a run, in the order in which `--json` prints them.
const KEYS: &str = "policy model backends seed params requests completed rejected lost simulated_s throughput_rps miss_ratio \
                    joined_ratio idle_ratio response_time_s slowdown utilization per_backend policy_stats \
                    policy_tables wall_s requests_per_wall_s trace";

fn json_lines(args: &[&str]) -> Vec<serde_json::Value> {
    let output = plimsoll(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Fails with this exit code, one message on stderr that contains all of `parts`, and nothing on stdout.
fn fails(args: &[&str], code: i32, parts: &[&str]) {
    let output = plimsoll(args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    assert!(output.stdout.is_empty(), "{args:?} prints results");
    assert!(!message.contains("panicked"), "{message}");
    for part in parts {
        assert!(message.contains(part), "{args:?}: no `{part}` in: {message}");
    }
}

#[test]
fn equal_seeds_print_equal_bytes_and_others_do_not() {
    let Some(trace) = shared("cran_mirror_2012.csv.gz") else { return };
    let run = |seed: &str| {
        plimsoll(&["simulate", &trace, "-p", "wrr,lard,lard_r,random", "-b", "4,8", "--json", "--seed", seed])
            .stdout
    };
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

#[test]
fn every_real_trace_runs_under_every_policy() {
    let policies: Vec<&str> = plimsoll_policy::REGISTRY.iter().map(|s| s.name).chain(["wrr_gms"]).collect();
    for (file, requests) in [
        // Counted requests, as `trace stats` and its tests have them.
        ("nasa_1995_excerpt.log.gz", 6_845),
        ("worldcup98_test_log.gz", 1_000),
        ("cdn_time_id_size.tr.gz", 66_987),
    ] {
        let Some(trace) = shared(file) else { return };
        let runs = json_lines(&[
            "simulate",
            &trace,
            "-p",
            &policies.join(","),
            "-b",
            "3",
            "--cache",
            "1MiB",
            "--json",
        ]);
        assert_eq!(runs.len(), policies.len());
        for run in runs {
            assert_eq!(run["requests"], requests, "{file}: {}", run["policy"]);
            assert_eq!(run["completed"], requests, "{file}: {}", run["policy"]);
            assert_eq!(run["rejected"], 0);
            assert!(run["throughput_rps"].as_f64().unwrap() > 0.0);
        }
    }
}

#[test]
fn json_has_the_documented_keys_in_order() {
    let output = plimsoll(&["simulate", "synth:chess", "--limit", "2000", "-p", "lard", "-b", "2", "--json"]);
    let line = text(&output.stdout);
    // serde_json's map would sort the keys; the order is read off the text.
    let mut at = 0;
    for key in KEYS.split_whitespace() {
        let quoted = format!("\"{key}\":");
        let found = line[at..].find(&quoted).unwrap_or_else(|| panic!("no {key} after byte {at} of {line}"));
        at += found + quoted.len();
    }
    assert!(line.contains("\"wall_s\":null"), "timing would make equal runs differ");
}

#[test]
fn locality_beats_round_robin_for_the_right_reason() {
    let what = "simulate synth:rice --limit 300000 -p wrr,lard_r --hardware 1998 --json";
    let runs = json_lines(&what.split(' ').collect::<Vec<_>>());
    let get = |run: usize, key: &str| runs[run][key].as_f64().unwrap();
    assert!(get(1, "throughput_rps") > 1.5 * get(0, "throughput_rps"));
    assert!(get(1, "miss_ratio") < 0.6 * get(0, "miss_ratio"));
}

#[test]
fn decisions_are_one_line_per_request_in_arrival_order() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("decisions.csv");
    let path = file.to_str().unwrap();
    json_lines(&[
        "simulate",
        "synth:chess",
        "--limit",
        "500",
        "-p",
        "rr",
        "-b",
        "3",
        "--decisions",
        path,
        "--json",
    ]);
    let decisions = fs::read_to_string(&file).unwrap();
    let mut lines = decisions.lines();
    assert_eq!(lines.next(), Some("request,time_s,target,backend"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 500);
    for (number, row) in rows.iter().enumerate() {
        assert_eq!(row[0], number.to_string());
        assert!(row[2].starts_with("/chess/"), "{row:?}");
        assert_eq!(row[3], (number % 3).to_string(), "round robin takes turns");
    }
    // Several runs get a file each.
    json_lines(&[
        "simulate",
        "synth:chess",
        "--limit",
        "50",
        "-p",
        "rr,lc",
        "-b",
        "2",
        "--decisions",
        path,
        "--json",
    ]);
    assert!(dir.path().join("decisions-round_robin-2.csv").exists());
    assert!(dir.path().join("decisions-least_connections-2.csv").exists());
}

#[test]
fn the_report_is_one_file_that_needs_no_network() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("deep/report");
    let output =
        plimsoll(&["simulate", "synth:chess", "--limit", "3000", "-b", "2,4", "-o", out.to_str().unwrap()]);
    assert!(text(&output.stdout).contains("report.html"));
    let html = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains("default-src 'none'"), "the page forbids itself every request");
    for name in ["runs.csv", "runs.parquet", "load.csv", "load.parquet"] {
        assert!(fs::metadata(out.join(name)).unwrap().len() > 0, "{name}");
    }
    assert_eq!(fs::read_to_string(out.join("runs.csv")).unwrap().lines().count(), 1 + 3 * 2);
}

#[test]
fn standard_input_is_a_trace_too() {
    let csv = b"time_s,target,size_bytes\n1,/a,1000\n2,/b,2000\n3,/a,1000\n";
    let output =
        crate::common::plimsoll_with_input(&["simulate", "-", "-p", "lard", "-b", "2", "--json"], csv);
    let run: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(run["completed"], 3);
    assert_eq!(run["trace"]["path"], "-");
    assert_eq!(run["miss_ratio"].as_f64().unwrap() * 3.0, 2.0);
}

#[test]
fn parameters_reach_policy_and_model() {
    let args = ["simulate", "synth:chess", "--limit", "2000", "-p", "lard_r", "-b", "2", "--json"];
    let settings =
        ["--set", "lard_r.t_high=70", "--set", "k_s=5", "--set", "lard.disks=2", "--arrivals", "poisson:500"];
    let run = &json_lines(&[&args[..], &settings[..]].concat())[0];
    assert_eq!(run["params"]["lard_r.t_high"], 70);
    assert_eq!(run["params"]["lard_r.k_s"], 5);
    assert_eq!(run["params"]["lard.disks"], 2);
    assert_eq!(run["params"]["arrivals"], "poisson:500");
}

#[test]
fn a_cache_in_per_cent_and_dynamic_requests() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.csv");
    let lines: String = (0..400).map(|n| format!("{n},/{},{}\n", n % 10, (n % 10 + 1) * 100)).collect();
    fs::write(&file, format!("time_s,target,size_bytes\n{lines}")).unwrap();
    let run = |more: &[&str]| {
        let args = [
            "simulate",
            file.to_str().unwrap(),
            "-m",
            "adaptload",
            "-b",
            "1",
            "--cache-policy",
            "lru",
            "--json",
        ];
        json_lines(&[&args[..], more].concat())
    };
    // All targets together have 5,500 bytes, of which 55 % are less than a cycle of LRU needs.
    let policies = "adaptload,adaptload_queue,sita_e,jsq,jswq,lard";
    for (cache, bytes, misses) in [("100%", 5_500, 10.0), ("55%", 3_025, 400.0)] {
        for run in run(&["-p", policies, "--cache", cache, "--arrivals", "trace", "--admission", "none"]) {
            assert_eq!(run["params"]["cache_bytes"], bytes);
            assert!((run["miss_ratio"].as_f64().unwrap() * 400.0 - misses).abs() < 1e-6, "{run}");
            if run["policy"] == "sita_e" {
                // It knew the sizes beforehand, and had nothing to learn from requests.
                let stats = &run["policy_stats"];
                assert_eq!((&stats["adjustments"], &stats["sized_requests"]), (&1.0.into(), &0.0.into()));
            }
        }
    }
    let [dynamic] = &run(&["-p", "adaptload", "--dynamic-share", "1"])[..] else { panic!("one run") };
    assert_eq!((&dynamic["miss_ratio"], &dynamic["params"]["dynamic_share"]), (&0.0.into(), &1.0.into()));
    assert_eq!(dynamic["policy_stats"]["unsized_requests"], 400.0);
}

#[test]
fn a_failed_backend_costs_what_it_had() {
    // So slow that the faults come before the end.
    let what = "simulate synth:chess --limit 20000 -p lard -b 4 --hardware 1998";
    let what: Vec<&str> = what.split(' ').collect();
    let args = [&what[..], &["--json"]].concat();
    let whole = &json_lines(&args)[0];
    let failing = &json_lines(&[&args[..], &["--fault", "down:2@1", "--fault", "up:2@3"]].concat())[0];
    let count = |run: &serde_json::Value, key: &str| run[key].as_u64().unwrap();
    assert_eq!((count(whole, "rejected"), count(whole, "lost")), (0, 0));
    assert!(count(failing, "lost") > 0);
    assert_eq!(count(failing, "rejected"), 0);
    assert_eq!(count(failing, "completed") + count(failing, "lost"), 20_000);
    let table = |more: &[&str]| text(&plimsoll(&[&what[..], more].concat()).stdout);
    assert!(table(&["--fault", "down:2@1"]).contains("not answered"));
    assert!(!table(&[]).contains("not answered"));
}

#[test]
fn bad_input_is_refused_with_a_remedy() {
    let ok = "synth:chess,requests=5000";
    fails(&["simulate"], 2, &["TRACE"]);
    fails(&["simulate", "/no/such/file"], 1, &["/no/such/file"]);
    fails(&["simulate", ok, "-p", "lrad"], 2, &["`lrad`", "did you mean `lard`?"]);
    fails(&["simulate", ok, "-m", "lardo"], 2, &["`lardo`", "did you mean `lard`?"]);
    fails(&["simulate", ok, "-b", "0"], 2, &["back-ends"]);
    fails(&["simulate", ok, "-b", "70000"], 2, &["back-ends"]);
    fails(&["simulate", ok, "--hardware", "nvem"], 2, &["`nvem`", "did you mean `nvme`?"]);
    fails(&["simulate", ok, "--cache", "lots"], 2, &["32MiB", "15%"]);
    fails(&["simulate", ok, "--cache=-5%"], 2, &["per cent of the size of all targets", "-5%"]);
    fails(&["simulate", ok, "--dynamic-share", "30"], 2, &["share from 0 to 1"]);
    fails(
        &["simulate", ok, "-m", "adaptload", "--set", "adaptload.sped=2"],
        2,
        &["did you mean `adaptload.speed`?"],
    );
    fails(&["simulate", ok, "--cache-policy", "lrru"], 2, &["lru"]);
    fails(&["simulate", ok, "-p", "lard", "--set", "lard.t_lo=3"], 2, &["did you mean `lard.t_low`?"]);
    fails(&["simulate", ok, "-p", "lard", "--set", "lard.t_low=0"], 2, &["`t_low = 0`", "1 to 1000000"]);
    fails(
        &["simulate", ok, "-p", "lard", "--set", "lard.t_low=80"],
        2,
        &["`t_high = 65` must be above `t_low = 80`"],
    );
    fails(&["simulate", ok, "-p", "wrr", "--set", "lard.disks=x"], 2, &["disks"]);
    fails(&["simulate", ok, "--arrivals", "poisson:-1"], 2, &["poisson"]);
    fails(&["simulate", ok, "--speed", "2"], 2, &["--arrivals trace"]);
    fails(&["simulate", ok, "--limit", "0"], 2, &["limit"]);
    fails(&["simulate", ok, "-p", "wrr_gmss"], 2, &["did you mean `wrr_gms`?"]);
    fails(&["simulate", ok, "-p", "wrr_gms", "-m", "fifo"], 2, &["`wrr_gms` needs", "`lard`"]);
    fails(
        &["simulate", "synth:chess", "--limit", "100", "--warmup", "100"],
        2,
        &["within the warm-up of 100"],
    );
    fails(&["simulate", "synth:chess", "--limit", "9", "--arrivals", "poisson:1e-300"], 2, &["584 years"]);
    fails(&["simulate", ok, "--decisions", "-"], 2, &["--decisions"]);
    fails(&["simulate", ok, "--fault", "down:9@1"], 2, &["back-end 9", "8"]);
    fails(&["simulate", ok, "--format", "excel"], 2, &["excel"]);
    fails(&["simulate", "synth:chess,colour=1"], 2, &["colour"]);
    fails(&["simulate", "synth:rize"], 2, &["rice"]);
    fails(&["simulate", ok, "-o", "/dev/null/x"], 1, &["/dev/null/x"]);
    fails(&["simulate", ok, "-p", "rr", "--decisions", "/dev/null/d.csv"], 1, &["/dev/null"]);
    fails(&["reproduce", "lard", "--figure", "99"], 2, &["figure 99", "5 to 14"]);
    fails(&["reproduce", "lard", "--figure", "handof"], 2, &["the number of a figure, or handoff"]);
    fails(&["reproduce", "lrad"], 2, &["lard"]);
}

#[test]
fn damaged_traces_are_refused_with_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let header = "time_s,target,size_bytes\n";
    fails(&["simulate", &write("empty.csv", b"")], 1, &["empty.csv"]);
    fails(&["simulate", &write("only-header.csv", header.as_bytes())], 1, &["only-header.csv"]);
    let huge = format!("{header}1,/a,99999999999999999999999\n");
    fails(&["simulate", &write("huge.csv", huge.as_bytes())], 1, &["huge.csv", "line 2"]);
    let backwards = format!("{header}100000,/a,10\n1,/b,10\n");
    fails(&["simulate", &write("back.csv", backwards.as_bytes())], 1, &["back.csv", "line 3", "backwards"]);
    fails(&["simulate", &write("cut.csv.gz", &[0x1f, 0x8b, 8, 0, 0])], 1, &["cut.csv.gz"]);
    fails(&["simulate", &write("noise.bin", &[0x80; 100])], 1, &["noise.bin", "format"]);
}

#[test]
fn the_documentation_lists_what_the_registries_hold() {
    for (command, file) in [("policies", "policies.md"), ("models", "models.md")] {
        let output = plimsoll(&[command, "--markdown"]);
        let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
        let doc = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let (_, rest) = doc.split_once("<!-- generated -->").unwrap();
        let (generated, _) = rest.split_once("<!-- /generated -->").unwrap();
        assert_eq!(
            generated.trim(),
            text(&output.stdout).trim(),
            "docs/{file} is stale: put the output of `plimsoll {command} --markdown` between its markers"
        );
    }
}

#[test]
fn lists_are_complete() {
    let policies = text(&plimsoll(&["policies"]).stdout);
    assert!(plimsoll_policy::REGISTRY.iter().all(|s| policies.contains(s.name)));
    assert_eq!(json_lines(&["policies", "--json"]).len(), plimsoll_policy::REGISTRY.len());
    assert_eq!(json_lines(&["models", "--json"])[0]["name"], "lard");
}

#[test]
fn a_workload_figure_is_reproduced_within_its_tolerance() {
    let claims = json_lines(&["reproduce", "lard", "--quick", "--figure", "6", "--json"]);
    assert_eq!(claims.len(), 4);
    for claim in claims {
        assert_eq!(claim["verdict"], "holds", "{claim}");
        assert_eq!(claim["measured"].as_array().unwrap().len(), 4);
    }
}

#[test]
fn a_scenario_file_is_the_command_line_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("t.csv"), "time_s,target,size_bytes\n1,/a,1000\n2,/b,2000\n3,/a,1000\n")
        .unwrap();
    let file = dir.path().join("s.toml");
    let path = file.to_str().unwrap();
    let scenario = "traces = [\"t.csv\"]\npolicy = [\"lard\", \"wrr\"]\nbackends = 2\ncache = \"1MiB\"\njson = true\n\
                    [set]\n\"lard.t_low\" = 7\n";
    fs::write(&file, scenario).unwrap();
    let runs = json_lines(&["simulate", "--scenario", path]);
    let direct = dir.path().join("t.csv");
    let same = ["-p", "lard,wrr", "-b", "2", "--cache", "1MiB", "--json", "--set", "lard.t_low=7"];
    assert_eq!(runs, json_lines(&[&["simulate", direct.to_str().unwrap()][..], &same[..]].concat()));
    assert_eq!(runs[0]["params"]["lard.t_low"], 7);
    // The command line wins.
    let one = json_lines(&["simulate", &format!("--scenario={path}"), "-p", "lard", "--backends", "3"]);
    assert_eq!((one.len(), &one[0]["backends"]), (1, &serde_json::json!(3)));

    let other = dir.path().join("u.csv");
    fs::write(&other, "time_s,target,size_bytes\n1,/a,1000\n").unwrap();
    let traces = json_lines(&["simulate", "--scenario", path, "-p", "lard", other.to_str().unwrap()]);
    assert_eq!(traces[0]["requests"], 1, "a trace on the command line replaces those of the file");
    let write = |text: &str| fs::write(&file, text).unwrap();
    write("traces = \"t.csv\"\npolicy = \"lard\"\njson = true\n[set]\nlard.t_low = 9\nlard.disks = 3\n");
    let nested = &json_lines(&["simulate", "--scenario", path])[0]["params"];
    assert_eq!(
        (&nested["lard.t_low"], &nested["lard.disks"]),
        (&serde_json::json!(9), &serde_json::json!(3))
    );
    write("traces = \"t.csv\"\npolcy = \"lard\"\n");
    fails(&["simulate", "--scenario", path], 2, &["s.toml line 2", "did you mean `policy`?"]);
    write("traces = \"t.csv\"\nbackends = {}\n");
    fails(&["simulate", "--scenario", path], 2, &["s.toml line 2", "expected"]);
    write("traces = [\n");
    fails(&["simulate", "--scenario", path], 2, &["s.toml", "not valid TOML"]);
    fails(&["simulate", "--scenario", "/no/such.toml"], 1, &["/no/such.toml"]);
}

#[test]
fn what_times_mean_is_said_where_they_decide_arrivals() {
    let scratch = tempfile::tempdir().unwrap();
    let log = scratch.path().join("access.log");
    let line = "192.0.2.7 - - [01/Jul/1995:00:00:01 +0000] \"GET /a HTTP/1.0\" 200 10\n";
    std::fs::write(&log, line.repeat(3)).unwrap();
    let shown = |more: &[&str]| {
        let args = [&["simulate", log.to_str().unwrap(), "-p", "wrr", "-b", "2"], more].concat();
        let output = plimsoll(&args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(
        shown(&["--arrivals", "trace"])
            .contains("Times: arrival, as Apache logs it. Such a log does not say who wrote it")
    );
    assert!(!shown(&[]).contains("Apache"));
}
