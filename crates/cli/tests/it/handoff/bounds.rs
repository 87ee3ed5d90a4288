//! Every fault of an agent, a server, a link or a machine: after the bound no client hangs.

use std::path::Path;
use std::time::Duration;

use plimsoll_lab::{Lab, Node, Process};
use plimsoll_testkit::{Why, pace};

use super::bed::{Bed, ORIGIN_PORT, Options};
use super::round::{self, Fate, PHASES, Phase};

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
