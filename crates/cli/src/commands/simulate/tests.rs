//! Tests of the options of `simulate`.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Only {
    #[command(flatten)]
    args: Args,
}

fn json(spec: &ScenarioSpec) -> serde_json::Value {
    serde_json::to_value(spec).unwrap()
}

#[test]
fn the_defaults_shown_are_those_of_a_scenario() {
    let only = Only::parse_from(["simulate", "t.csv"]);
    let (shown, output) = specs(&only.args, |_| true).unwrap();
    assert_eq!(json(&shown), json(&ScenarioSpec { traces: vec!["t.csv".into()], ..ScenarioSpec::default() }));
    assert!(!output.json && output.jobs.is_none());
}

#[test]
fn every_option_that_decides_results_is_a_key_of_a_scenario() {
    let keys = json(&ScenarioSpec::default());
    let output = serde_json::to_value(OutputSpec::default()).unwrap();
    let command = <Only as clap::CommandFactory>::command();
    let options: Vec<&str> = command.get_arguments().filter_map(|arg| arg.get_long()).collect();
    let (known, mine): (Vec<&str>, Vec<&str>) =
        options.iter().partition(|name| keys.get(**name).is_some() || output.get(**name).is_some());
    assert_eq!(mine, ["scenario"]);
    // And `traces`, which is no option.
    let all: usize = [keys, output].iter().map(|all| all.as_object().unwrap().len()).sum();
    assert_eq!(known.len() + 1, all);
}
