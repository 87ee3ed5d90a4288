//! Tests of runs: what they ask for, and what they refuse.

use plimsoll_policy::registered;
use plimsoll_sim::PartitionPlan;
use serde_json::json;

use super::*;
use crate::spec::ScenarioSpec;

fn workload() -> Workload {
    Workload::synthesize("poisson_exp", &[("requests", "2000")], 1).unwrap()
}

fn scenarios(json: serde_json::Value) -> Result<Vec<Scenario>, ScenarioError> {
    serde_json::from_value::<ScenarioSpec>(json).unwrap().scenarios(0)
}

/// Runs one scenario of `fifo` back-ends.
fn run(json: &serde_json::Value) -> Run {
    let mut all =
        json!({"model": "fifo", "arrivals": "trace", "speed": 20, "admission": "none", "backends": 16});
    all.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
    execute(&scenarios(all).unwrap()[0], &workload(), &mut ()).unwrap()
}

/// Why such a scenario cannot be run.
fn refused(json: serde_json::Value) -> String {
    scenarios(json).unwrap_err().to_string()
}

#[test]
fn nobody_waits_for_loads_of_which_the_policy_makes_nothing() {
    for spec in registered().filter(|spec| spec.name != "sita_e") {
        let run = run(&json!({"policy": spec.name, "load-information": "poll"}));
        let traffic = run.load_traffic.unwrap();
        let waits = spec.load_use.is_asked_for() || spec.capabilities.can_poll();
        assert_eq!(traffic.polls > 0, waits, "{}", spec.name);
        assert_eq!(traffic.inquiries > 0, waits || spec.capabilities.can_probe(), "{}", spec.name);
    }
}

#[test]
fn cpu_is_told_only_where_it_is_spent() {
    for kind in ["poll", "broadcast"] {
        for model in ["lard", "adaptload"] {
            let error = refused(json!({"model": model, "load-information": format!("{kind}:cpu_s=0.01")}));
            for part in [&format!("`{kind}.cpu_s`"), &format!("`{model}`"), "the model `fifo`"] {
                assert!(error.contains(part), "{error}");
            }
            assert!(scenarios(json!({"model": model, "load-information": kind})).is_ok());
        }
        let run = run(&json!({"policy": "jsq", "load-information": format!("{kind}:cpu_s=0.0001")}));
        assert!(run.load_traffic.unwrap().cpu > 0.0, "{kind}");
    }
}

#[test]
fn a_hop_takes_its_time_with_one_front_end_too() {
    let of = |hop: &str| run(&json!({"policy": "round_robin", "hop": hop, "service": "deterministic:1ms"}));
    let (near, far) = (of("0"), of("2ms"));
    // Fifteen of sixteen requests go to another back-end.
    let added = far.response_time_s.unwrap().mean - near.response_time_s.unwrap().mean;
    assert!((added - 0.002 * 15.0 / 16.0).abs() < 1e-4, "{added}");
    assert_eq!((near.params.get("hop_s"), far.params.get("hop_s")), (None, Some(&json!(0.002))));
}

#[test]
fn what_would_have_no_effect_is_refused() {
    let error = refused(json!({"hop": "1ms", "load-information": "central", "front-ends": 4}));
    assert!(error.contains("--hop") && error.contains("`central`"), "{error}");
    let error = refused(json!({"exchange-interval": "1s"}));
    assert!(error.contains("--exchange-interval") && error.contains("--front-ends"), "{error}");
    let error = refused(json!({"exchange-interval": "1s", "load-information": "central", "front-ends": 4}));
    assert!(error.contains("manager chooses for all"), "{error}");
}

#[test]
fn a_run_is_checked_like_a_scenario_of_the_command_line() {
    let run = |change: &dyn Fn(&mut Scenario)| {
        let mut scenario = scenarios(json!({"policy": "wrr"})).unwrap().remove(0);
        scenario.backends = 512;
        change(&mut scenario);
        execute(&scenario, &workload(), &mut ()).map(|run| run.completed).map_err(|error| error.to_string())
    };
    let error = run(&|s| (s.front_ends, s.partitions) = (512, PartitionPlan::InTurn(128))).unwrap_err();
    assert!(error.contains("512 front-ends and 128 partitions"), "{error}");
    let error = run(&|s| s.front_ends = 0).unwrap_err();
    assert!(error.contains("1 to 1,024 front-ends"), "{error}");
    let error = run(&|s| s.dynamic_share = 2.0).unwrap_err();
    assert!(error.contains("from 0 to 1"), "{error}");
    assert_eq!(run(&|_| {}), Ok(2_000));
}

/// Four front-ends with a table each send a target to up to four back-ends; with one table for all, to as many as one front-end does.
#[test]
fn shared_tables_are_those_of_one_front_end() {
    let workload = Workload::synthesize("chess", &[("requests", "30000")], 1).unwrap();
    let run = |json: serde_json::Value| {
        let mut all = json!({"backends": 4, "dealing": "random", "load-information": "own"});
        all.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
        let run = execute(&scenarios(all).unwrap()[0], &workload, &mut ()).unwrap();
        assert_eq!(run.completed, 30_000);
        run
    };
    let misses = |policy: &str, front_ends: u16, tables: &str| {
        let run = run(json!({"policy": policy, "front-ends": front_ends, "tables": tables}));
        let told = run.params.get("tables").map(|tables| tables.as_str().unwrap().to_owned());
        assert_eq!(told.as_deref(), (tables == "shared").then_some("shared"));
        run.miss_ratio.unwrap()
    };
    for policy in ["lard", "lard_r", "lb_gc"] {
        let (one, shared, separate) =
            (misses(policy, 1, "separate"), misses(policy, 4, "shared"), misses(policy, 4, "separate"));
        assert!((shared / one - 1.0).abs() < 0.1, "{policy}: {shared} against {one}");
        assert!(separate > 1.3 * shared, "{policy}: {separate} against {shared}");
    }
    // In each partition its own table.
    let split =
        run(json!({"policy": "lard_r", "front-ends": 4, "tables": "shared", "partitions": "0,1/2,3"}));
    assert!(split.miss_ratio.unwrap() < 1.1 * misses("lard_r", 4, "shared"));
    let near =
        run(json!({"policy": "lard_r", "front-ends": 4, "tables": "shared", "arrivals": "poisson:50"}));
    let hop = json!({"policy": "lard_r", "front-ends": 4, "tables": "shared", "arrivals": "poisson:50", "hop": "5ms"});
    let far = run(hop);
    // Three of four requests are for another back-end than that of their front-end.
    let added = far.response_time_s.unwrap().mean - near.response_time_s.unwrap().mean;
    assert!((added / (0.75 * 0.005) - 1.0).abs() < 0.15, "{added}");
}

#[test]
fn tables_that_a_policy_has_not_are_not_shared() {
    for policy in registered().filter(|policy| policy.name != "sita_e") {
        let spec = scenarios(json!({"policy": policy.name, "front-ends": 2, "tables": "shared"}));
        let has = ["lard", "lard_auto", "lard_r", "lb_gc"].contains(&policy.name);
        assert_eq!(spec.is_ok(), has, "{}", policy.name);
        if let Err(error) = spec {
            let error = error.to_string();
            assert!(error.contains(&format!("`{}`", policy.name)), "{error}");
            assert!(error.contains("lb_gc, lard, lard_r, lard_auto have one"), "{error}");
        }
    }
    assert!(serde_json::from_value::<ScenarioSpec>(json!({"tables": "none"})).is_err());
}

#[test]
fn one_front_end_that_knows_all_has_no_messages() {
    let traffic = run(&json!({"policy": "jsq"})).load_traffic.unwrap();
    assert_eq!((traffic.messages, traffic.cpu, traffic.receive_cpu), (0, 0.0, 0.0));
    let run =
        run(&json!({"policy": "jsq", "front-ends": 4, "load-information": "broadcast:receive_cpu_s=0.0001"}));
    let traffic = run.load_traffic.unwrap();
    // 16 back-ends that announce ten times a second.
    assert!((traffic.receive_cpu / 0.016 - 1.0).abs() < 0.1, "{}", traffic.receive_cpu);
    assert_eq!(run.params.get("broadcast.receive_cpu_s"), Some(&json!(0.0001)));
}
