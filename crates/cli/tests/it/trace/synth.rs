//! `plimsoll trace synth`.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;

use serde_json::Value;

use super::{Scratch, counts, fails, plimsoll, real_trace, run, stats, stderr, stdout};

#[test]
fn synthetic_workloads_have_statistics_too() {
    let found = stats("synth:chess,requests=20000");
    assert_eq!((&found["requests"], &found["targets"]), (&20_000.into(), &2_000.into()));
    assert_eq!(found["format"], Value::Null);
    let other: Value =
        serde_json::from_str(&stdout(&["stats", "synth:chess,requests=20000", "--seed", "2", "--json"]))
            .unwrap();
    assert_ne!(found["document_sizes"], other["document_sizes"]);
}

#[test]
fn synthesis_follows_the_seed() {
    let make = |seed: &str| run(&["synth", "ibm", "--requests", "40000", "--seed", seed]);
    let first = make("3");
    assert!(first.status.success(), "{}", stderr(&first));
    assert_eq!(first.stdout.iter().filter(|&&b| b == b'\n').count(), 40_001);
    assert!(first.stdout.starts_with(b"time_s,target,size_bytes\n"));
    assert!(first.stdout == make("3").stdout);
    assert!(first.stdout != make("4").stdout);
    // The figures are compared on standard error, for standard output is taken.
    assert!(stderr(&first).contains("cover99_mib"), "{}", stderr(&first));

    let scratch = Scratch::new();
    let file = scratch.name("ibm.csv.gz");
    let text = stdout(&["synth", "ibm", "--requests", "40000", "--seed", "3", "--to", &file]);
    assert!(text.contains("Wrote 40,000 requests for 38,527 targets of ibm"), "{text}");
    assert!(text.contains("182 MiB"), "{text}");
    let back = run(&["convert", &file, "--to", "-", "--to-format", "csv"]).stdout;
    assert!(back == first.stdout);
    fails(&["synth", "ibm", "--requests", "40000", "--to", &file], 2, &["exists already"]);
}

#[test]
fn every_format_holds_a_workload() {
    let scratch = Scratch::new();
    for (ending, format) in
        [("parquet", "parquet"), ("tr.xz", "time-id-size"), ("oracleGeneral", "oracle-general")]
    {
        let file = scratch.name(&format!("chess.{ending}"));
        stdout(&["synth", "chess", "--set", "requests=5000", "--to", &file]);
        let found = stats(&file);
        assert_eq!(found["format"], format);
        assert_eq!((&found["requests"], &found["targets"]), (&5_000.into(), &2_000.into()));
    }
}

#[test]
fn a_closed_pipe_ends_the_writing_quietly() {
    // 38.8 million requests: only who streams has the first ones before long.
    for format in ["csv", "time-id-size", "parquet"] {
        let mut child = plimsoll(&["synth", "worldcup", "--to-format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdout.take().unwrap();
        let mut first = [0; 4];
        pipe.read_exact(&mut first).unwrap();
        drop(pipe);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{format}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{format}");
    }
}

#[test]
fn arrivals_follow_a_profile() {
    let scratch = Scratch::new();
    // Minute 12 is left out: no requests.
    let profile = scratch.file("profile.csv", "minute,requests,bytes\n10,100,1\n11,300,1\n13,600,1\n");
    let file = scratch.name("chess.csv");
    stdout(&["synth", "chess", "--requests", "10000", "--arrivals-per-minute", &profile, "--to", &file]);
    let found = stats(&file);
    let per_minute: Vec<u64> = counts(&found["arrivals"]["requests"], |bin| bin).collect();
    assert_eq!(per_minute, [1_000, 3_000, 0, 6_000]);

    for (content, says) in [
        ("minute,count\n0,1\n", "line 1: the columns minute and requests"),
        ("minute,requests\n0,1\n1,many\n", "line 3: number of requests \"many\""),
        ("minute,requests\n5,1\n4,1\n", "line 3: minute 4 does not come after"),
        ("minute,requests\n0,1\n99999999999,1\n", "line 3: minute 99999999999"),
        ("minute,requests\n0,0\n", "holds no request"),
    ] {
        let bad = scratch.file("bad.csv", content);
        fails(&["synth", "chess", "--arrivals-per-minute", &bad], 1, &["bad.csv", says]);
    }
}

#[test]
fn the_published_day_can_be_followed() {
    let Some(day) = real_trace("worldcup98_day60_per_minute.csv") else {
        return;
    };
    let scratch = Scratch::new();
    let file = scratch.name("day.csv.zst");
    let args = ["--requests", "1000000", "--arrivals-per-minute", &day, "--to", &file];
    stdout(&[&["synth", "worldcup"], &args[..]].concat());
    let found = stats(&file);
    let made: Vec<u64> = counts(&found["arrivals"]["requests"], |bin| bin).collect();
    let text = fs::read_to_string(day).unwrap();
    let published: Vec<f64> =
        text.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert_eq!(made.len(), published.len());
    let all: f64 = published.iter().sum();
    for (made, published) in made.iter().zip(&published) {
        // Rounded to whole requests by the largest remainder.
        assert!((*made as f64 - published / all * 1e6).abs() <= 1.0);
    }
}

#[test]
fn synthesis_refuses_what_it_does_not_know() {
    fails(&["synth"], 2, &["rice, ibm", "--list"]);
    fails(&["synth", "rize"], 2, &["did you mean \"rice\"?"]);
    fails(&["synth", "rize", "--list"], 2, &["did you mean \"rice\"?"]);
    fails(&["synth", "rice", "--set", "exponet=1"], 2, &["did you mean \"exponent\"?"]);
    fails(&["synth", "rice", "--set", "exponent=steep"], 2, &["from 0 to 5"]);
    fails(&["synth", "rice", "--set", "exponent"], 2, &["KEY=VALUE"]);
    fails(&["synth", "rice", "--requests", "5"], 2, &["targets = 37703"]);
}

#[test]
fn workloads_are_listed() {
    let all = stdout(&["synth", "--list"]);
    for text in
        ["rice", "ibm", "chess", "hot", "worldcup", "double_pareto", "37,703", "194.7 MiB", "hot_share"]
    {
        assert!(all.contains(text), "{text} is not in {all}");
    }
    let width = all.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(width <= 100, "{width}");
    let one = stdout(&["synth", "ibm", "--list"]);
    assert!(one.contains("38,527") && !one.contains("37,703"), "{one}");
    // Table 1 has the two traces; the study chose the third workload itself.
    assert!(stdout(&["synth", "fine_grain", "--list"]).contains("Published figures"));
    let chosen = stdout(&["synth", "poisson_exp", "--list"]);
    assert!(!chosen.contains("Published") && chosen.contains("service_mean_ms"), "{chosen}");
    let scratch = Scratch::new();
    let file = scratch.name("exp.csv");
    let wrote = stdout(&["synth", "poisson_exp", "--requests", "5000", "--to", &file]);
    assert!(wrote.contains("Wrote 5,000 requests") && !wrote.contains("Published"), "{wrote}");
}

#[test]
fn what_is_written_has_all_fields_that_a_conversion_has() {
    let scratch = Scratch::new();
    for (name, columns) in [
        ("fine_grain", ",service_s,client"),
        ("poisson_exp", ",service_s"),
        ("worldcup66", ",kind"),
        ("chess", ""),
    ] {
        for ending in ["csv", "parquet"] {
            let [made, converted] =
                ["made", "converted"].map(|of| scratch.name(&format!("{name}-{of}.{ending}")));
            stdout(&["synth", name, "--requests", "60000", "--to", &made]);
            stdout(&["convert", &format!("synth:{name},requests=60000"), "--to", &converted]);
            let [made, converted] = [made, converted].map(|file| std::fs::read(file).unwrap());
            assert_eq!(made, converted, "{name} as {ending}");
            if ending == "csv" {
                let head = format!("time_s,target,size_bytes{columns}");
                assert!(made.starts_with(head.as_bytes()), "{name}: {head}");
            }
        }
    }
}
