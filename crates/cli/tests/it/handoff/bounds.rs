//! Every fault of an agent, a server, a link or a machine: after the bound no client hangs.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use plimsoll_lab::{Lab, Node, Process};
use plimsoll_testkit::{Why, eventually, pace};

use super::bed::{Bed, ORIGIN_PORT, Options};
use super::http::Client;
use super::round::{self, Fate, PHASES, Phase};
use crate::nginx::shim;

const CLIENTS: usize = 100;
const WAIT: Duration = Duration::from_millis(100);

/// With checks by the defaults: how soon they find a back-end that hangs is a part of the bound.
fn options(backends: usize) -> Options {
    let config = "[admission]\nlimit = 10000\n[health]\ninterval = \"1s\"\n".to_owned();
    Options { backends, config, ..Options::default() }
}

fn count(fates: &[(Phase, Fate, Duration)], fate: Fate) -> usize {
    fates.iter().filter(|(_, f, _)| *f == fate).count()
}

/// Until all clients know what became of them.
fn stay_broken(_: &mut Bed) {}

#[test]
fn an_agent_that_is_killed() {
    let mut bed = Bed::new(options(2), &round::files());
    let fates = round::see(&mut bed, (CLIENTS, &PHASES), WAIT, |bed| bed.kill_agent(0), stay_broken);
    assert!(count(&fates, Fate::Reset) > 0 && count(&fates, Fate::WentOn) > 0);
    bed.start_agent(0);
    bed.wait_for_links(2);
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn an_agent_that_is_paused() {
    let mut bed = Bed::new(options(2), &round::files());
    let fates = round::see(&mut bed, (CLIENTS, &PHASES), WAIT, |bed| bed.pause_agent(0), stay_broken);
    assert!(count(&fates, Fate::Reset) > 0 && count(&fates, Fate::WentOn) > 0);
    bed.agents[0].as_ref().unwrap().resume().unwrap();
    bed.wait_for_links(2);
    bed.assert_quiet();
    bed.stop();
}

/// What answers stands still with it, and the checks do not notice: a request that the agent has not taken goes elsewhere.
#[test]
fn an_agent_that_is_paused_where_checks_only_connect() {
    let mut options = options(2);
    options.config += "probe = \"tcp\"\n";
    let bed = Bed::new(options, &round::files());
    let vip = bed.vip();
    bed.pause_agent(0);
    // They ask at once, so that all are handed off before the link is lost.
    let ask = || {
        let answer = Client::connect(vip).and_then(|mut client| client.get("/body"));
        assert!(answer.is_ok_and(|answer| answer.status == 200 && answer.backend() == "b1"));
    };
    bed.client(|| std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(ask)))));
    assert!(bed.metric("plimsoll_handoffs_total{outcome=\"timed_out\"}") > Some(0.0));
    bed.agents[0].as_ref().unwrap().resume().unwrap();
    bed.wait_for_links(2);
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn a_back_end_that_is_cut_off() {
    let mut bed = Bed::new(options(2), &round::files());
    let pull = |bed: &mut Bed| bed.lab.link(Node::Backend(0)).unwrap().down().unwrap();
    let fates = round::see(&mut bed, (CLIENTS, &PHASES), WAIT, pull, stay_broken);
    assert!(count(&fates, Fate::Reset) > 0 && count(&fates, Fate::WentOn) > 0);
    bed.lab.link(Node::Backend(0)).unwrap().up().unwrap();
    bed.wait_for_links(2);
    bed.assert_quiet();
    bed.stop();
}

/// What they send is the last new thing that is seen of them, and they repeat it.
#[test]
fn clients_that_send_after_the_link_was_given_up() {
    let mut bed = Bed::new(options(2), &round::files());
    let pull = |bed: &mut Bed| bed.lab.link(Node::Backend(0)).unwrap().down().unwrap();
    let fates = round::see(&mut bed, (CLIENTS, &[Phase::Late]), WAIT, pull, stay_broken);
    assert!(count(&fates, Fate::Reset) > 0 && count(&fates, Fate::WentOn) > 0);
    bed.lab.link(Node::Backend(0)).unwrap().up().unwrap();
    bed.wait_for_links(2);
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn a_link_that_is_cut_while_packets_of_clients_pass() {
    let mut bed = Bed::new(options(2), &round::files());
    let fates = round::see(&mut bed, (CLIENTS, &PHASES), WAIT, |bed| bed.interrupt_link(0), stay_broken);
    assert!(count(&fates, Fate::WentOn) > 0);
    bed.lab.pass_frames().unwrap();
    bed.wait_for_links(2);
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn front_end_and_agent_at_once() {
    let mut bed = Bed::new(options(2), &round::files());
    let kill = |bed: &mut Bed| {
        bed.kill_agent(0);
        bed.kill_front_end();
    };
    round::see(&mut bed, (CLIENTS, &PHASES), WAIT, kill, |bed| {
        pace(Duration::from_millis(500), Why::TimeIsUp);
        bed.start_front_end();
    });
    bed.start_agent(0);
    bed.wait_for_links(2);
    bed.assert_quiet();
    bed.stop_after_crash();
}

#[test]
fn a_front_end_whose_machine_is_gone() {
    let mut bed = Bed::new(options(2), &round::files());
    let pull = |bed: &mut Bed| bed.lab.link(Node::FrontEnd).unwrap().down().unwrap();
    // Only those to whom a back-end sends can hear of it.
    let fates = round::see(&mut bed, (20, &[Phase::Downloading]), WAIT, pull, stay_broken);
    assert_eq!(count(&fates, Fate::Reset), 20);
}

/// Servers with the accept shim, behind agents that pass connections.
fn shimmed_servers(lab: &Lab, directory: &Path) -> Vec<Process> {
    let shim = shim(directory);
    let start = |index: usize| {
        let node = lab.node(Node::Backend(index)).unwrap();
        let socket = directory.join(format!("b{index}.sock"));
        let mut command = node.command("/usr/bin/python3");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/handoff/unmodified/files.py"));
        command.args(["asyncio", "1"]).arg(directory.join("www")).arg(&socket);
        command.arg(format!("{}:{ORIGIN_PORT}", node.address())).env("LD_PRELOAD", &shim);
        let server = node.spawn(&mut command).unwrap();
        eventually("a server with the shim", || UnixStream::connect(&socket).is_ok());
        server
    };
    (0..2).map(start).collect()
}

/// It has the connections between requests, so that its agent does not hear of a next request.
#[test]
fn a_server_behind_the_shim_that_stands_still() {
    let serve = Some("shim:DIRECTORY/bINDEX.sock".to_owned());
    let mut bed = Bed::new_with(Options { serve, ..options(2) }, &round::files(), shimmed_servers);
    let fates = round::see(&mut bed, (CLIENTS, &PHASES), WAIT, |bed| bed.pause_server(0), stay_broken);
    assert!(count(&fates, Fate::Reset) > 0 && count(&fates, Fate::WentOn) > 0);
    bed.resume_server(0);
    bed.assert_quiet();
    bed.stop();
}

/// Servers behind agents that copy.
fn servers(lab: &Lab, directory: &Path) -> Vec<Process> {
    (0..2)
        .map(|index| {
            let node = lab.node(Node::Backend(index)).unwrap();
            let mut command = node.command(env!("CARGO_BIN_EXE_plimsoll"));
            command.args(["origin", "--listen", &format!("{}:{ORIGIN_PORT}", node.address())]);
            node.spawn(command.arg("--root").arg(directory.join("www"))).unwrap()
        })
        .collect()
}

#[test]
fn a_server_behind_an_agent_that_is_killed_or_stands_still() {
    let serve = Some(format!("copy:ADDRESS:{ORIGIN_PORT}"));
    for kills in [true, false] {
        let mut bed = Bed::new_with(Options { serve: serve.clone(), ..options(2) }, &round::files(), servers);
        let fault = |bed: &mut Bed| if kills { bed.kill_server(0) } else { bed.pause_server(0) };
        let fates = round::see(&mut bed, (CLIENTS, &PHASES), WAIT, fault, stay_broken);
        // What a server that was killed had sent is passed on.
        assert!((kills || count(&fates, Fate::Reset) > 0) && count(&fates, Fate::WentOn) > 0);
        bed.resume_server(0);
        bed.assert_quiet();
        bed.stop();
    }
}
