//! Agents that publish themselves in a network of their own, and take handoffs of a front-end that was told of none of them.

use plimsoll_testkit::eventually;

use super::bed::{Bed, Options};
use super::http::{Client, content};

const CLIENTS: usize = 8;

/// The back-ends that there are.
fn backends(bed: &Bed) -> Vec<String> {
    let text = bed.admin("/backends").unwrap_or_else(|| "[]".to_owned());
    let backends: serde_json::Value = serde_json::from_str(&text).unwrap();
    let names = backends.as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap().to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn agents_that_publish_themselves_take_handoffs_come_and_go() {
    let body = content(7, 50_000);
    let options = Options { is_discovered: true, is_quiet: true, ..Options::default() };
    let mut bed = Bed::new(options, &[("a", body.clone())]);
    let vip = bed.vip();
    let ask = |bed: &Bed| -> Vec<String> {
        bed.client(|| {
            let asked = (0..CLIENTS).map(|_| {
                let answer = Client::connect(vip).unwrap().get("/a").unwrap();
                assert!(answer.body == body, "{}", answer.head);
                answer.backend()
            });
            let mut seen: Vec<String> = asked.collect();
            seen.sort();
            seen.dedup();
            seen
        })
    };
    assert_eq!(ask(&bed), ["b0", "b1"]);
    let taken = bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}");
    assert!(taken >= Some(CLIENTS as f64), "{taken:?}");
    // One that is killed is gone after its time to live, because the other one is heard; and comes back.
    bed.kill_agent(1);
    eventually("one back-end", || backends(&bed) == ["b0"]);
    assert_eq!(ask(&bed), ["b0"]);
    bed.start_agent(1);
    eventually("two back-ends", || backends(&bed) == ["b0", "b1"]);
    bed.wait_for_links(2);
    eventually("answers of both", || ask(&bed).len() == 2);
    // The network carries no announcement any more: the last map stays in use, and the front-end says so.
    bed.lab.drop_frames("udp dport 7369").unwrap();
    let away = |bed: &Bed| bed.metric("plimsoll_directory_away");
    eventually("the front-end to hear nobody", || away(&bed) == Some(1.0));
    assert_eq!(backends(&bed), ["b0", "b1"]);
    assert_eq!(ask(&bed), ["b0", "b1"]);
    bed.lab.pass_frames().unwrap();
    eventually("the front-end to hear somebody", || away(&bed) == Some(0.0));
    assert_eq!(backends(&bed), ["b0", "b1"]);
    bed.assert_quiet();
    bed.stop();
}
