//! What bounds retries, and what the admin API says of them.

use std::sync::atomic::Ordering;

use super::rig::Rig;
use crate::common::get;
use crate::ejection::failing;

#[test]
fn a_budget_bounds_what_failing_back_ends_get() {
    let origins: Vec<_> = (0..3).map(|_| failing(1)).collect();
    let of_all: Vec<_> = origins.iter().map(|(origin, ..)| origin).collect();
    let rig = Rig::new(&of_all, "[ejection]\nfailures = 0\n[retry_budget]\nshare = 0\nleast_per_s = 0\n");
    let mut client = rig.client();
    for _ in 0..30 {
        client.send(get("/"));
        assert_eq!(client.response("GET").status(), 502);
    }
    let got: usize = origins.iter().map(|(_, _, got)| got.load(Ordering::SeqCst)).sum();
    assert_eq!(got, 30);
    let metrics = rig.metrics_once(|m| m.get("plimsoll_retries_denied_total") == 30.0);
    assert_eq!(metrics.get("plimsoll_retries_total"), 0.0);
    assert_eq!(metrics.get("plimsoll_retries_left"), 0.0);
    let why = rig.get("/why?target=/").json();
    assert_eq!(why["retries"], serde_json::json!({"made": 0, "denied": 30, "left": 0}));
    assert!(why["explanation"].as_str().unwrap().contains("The retry budget is used up"), "{why}");
}

#[test]
fn without_a_bound_every_request_is_tried_as_often_as_limits_say() {
    let origins: Vec<_> = (0..3).map(|_| failing(1)).collect();
    let of_all: Vec<_> = origins.iter().map(|(origin, ..)| origin).collect();
    let tables = "[ejection]\nfailures = 0\n[retry_budget]\nshare = 1\n[limits]\nretries = 2\n";
    let rig = Rig::new(&of_all, tables);
    let mut client = rig.client();
    for _ in 0..50 {
        client.send(get("/"));
        assert_eq!(client.response("GET").status(), 502);
    }
    let got: usize = origins.iter().map(|(_, _, got)| got.load(Ordering::SeqCst)).sum();
    assert_eq!(got, 150);
    assert!(rig.get("/why?target=/").json()["retries"]["left"].is_null());
}
