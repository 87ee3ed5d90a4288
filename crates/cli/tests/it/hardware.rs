//! The hardware of simulated back-ends: chosen, overridden, said, listed.

use std::fs;

use serde_json::Value;

use crate::common::{plimsoll, text};

const SIMULATE: [&str; 6] = ["simulate", "synth:chess", "--limit", "3000", "-b", "2"];
const TWO: [&str; 2] = ["-p", "wrr,lard_r"];

fn output(args: &[&str]) -> String {
    let output = plimsoll(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn params(policy: &str, more: &[&str]) -> Value {
    let out = output(&[&SIMULATE[..], &["--json", "-p", policy], more].concat());
    let run: Value = serde_json::from_str(&out).unwrap();
    run["params"].clone()
}

#[test]
fn costs_are_those_of_the_hardware_unless_they_are_given() {
    let paper = params("wrr", &["--hardware", "1998"]);
    assert_eq!((&paper["hardware"], &paper["lard.disk_latency_us"]), (&"1998".into(), &28_000.into()));
    let default = params("wrr", &[]);
    assert_eq!(default, params("wrr", &["--hardware", "nvme"]));
    assert_eq!((&default["hardware"], &default["lard.disk_latency_us"]), (&"nvme".into(), &92.into()));
    let given = params("lard", &["--set", "lard.disk_latency_us=50", "-m", "lard:disks=2"]);
    assert_eq!((&given["lard.disk_latency_us"], &given["lard.disks"]), (&50.into(), &2.into()));
    assert_eq!(given["lard.connect_us"], default["lard.connect_us"], "what is not given stays");
    let joined = params("wrr_gms", &["--hardware", "sata_ssd"]);
    assert_eq!((&joined["hardware"], &joined["lard_gms.disk_latency_us"]), (&"sata_ssd".into(), &110.into()));
    let by_size = params("adaptload_queue", &["-m", "adaptload"]);
    assert_eq!(by_size["adaptload_queue.service_rate"], 1_250_000_000_u64, "a policy's idea of the network");
    assert_eq!(params("wrr", &["-m", "fifo"]).get("hardware"), None);
}

#[test]
fn a_scenario_file_has_it_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.toml");
    fs::write(
        &file,
        "traces = \"synth:chess\"\nlimit = 100\npolicy = \"wrr\"\nhardware = \"disk\"\njson = true\n",
    )
    .unwrap();
    let path = file.to_str().unwrap();
    let hardware = |more: &[&str]| -> Value {
        let run: Value =
            serde_json::from_str(&output(&[&["simulate", "--scenario", path], more].concat())).unwrap();
        run["params"]["hardware"].clone()
    };
    assert_eq!(hardware(&[]), "disk");
    assert_eq!(hardware(&["--hardware", "1998"]), "1998", "the command line wins");
    fs::write(&file, "traces = \"synth:chess\"\nhardware = \"floppy\"\n").unwrap();
    let failed = plimsoll(&["simulate", "--scenario", path]);
    assert_eq!(failed.status.code(), Some(2));
    let message = text(&failed.stderr);
    assert!(message.contains("s.toml line 2") && message.contains("there are nvme, "), "{message}");
}

#[test]
fn table_and_report_name_it_and_say_what_limits() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let shown =
        output(&[&SIMULATE[..], &TWO, &["--hardware", "1998", "--set", "cpu_speed=2", "-o", out]].concat());
    assert!(shown.contains("Hardware: 1998, "), "{shown}");
    assert!(shown.contains("other values were given for cpu_speed."), "{shown}");
    assert!(shown.contains("on 2 back-ends"), "{shown}");
    let html = fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(html.contains("Hardware") && html.contains("other values were given for cpu_speed"));
    let csv = fs::read_to_string(dir.path().join("runs.csv")).unwrap();
    let mut rows = csv.lines();
    assert!(
        rows.next().unwrap().starts_with("policy,model,hardware,")
            && rows.all(|row| row.contains(",1998,exact,1,0,0,0,2,")),
        "{csv}"
    );
    // A CPU that needs a second for a connection is the limit under any policy; a disk that needs one, too.
    let limited = |key: &str| {
        let more = ["--set", key, "--set", "disks=1", "--cache", "1KiB"];
        let printed = output(&[&SIMULATE[..], &TWO, &more].concat());
        // Long sentences are broken into lines.
        printed.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(
        limited("connect_us=1000000")
            .contains("for connect_us, disks (one drive of this hardware is 8 disks).")
    );
    assert!(limited("connect_us=1000000").contains("CPUs are the limit on 2 back-ends whatever the policy"));
    assert!(
        limited("disk_latency_us=1000000").contains("Disks are the limit on 2 back-ends whatever the policy")
    );
    let light = output(&[&SIMULATE[..], &TWO, &["--arrivals", "poisson:1"]].concat());
    let light = light.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(light.contains("what arrives is served"), "{light}");
}

#[test]
fn an_admission_limit_that_the_thresholds_do_not_go_with_is_warned_of() {
    let said = |more: &[&str]| {
        let output = plimsoll(&[&SIMULATE[..], &TWO, more].concat());
        assert!(output.status.success());
        text(&output.stderr)
    };
    let warned = said(&["--admission", "3000"]);
    assert!(
        warned.contains("lard_r on 2 back-ends") && warned.contains("--set lard_r.t_high=2976"),
        "{warned}"
    );
    assert!(!warned.contains("weighted_round_robin on"), "{warned}");
    for fits in [&["--admission", "130"][..], &["--admission", "3000", "--set", "lard_r.t_high=2976"], &[]] {
        let quiet = said(fits);
        assert!(!quiet.contains("t_high"), "{fits:?}: {quiet}");
    }
}

#[test]
fn the_bytes_of_answers_are_those_of_the_trace() {
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/departmental.log.gz");
    let object = |args: &[&str]| -> Value { serde_json::from_str(&output(args)).unwrap() };
    let stats = object(&["trace", "stats", log, "--json"]);
    let run = |more: &[&str]| object(&[&["simulate", log, "-p", "wrr", "-b", "2", "--json"], more].concat());
    let sent = run(&[])["sent_bytes"].as_u64().unwrap();
    assert_eq!(Some(sent), stats["sent_bytes"].as_u64());
    // What is answered during the warm-up does not count.
    let measured = run(&["--warmup", "149000"])["sent_bytes"].as_u64().unwrap();
    assert!(measured > 0 && measured < sent / 10, "{measured} of {sent}");
}

#[test]
fn the_list_has_every_cost_with_its_source_and_stands_in_the_documentation() {
    let lines = output(&["hardware", "--json"]);
    let all: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = all.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["nvme", "sata_ssd", "network_storage", "disk", "1998"]);
    let listed = output(&["hardware"]);
    assert!(listed.contains("Micron 9200") && listed.contains("disk_latency_us"), "{listed}");
    let markdown = output(&["hardware", "--markdown"]);
    let doc = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models.md")).unwrap();
    let (_, rest) = doc.split_once("<!-- generated hardware -->").unwrap();
    let (generated, _) = rest.split_once("<!-- /generated hardware -->").unwrap();
    assert_eq!(
        generated.trim(),
        markdown.trim(),
        "docs/models.md is stale: put the output of `plimsoll hardware --markdown` between its markers"
    );
}
