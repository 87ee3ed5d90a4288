//! Connections distributed at layer 4: clients, a switch and three origins, each a machine of a lab, with real processes.

mod datagrams;
mod leftover;
mod told;
mod upgrades;
mod ways;
mod world;

use std::process::Command;

use plimsoll_lab::Node;
use plimsoll_testkit::{PATIENCE, eventually};

use self::world::{BACKENDS, BODY, Downloads, World};
use super::http::{Client, content};
use crate::rights::{BPF, NET_ADMIN, Rights, as_user, command_in};

#[test]
fn connections_are_spread_counted_and_shown() {
    let world = World::new("round_robin", "");
    let by = world.answering(60);
    assert!(by.iter().all(|&n| (12..=28).contains(&n)), "{by:?}");
    // curl, too.
    let node = world.lab.node(Node::Client).unwrap();
    for vip in [world.vip(), world.vip_v6()] {
        let output = node.command("curl").args(["-s", "-S", &format!("http://{vip}/big")]).output().unwrap();
        assert!(output.stdout == content(1, BODY), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut open = world.connect(world.vip());
    open.get("/small").unwrap();
    eventually("it is shown", || {
        let flows = world.admin("/flows").unwrap();
        flows.contains("\"held\"") && flows.contains("\"b")
    });
    drop(open);
    eventually("no connection is left", || world.metric("plimsoll_switch_connections") == Some(0.0));
    let choices = world.metric("plimsoll_switch_choices");
    assert_eq!(Some(world.load()), choices, "only choices are load");
    assert_eq!(world.metric("plimsoll_switch_events_lost_total"), Some(0.0));
    let packets: f64 = (0..BACKENDS)
        .map(|b| world.metric(&format!("plimsoll_switch_backend_packets_total{{backend=\"b{b}\"}}")).unwrap())
        .sum();
    assert!(packets > 300.0, "{packets}");
}

#[test]
fn downloads_outlive_a_killed_process() {
    let mut world = World::new("least_connections", "");
    let mut downloads = Downloads::start(&world, "/big", 40);
    eventually("all are counted", || world.metric("plimsoll_switch_connections") == Some(40.0));
    world.front_end.take().unwrap().kill();
    downloads.read_some(100_000);
    assert_eq!(world.answering(20).iter().sum::<usize>(), 20, "new ones go by what was left");
    world.start();
    eventually("all are counted again", || world.metric("plimsoll_switch_connections") >= Some(40.0));
    downloads.read_some(100_000);
    let begun = "plimsoll_switch_connections_begun_total{by=\"policy\"}";
    let before = world.metric(begun).unwrap();
    eventually("the policy chooses again", || {
        world.answering(5);
        world.metric(begun) > Some(before + 15.0)
    });
    // An orderly stop, too.
    let stopped = world.front_end.take().unwrap().stop_within(PATIENCE).unwrap();
    assert!(stopped.is_some_and(|status| status.success()));
    world.start();
    downloads.finish();
    eventually("no connection is left", || world.metric("plimsoll_switch_connections") == Some(0.0));
}

#[test]
fn a_back_end_that_dies_or_is_drained_gets_no_new_connections() {
    let mut world = World::new("round_robin", "");
    let held = world.held(12);
    eventually("all are counted", || world.metric("plimsoll_switch_connections") == Some(12.0));
    world.post("/backends/b1/drain");
    eventually("it gets none", || world.answering(12)[1] == 0);
    for mut client in held {
        assert_eq!(client.get("/small").unwrap().status, 200, "those that it has go on");
    }
    world.post("/backends/b1/undrain");
    eventually("it gets some again", || world.answering(12)[1] > 0);
    world.origins[0] = None;
    eventually("it is down", || {
        world.metric("plimsoll_backend_state{backend=\"b0\",state=\"down\"}") == Some(1.0)
    });
    eventually("nobody is sent to it", || {
        let all = (0..12).map(|_| {
            let client = world.lab.node(Node::Client).unwrap();
            let answer = client.run(|| Client::connect(world.vip())?.get("/small")).unwrap();
            answer.is_ok_and(|answer| answer.backend() != "b0")
        });
        all.filter(|good| *good).count() == 12
    });
    world.start_origin(0);
    eventually("it gets some again", || {
        world.metric("plimsoll_backend_state{backend=\"b0\",state=\"up\"}") == Some(1.0)
            && world.answering(12)[0] > 0
    });
}

#[test]
fn decisions_are_logged_and_replay_identically() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("decisions");
    let mut world = World::new("least_connections", &format!("[decision_log]\ndirectory = {log:?}\n"));
    let mut open = world.held(10);
    world.answering(30);
    open.truncate(4);
    eventually("their ends are counted", || world.metric("plimsoll_switch_connections") == Some(4.0));
    // Another policy takes over while connections are under way.
    world.write("round_robin", &format!("[decision_log]\ndirectory = {log:?}\n"));
    world.front_end.as_ref().unwrap().reload().unwrap();
    eventually("it has taken over", || world.admin("/policy").is_some_and(|s| s.contains("round_robin")));
    world.answering(30);
    drop(open);
    eventually("no connection is left", || world.metric("plimsoll_switch_connections") == Some(0.0));
    world.front_end.take().unwrap().stop_within(PATIENCE).unwrap();
    let replay = Command::new(env!("CARGO_BIN_EXE_plimsoll")).arg("replay").arg(&log).output().unwrap();
    let said = String::from_utf8_lossy(&replay.stdout).into_owned();
    assert!(replay.status.success(), "{said}{}", String::from_utf8_lossy(&replay.stderr));
    assert!(said.contains("least_connections") && said.contains("round_robin"), "{said}");
}

#[test]
fn requests_are_seen_as_they_pass() {
    let directory = tempfile::tempdir().unwrap();
    let (log, list) = (directory.path().join("decisions"), directory.path().join("files"));
    std::fs::write(&list, format!("1000 5 /small\n{BODY} 5 /big\n")).unwrap();
    let mut world = World::new("csld", "");
    let sniffed = "plimsoll_switch_sniffed_total";
    // Several on one connection, and each is seen.
    let mut client = world.connect(world.vip());
    (0..10).for_each(|_| assert_eq!(client.get("/small").unwrap().status, 200));
    world.answering(20);
    eventually("all are seen", || world.metric(sniffed) == Some(30.0));
    assert_eq!(world.metric("plimsoll_switch_samples_lost_total"), Some(0.0));
    world.front_end.take().unwrap().stop_within(PATIENCE).unwrap();
    world.write("csld", &format!("[decision_log]\ndirectory = {log:?}\n"));
    world.append_direct(&format!("file_list = {list:?}\n"));
    world.start();
    world.answering(20);
    eventually("they are seen again", || world.metric(sniffed) >= Some(20.0));
    drop(client);
    eventually("no connection is left", || world.metric("plimsoll_switch_connections") == Some(0.0));
    world.front_end.take().unwrap().stop_within(PATIENCE).unwrap();
    let replay = Command::new(env!("CARGO_BIN_EXE_plimsoll")).arg("replay").arg(&log).output().unwrap();
    let said = String::from_utf8_lossy(&replay.stdout).into_owned();
    assert!(replay.status.success(), "{said}{}", String::from_utf8_lossy(&replay.stderr));
    let told = std::fs::read_to_string(world.directory.path().join("said")).unwrap();
    assert!(told.contains("read the list of files"), "{told}");
}

#[test]
fn it_keeps_two_capabilities_and_says_which_it_lacks() {
    let mut world = World::new("round_robin", "");
    let rights = Rights::of(world.front_end.as_ref().unwrap().id(), 4);
    assert_eq!(rights.permitted & !(NET_ADMIN | BPF), 0, "{rights:?}");
    world.front_end.take().unwrap().stop_within(PATIENCE).unwrap();
    let program = command_in(world.directory.path());
    let config = world.directory.path().join("plimsoll.toml");
    let all = as_user(54_321, &[], program);
    let node = world.lab.node(Node::FrontEnd).unwrap();
    let mut command = node.command(&all[0]);
    let output = command.args(&all[1..]).args(["balance", "--config"]).arg(config).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("CAP_BPF") && said.contains("CAP_NET_ADMIN"), "{said}");
}
