//! Tests of scenarios as users ask for them.

use serde_json::json;

use super::*;

fn read(json: &serde_json::Value) -> Result<ScenarioSpec, String> {
    serde_json::from_value(json.clone()).map_err(|e| e.to_string())
}

fn scenarios(json: &serde_json::Value) -> Result<Vec<Scenario>, String> {
    read(json)?.scenarios(0).map_err(|e| e.to_string())
}

#[test]
fn what_is_written_reads_back() {
    let spec = read(&json!({
        "traces": ["a.log", "b.log"], "policy": ["wrr", {"name": "lard", "params": {"t_low": 10}}, "lard_r:k_s=2.5"],
        "backends": [4, 8], "model": "lard:disks=2", "cache": "15%", "cache-policy": "lru", "cache-object-limit": "500KiB",
        "set": {"lard.t_high": 80, "lard": {"cpu_speed": 1.5}}, "arrivals": "poisson:12.5", "admission": 7, "warmup": 5,
        "fault": ["down:2@10.5", "weight=0.5:1@3"], "dynamic-share": 0.3, "seed": 3, "format": "csv", "limit": 100,
    }))
    .unwrap();
    assert_eq!((spec.policy.len(), spec.cache), (3, CacheSize::WorkingSet(0.15)));
    assert_eq!(spec.cache_object_limit, Some(500 << 10));
    let written = serde_json::to_value(&spec).unwrap();
    assert_eq!(serde_json::to_value(read(&written).unwrap()).unwrap(), written);
    assert_eq!(
        written["policy"],
        json!(["weighted_round_robin", {"name": "lard", "params": {"t_low": 10}}, {"name": "lard_r", "params": {"k_s": 2.5}}])
    );
    let default = serde_json::to_value(ScenarioSpec::default()).unwrap();
    assert_eq!(serde_json::to_value(read(&json!({})).unwrap()).unwrap(), default);
}

#[test]
fn one_value_and_texts_stand_for_lists_and_numbers() {
    let spec = read(&json!({"policy": "wrr,lard:t_low=10,t_high=80,lard_r", "backends": "2,3", "seed": "7"}))
        .unwrap();
    let names: Vec<_> = spec.policy.iter().map(|choice| choice.strategy.name).collect();
    assert_eq!(names, ["weighted_round_robin", "lard", "lard_r"]);
    assert_eq!(spec.policy[1].params.given().count(), 2);
    assert_eq!((spec.backends, spec.seed), (vec![2, 3], 7));
    assert_eq!(read(&json!({"backends": 2})).unwrap().backends, [2]);
    assert_eq!(read(&json!({"policy": {"name": "wrr_gms"}})).unwrap().policy[0].strategy.name, "wrr_gms");
}

#[test]
fn parameters_go_to_whoever_has_them() {
    let all = scenarios(&json!({
        "policy": ["lard", "lard_r:t_low=5", "wrr_gms"], "backends": [2, 4, 2],
        "set": {"t_low": 10, "t_high": 70, "lard.disks": 2, "lard_r.k_s": 1, "lard.t_high": 80},
    }))
    .unwrap();
    let t = |s: &Scenario, key: &str| s.policy_params.get::<u32>(key);
    assert_eq!(all.iter().map(|s| s.backends).collect::<Vec<_>>(), [2, 2, 2, 4, 4, 4]);
    assert_eq!(
        (t(&all[0], "t_low"), t(&all[0], "t_high")),
        (Some(10), Some(70)),
        "the last in the order of keys"
    );
    assert_eq!((t(&all[1], "t_low"), t(&all[1], "t_high")), (Some(5), Some(70)), "its own wins");
    assert_eq!(t(&all[2], "t_low"), None);
    assert!(all.iter().all(|s| s.model_params.get::<u32>("disks") == Some(2)));
    assert_eq!(all[2].effective_model().name, "lard_gms");
}

#[test]
fn hardware_gives_what_was_not_given() {
    let cost = |s: &Scenario, key: &str| s.model_params.get::<f64>(key);
    let all = scenarios(&json!({
        "policy": ["lard", "wrr_gms", "adaptload_queue"], "hardware": "sata_ssd", "model": "lard:connect_us=7",
        "set": {"disk_latency_us": 5},
    }))
    .unwrap();
    for scenario in &all {
        assert_eq!((cost(scenario, "connect_us"), cost(scenario, "disk_latency_us")), (Some(7.0), Some(5.0)));
        assert_eq!(cost(scenario, "disk_transfer_per_4096_bytes_us"), Some(32.8));
    }
    assert_eq!(all[2].policy_params.get::<f64>("service_rate"), Some(1.25e9));
    let paper = &scenarios(&json!({"hardware": 1998})).unwrap()[0];
    assert_eq!((paper.hardware.name, cost(paper, "disk_latency_us")), ("1998", Some(28_000.0)));
    assert_eq!(scenarios(&json!({})).unwrap()[0].hardware.name, "nvme");
}

#[test]
fn what_cannot_be_run_is_refused() {
    for (wrong, part) in [
        (json!({"polcy": "lard"}), "unknown field `polcy`"),
        (json!({"policy": "lrad"}), "did you mean `lard`?"),
        (json!({"policy": "lard:t_lwo=5"}), "did you mean `t_low`?"),
        (json!({"policy": ["lard", "lard:t_low=5"]}), "twice with different parameters"),
        (json!({"model": "lrad"}), "no model `lrad`; did you mean `lard`?"),
        (json!({"hardware": "nvem"}), "no hardware `nvem`; did you mean `nvme`?"),
        (json!({"model": "lard:disks=0"}), "`disks = 0`: expected a whole number from 1 to 64 (disks)"),
        (
            json!({"set": {"lard.t_hihg": 5}}),
            "no policy, model or load information of this run takes `lard.t_hihg`; did you mean `lard.t_high`?",
        ),
        (json!({"set": {"lard.t_high": 5}}), "`t_high = 5` must be above `t_low = 25`"),
        (json!({"set": 5}), "expected a map"),
        (json!({"backends": 0}), "expected a number of back-ends from 1 to 65534, not `0`"),
        (json!({"backends": {}}), "expected a text, a number, or an array of these"),
        (json!({"cache": "lots"}), "expected a size"),
        (json!({"speed": 2}), "--speed goes with --arrivals trace"),
        (json!({"speed": -2, "arrivals": "trace"}), "expected a number above 0, not `-2`"),
        (json!({"dynamic-share": 1.5}), "expected a share from 0 to 1, not `1.5`"),
        (json!({"fault": "down:9@1"}), "a fault names back-end 9"),
        (json!({"limit": 0}), "above 0"),
    ] {
        let error = scenarios(&wrong).map(|all| all.len()).unwrap_err();
        assert!(error.contains(part), "{wrong}: {error}");
    }
}
