//! What the admin API changes and explains.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::rig::{Rig, call, text};
use crate::common::origin::{Origin, echo};

/// Holds whoever comes until it is opened.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn pass(&self) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |open| !*open).unwrap());
    }

    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
}

fn gated(gate: &Arc<Gate>) -> Origin {
    let gate = Arc::clone(gate);
    Origin::answering(move |request| {
        if request.target() == "/slow" {
            gate.pass();
        }
        echo(request)
    })
}

#[test]
fn a_drained_backend_finishes_what_it_has() {
    let gate = Arc::new(Gate::default());
    let origins = [gated(&gate), gated(&gate)];
    let rig = Rig::new(&[&origins[0], &origins[1]], "[policy]\nname = \"least_connections\"\n");
    let mut slow = rig.client();
    slow.send(crate::common::get("/slow"));
    // The first of two idle back-ends has it.
    rig.metrics_once(|m| m.get("plimsoll_backend_load{backend=\"b0\"}") == 1.0);
    let drained = rig.call("POST", "/backends/b0/drain", &[], "");
    assert_eq!(drained.status, 200);
    let state = drained.json();
    assert_eq!(
        (&state["health"], &state["drained"], &state["load"]),
        (&"draining".into(), &true.into(), &1.into())
    );
    assert_eq!(state["takes_requests"], false);
    rig.get_times(20, "/quick");
    assert!(origins[0].take_lines().iter().all(|line| line == "GET /slow"));
    assert_eq!(origins[1].take_lines().len(), 20);
    assert_eq!(rig.get("/readyz").status, 200);
    assert_eq!(rig.metrics().get("plimsoll_backend_state{backend=\"b0\",state=\"draining\"}"), 1.0);
    assert_eq!(rig.metrics().get("plimsoll_backend_state{backend=\"b0\",state=\"up\"}"), 0.0);
    gate.open();
    assert_eq!(slow.response("GET").status(), 200);

    rig.call("POST", "/backends/b1/drain", &[], "");
    let ready = rig.get("/readyz");
    assert_eq!(ready.status, 503);
    assert!(ready.body.contains("no back-end takes requests"), "{ready:?}");
    assert!(
        rig.get("/why?target=/x").json()["explanation"]
            .as_str()
            .unwrap()
            .contains("No back-end takes requests")
    );
    assert_eq!(rig.get("/healthz").status, 200);
    let back = rig.call("POST", "/backends/b0/undrain", &[], "").json();
    assert_eq!((&back["health"], &back["drained"]), (&"up".into(), &false.into()));
    assert_eq!(rig.get("/readyz").status, 200);
    rig.get_times(3, "/again");
    assert_eq!(origins[1].take_lines(), [""; 0]);
}

#[test]
fn not_ready_while_stopping() {
    let gate = Arc::new(Gate::default());
    let origin = gated(&gate);
    let rig = Rig::new(&[&origin], "");
    let admin = rig.admin;
    let mut slow = rig.client();
    slow.send(crate::common::get("/slow"));
    rig.metrics_once(|m| m.get("plimsoll_load") == 1.0);
    assert_eq!(rig.get("/readyz").status, 200);
    let stopping = std::thread::spawn(move || rig.stop());
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let ready = call(admin, "GET", "/readyz", &[], "");
        if ready.status == 503 {
            assert!(ready.body.contains("stopping"), "{ready:?}");
            break;
        }
        assert!(Instant::now() < until, "{ready:?}");
    }
    gate.open();
    assert_eq!(slow.response("GET").status(), 200);
    stopping.join().unwrap();
    assert!(std::net::TcpStream::connect(admin).is_err());
}

#[test]
fn requests_that_wait() {
    let gate = Arc::new(Gate::default());
    let origin = gated(&gate);
    let rig = Rig::new(&[&origin], "[admission]\nlimit = 1\nqueue = 1\n");
    let (mut served, mut waits, mut refused) = (rig.client(), rig.client(), rig.client());
    served.send(crate::common::get("/slow"));
    rig.metrics_once(|m| m.get("plimsoll_load") == 1.0);
    waits.send(crate::common::get("/waits"));
    rig.metrics_once(|m| m.get("plimsoll_requests_waiting") == 1.0);
    let why = rig.get("/why?target=/x").json();
    assert_eq!((&why["waiting"], &why["admission_limit"]), (&1.into(), &1.into()));
    assert!(why["explanation"].as_str().unwrap().contains("1 wait already"), "{why}");
    assert_eq!(refused.get("/refused").status(), 503);
    gate.open();
    assert_eq!((served.response("GET").status(), waits.response("GET").status()), (200, 200));
    let m = rig.metrics_once(|m| m.sum("plimsoll_requests_total", "") == 3.0);
    assert_eq!(m.get("plimsoll_requests_waited_total"), 1.0);
    assert_eq!(m.get("plimsoll_requests_refused_total"), 1.0);
    assert_eq!(m.get("plimsoll_refusals_total{reason=\"queue_full\"}"), 1.0);
    assert_eq!(m.sum("plimsoll_refusals_total", ""), 1.0);
    let refusals = rig.get("/refusals").json();
    assert_eq!((&refusals[0]["reason"], &refusals[0]["count"]), (&"queue_full".into(), &1.into()));
    let why = rig.get("/why?target=/x").json();
    assert_eq!(why["refusals"], refusals);
    let explanation = why["explanation"].as_str().unwrap();
    assert!(explanation.contains("1 for `queue_full`") && explanation.contains("`admission.queue`"), "{why}");
    assert_eq!(m.get("plimsoll_requests_waiting"), 0.0);
    assert_eq!(m.get("plimsoll_requests_total{code=\"5xx\"}"), 1.0);
}

#[test]
fn weights() {
    let origins = [Origin::echo(), Origin::echo()];
    let rig = Rig::new(&[&origins[0], &origins[1]], "[policy]\nname = \"weighted_round_robin\"\n");
    let set = |name: &str, body: &str| rig.call("PUT", &format!("/backends/{name}/weight"), &[], body);
    assert_eq!(set("b0", "{\"weight\": 0}").json()["weight"], 0.0);
    assert_eq!(rig.backend("b0")["takes_requests"], false);
    rig.get_times(10, "/a");
    assert_eq!((origins[0].take_lines().len(), origins[1].take_lines().len()), (0, 10));
    assert_eq!(set("b0", "0.5").json()["weight"], 0.5);
    assert_eq!(rig.metrics().get("plimsoll_backend_weight{backend=\"b0\"}"), 0.5);
    rig.get_times(10, "/a");
    assert!(!origins[0].take_lines().is_empty());
    for bad in ["", "-1", "70000", "{\"weight\": \"1\"}", "{\"wieght\": 1}", "many"] {
        set("b0", bad).assert_error(400);
    }
    assert_eq!(rig.backend("b0")["weight"], 0.5);
    for path in ["/backends/b9/weight", "/backends//weight", "/backends/B0/weight"] {
        rig.call("PUT", path, &[], "1").assert_error(404);
    }
    rig.call("POST", "/backends/b9/drain", &[], "").assert_error(404);
    // A reload leaves alone what the configuration says as before, and a name may be percent-encoded.
    rig.reload(&text(
        &[(&origins[0], ""), (&origins[1], "weight = 3")],
        "[policy]\nname = \"weighted_round_robin\"\n",
    ));
    assert_eq!((&rig.backend("b%30")["weight"], &rig.backend("b1")["weight"]), (&0.5.into(), &3.0.into()));
}

#[test]
fn why_shows_the_server_set() {
    let origins = [Origin::echo(), Origin::echo()];
    let rig = Rig::new(&[&origins[0], &origins[1]], "[policy]\nname = \"lard_r\"\n");
    let why = |path: &str| rig.get(&format!("/why?target={path}")).json();
    let before = why("/a%7eb?c=1&d=2");
    assert_eq!(before["server_set"], serde_json::json!([]));
    assert_eq!((&before["known_size_bytes"], &before["load"]), (&serde_json::Value::Null, &0.into()));
    assert!(before["explanation"].as_str().unwrap().contains("No request has been assigned yet"), "{before}");
    rig.get_times(1, "/a~b?c=1&d=2");
    // The end of a request is told a moment after its answer.
    rig.metrics_once(|m| m.get("plimsoll_load") == 0.0);
    let after = why("/a%7eb?c=1&d=2");
    assert_eq!(after["server_set"], serde_json::json!(["b0"]));
    assert_eq!((&after["policy"], &after["keeps_assignments"]), (&"lard_r".into(), &true.into()));
    assert_eq!(after["target_id"], before["target_id"]);
    assert_eq!(after["known_size_bytes"], "GET /a~b?c=1&d=2\n".len());
    assert_eq!(after["backends"][0]["in_server_set"], true);
    assert_eq!(after["backends"][1]["in_server_set"], false);
    let words = after["explanation"].as_str().unwrap();
    assert!(words.contains("has assigned this target to b0 (load 0)"), "{words}");
    let other = why("/a~b?c=1");
    assert_eq!(other["server_set"], serde_json::json!([]));
    assert!(other["explanation"].as_str().unwrap().contains("none of this one"), "{other}");
    for bad in ["/why", "/why?target=", "/why?target=a", "/why?x=/a"] {
        rig.get(bad).assert_error(400);
    }
}

#[test]
fn why_says_when_it_cannot_tell() {
    let origin = Origin::echo();
    let rig = Rig::new(&[&origin], "[policy]\nname = \"round_robin\"\n[target]\nkey = \"header:x-tenant\"\n");
    rig.get_times(1, "/a");
    let why = rig.get("/why?target=blue%20one").json();
    assert_eq!((&why["target"], &why["keeps_assignments"]), (&"blue one".into(), &false.into()));
    assert!(why["explanation"].as_str().unwrap().contains("not a prediction"), "{why}");
}

#[test]
fn the_policy_in_numbers() {
    let origins = [Origin::echo(), Origin::echo()];
    let tables =
        "[policy]\nname = \"lard\"\nt_low = 7\n[shadow]\npolicy = \"round_robin\"\n[admission]\nlimit = 50\n";
    let rig = Rig::new(&[&origins[0], &origins[1]], tables);
    for _ in 0..5 {
        rig.get_times(1, "/a");
        rig.get_times(1, "/b");
    }
    let policy = rig.get("/policy").json();
    assert_eq!((&policy["name"], &policy["parameters"]["t_low"]), (&"lard".into(), &7.into()));
    assert_eq!((&policy["admission_limit"], &policy["decisions"]), (&50.into(), &10.into()));
    assert_eq!((&policy["tracked_targets"], &policy["waiting"]), (&2.into(), &0.into()));
    let shadow = &policy["shadow"];
    assert_eq!((&shadow["policy"], &shadow["live"]["requests"]), (&"round_robin".into(), &10.into()));
    assert_eq!(shadow["shadow"]["per_backend"], serde_json::json!([5, 5]));
    let metrics = rig.metrics();
    let ratio = |policy, role| {
        metrics.get(&format!("plimsoll_shadow_miss_ratio{{policy=\"{policy}\",role=\"{role}\"}}"))
    };
    assert_eq!(policy["shadow"]["live"]["miss_ratio"], ratio("lard", "live"));
    assert_eq!(policy["shadow"]["shadow"]["miss_ratio"], ratio("round_robin", "shadow"));
    assert_eq!(metrics.get("plimsoll_shadow_imbalance{policy=\"round_robin\",role=\"shadow\"}"), 1.0);
    assert_eq!(metrics.get("plimsoll_policy_info{policy=\"lard\"}"), 1.0);
    assert_eq!(metrics.get("plimsoll_policy_tracked_targets"), 2.0);
    assert_eq!(metrics.get("plimsoll_admission_limit"), 50.0);
    for (stat, value) in policy["stats"].as_object().unwrap() {
        let series = format!("plimsoll_policy_stat{{policy=\"lard\",stat=\"{stat}\"}}");
        assert_eq!(metrics.samples.get(&series).copied(), value.as_f64(), "{series}");
    }
    assert!(
        metrics.sum("plimsoll_policy_stat", "") >= 0.0 && !policy["stats"].as_object().unwrap().is_empty()
    );
}
