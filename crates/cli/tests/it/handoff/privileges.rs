//! Handoff by processes that have given their privileges away, or never had more than capabilities.

use std::process::Command;

use plimsoll_lab::Node;
use plimsoll_testkit::eventually;

use super::bed::{Bed, Options};
use super::http::{Client, content};
use crate::rights::{BIND_SERVICE, BPF, NET_ADMIN, NOBODY, Rights};

const BODY: usize = 100_000;
const KEPT: u64 = NET_ADMIN | BPF | BIND_SERVICE;
/// No user of the user database.
const STRANGER: u32 = 54_321;

fn bed(options: Options) -> Bed {
    let options = Options { is_quiet: true, ..options };
    Bed::new(options, &[("body", content(7, BODY)), ("small", content(8, 500))])
}

/// The rights of the front-end, and of each agent.
fn rights(bed: &Bed) -> (Rights, Vec<Rights>) {
    let agents = bed.agents.iter().flatten().map(|agent| Rights::of(agent.id(), 4));
    (Rights::of(bed.front_end.as_ref().unwrap().id(), 4), agents.collect())
}

/// Connections move between back-ends, come back for a request with a body, and go on.
fn assert_hands_off(bed: &Bed) {
    for vip in [bed.vip(), bed.vip_v6()] {
        bed.client(|| {
            let mut client = Client::connect(vip).unwrap();
            for _ in 0..4 {
                let answer = client.get("/body").unwrap();
                assert!(answer.status == 200 && answer.body == content(7, BODY), "{}", answer.head);
                assert!(client.get("/small").unwrap().body == content(8, 500));
            }
        });
    }
    assert!(
        bed.metric("plimsoll_handoffs_on_total") > Some(0.0),
        "connections move from one back-end to another"
    );
}

/// A reload with another listener at a low port, and a log that was moved away.
fn assert_reloads(bed: &Bed) {
    std::fs::rename(bed.path("access.log"), bed.path("access.log.1")).unwrap();
    let other = std::net::SocketAddr::new(bed.vip().ip(), 81);
    bed.reload(&format!("{}\n[[listener]]\naddress = \"{other}\"\n", bed.config_text()));
    bed.client(|| {
        let answer = Client::connect(other).unwrap().get("/small").unwrap();
        assert!(answer.body == content(8, 500), "{}", answer.head);
    });
    let log = || std::fs::read_to_string(bed.path("access.log")).unwrap_or_default();
    eventually("a line of the new log", || log().contains("/small"));
}

fn said(bed: &Bed, name: &str) -> String {
    std::fs::read_to_string(bed.path(name)).unwrap()
}

/// A front-end that is killed, and the next one: a client goes on, with the connection that is returned.
fn assert_takes_over_what_was_pinned(bed: &mut Bed) -> Client {
    let mut client = bed.client(|| Client::connect(bed.vip()).unwrap());
    bed.client(|| client.get("/body").unwrap());
    bed.kill_front_end();
    bed.start_front_end();
    bed.wait_for_links(2);
    assert!(said(bed, "front-end.log").contains("taking over the map"), "{}", said(bed, "front-end.log"));
    assert_eq!(bed.client(|| client.get("/small").unwrap()).body, content(8, 500));
    client
}

#[test]
fn root_becomes_nobody() {
    let mut bed = bed(Options { owner: Some(NOBODY), ..Options::default() });
    let (front_end, agents) = rights(&bed);
    assert_eq!(front_end, Rights::trimmed(NOBODY, KEPT), "{}", said(&bed, "front-end.log"));
    assert_eq!(agents, vec![Rights::trimmed(NOBODY, KEPT); 2], "{}", said(&bed, "b0.log"));
    assert!(said(&bed, "b0.log").contains("runs as nobody (65534) with"), "{}", said(&bed, "b0.log"));
    assert_hands_off(&bed);
    assert_reloads(&bed);
    // Whoever comes after a crash finds what was pinned, as root, and gives it to nobody again.
    let client = assert_takes_over_what_was_pinned(&mut bed);
    bed.kill_agent(0);
    bed.start_agent(0);
    eventually("the agent", || said(&bed, "b0.log").matches("taking connections over at").count() == 2);
    bed.wait_for_links(2);
    assert_eq!(rights(&bed), (front_end, agents));
    drop(client);
    assert_hands_off(&bed);
    bed.assert_quiet();
    bed.stop_after_crash();
}

#[test]
fn a_plain_user_with_capabilities() {
    let mut bed = bed(Options { owner: Some(STRANGER), is_plain: true, ..Options::default() });
    let (front_end, agents) = rights(&bed);
    // Only CAP_SETPCAP trims the bounding set.
    let trimmed = Rights { bounding: front_end.bounding, ..Rights::trimmed(STRANGER, KEPT) };
    assert_eq!(front_end, trimmed, "{}", said(&bed, "front-end.log"));
    assert_eq!(agents, vec![trimmed; 2], "{}", said(&bed, "b0.log"));
    assert!(!said(&bed, "front-end.log").contains("Without this place"), "{}", said(&bed, "front-end.log"));
    assert_hands_off(&bed);
    assert_reloads(&bed);
    // What it pinned is there for the next one.
    let client = assert_takes_over_what_was_pinned(&mut bed);
    drop(client);
    bed.assert_quiet();
    bed.stop_after_crash();
}

/// The BPF file system as systemd mounts it.
#[test]
fn a_plain_user_who_may_not_pin() {
    let options = Options { owner: Some(STRANGER), is_plain: true, bpf_mode: "700", ..Options::default() };
    let bed = bed(options);
    for name in ["front-end.log", "b0.log"] {
        assert_eq!(said(&bed, name).matches("Without this place").count(), 1, "{}", said(&bed, name));
    }
    assert_hands_off(&bed);
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn agents_become_the_named_user() {
    let agent = vec!["--user".to_owned(), STRANGER.to_string(), "--no-seccomp".to_owned()];
    let bed = bed(Options { owner: Some(NOBODY), agent, ..Options::default() });
    let expected = Rights { seccomp: 0, ..Rights::trimmed(STRANGER, KEPT) };
    assert_eq!(rights(&bed).1, vec![expected; 2], "{}", said(&bed, "b0.log"));
    assert_hands_off(&bed);
    bed.assert_quiet();
    bed.stop();
}

/// As on most machines: the key is root's, so that the front-end stays root, and agents do not.
#[test]
fn root_keeps_its_key() {
    let bed = bed(Options::default());
    let (front_end, agents) = rights(&bed);
    assert_eq!(front_end, Rights::trimmed(0, KEPT), "{}", said(&bed, "front-end.log"));
    assert_eq!(agents, vec![Rights::trimmed(NOBODY, KEPT); 2], "{}", said(&bed, "b0.log"));
    let reason = format!("nobody may not read {}", bed.path("key").display());
    assert_eq!(said(&bed, "front-end.log").matches(&reason).count(), 1, "{}", said(&bed, "front-end.log"));
    assert_hands_off(&bed);
    assert_reloads(&bed);
    bed.assert_quiet();
    bed.stop();
}

/// What was pinned is removed where the way to it is closed since.
#[test]
fn nobody_cleans_up_behind_closed_doors() {
    let bed = bed(Options { owner: Some(NOBODY), bpf_mode: "700", ..Options::default() });
    let node = bed.lab.node(Node::FrontEnd).unwrap();
    let versions = std::fs::read_dir(node.root().join("sys/fs/bpf/plimsoll-65534/front-end")).unwrap();
    let pins = versions.flat_map(|version| std::fs::read_dir(version.unwrap().path()).unwrap());
    assert!(pins.count() >= 3);
    assert_hands_off(&bed);
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn a_user_who_may_not_use_a_file() {
    let bed = bed(Options { owner: Some(NOBODY), ..Options::default() });
    let text = format!("user = \"{STRANGER}\"\n{}", bed.config_text());
    let file = bed.path("other.toml");
    std::fs::write(&file, text).unwrap();
    let run = |arguments: &[&str]| {
        let node = bed.lab.node(Node::FrontEnd).unwrap();
        let mut command = node.command(env!("CARGO_BIN_EXE_plimsoll"));
        let output = command.args(arguments).arg("--config").arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        crate::common::text(&output.stderr)
    };
    for arguments in [&["check"][..], &["balance"]] {
        let error = run(arguments);
        let expected = format!("user {STRANGER} may not read {}", bed.path("key").display());
        assert!(error.contains(&expected) && error.contains("give that user access"), "{error}");
    }
    bed.assert_quiet();
    bed.stop();
}

/// As a plain user with the capabilities, with nothing missing; and without one, with just this one missing.
#[test]
fn a_system_is_checked_as_a_plain_user() {
    let bed = bed(Options { owner: Some(STRANGER), is_plain: true, ..Options::default() });
    let check_on = |node: Node, capabilities: &[&str], of_role: &[&str]| -> Vec<String> {
        let node = bed.lab.node(node).unwrap();
        let all = crate::rights::as_user(STRANGER, capabilities, bed.path("plimsoll"));
        let mut command: Command = node.command(&all[0]);
        command.args(&all[1..]).args(["check", "--system", "--json"]).args(of_role);
        let output = command.output().unwrap();
        let text = crate::common::text(&output.stdout);
        let findings: Vec<serde_json::Value> = serde_json::from_str(&text)
            .unwrap_or_else(|_| panic!("{text}{}", crate::common::text(&output.stderr)));
        let bad = findings.iter().filter(|finding| finding["status"] == "missing");
        bad.map(|finding| finding["name"].as_str().unwrap().to_owned()).collect()
    };
    let file = bed.path("plimsoll.toml").display().to_string();
    let check = |capabilities: &[&str]| check_on(Node::FrontEnd, capabilities, &["--config", &file]);
    let all = ["net_admin", "bpf", "perfmon", "net_bind_service"];
    assert_eq!(check(&all), [""; 0]);
    let front_end = bed.lab.node(Node::FrontEnd).unwrap().address().to_string();
    let vip = bed.vip().ip().to_string();
    let of_backend = ["--interface", "eth0", "--vip", &vip, "--front-end", &front_end];
    assert_eq!(check_on(Node::Backend(0), &all, &of_backend), [""; 0]);
    let missing = check_on(Node::Backend(0), &all[1..], &of_backend);
    assert_eq!(missing, ["CAP_NET_ADMIN", "packet programs", "TCP_REPAIR"]);
    for (left_out, name) in [(1, "CAP_BPF"), (2, "CAP_PERFMON"), (3, "CAP_NET_BIND_SERVICE")] {
        let mut some = all.to_vec();
        some.remove(left_out);
        let missing = check(&some);
        let of_capabilities: Vec<_> = missing.iter().filter(|what| what.starts_with("CAP_")).collect();
        assert_eq!(of_capabilities, [name], "{missing:?}");
    }
    bed.stop();
}
