//! A front-end that is killed, at whatever instant, and started again half a second later: each client that had a connection
//! is answered, goes on, or is reset before long. None is left hanging.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use plimsoll_testkit::{Why, eventually, pace};

use super::bed::{Bed, Options};
use super::http::{Client, content};
use super::round::{self, BODY, BOUND, GIVE_UP, PHASES};

/// From the kill to the start of the next process.
const DOWN: Duration = Duration::from_millis(500);

#[test]
fn five_hundred_clients_of_a_front_end_that_is_killed() {
    const ROUNDS: usize = 4;
    let config = "[admission]\nlimit = 10000\n".to_owned();
    let mut bed = Bed::new(Options { config, ..Options::default() }, &round::files());
    let mut state = u64::from(std::process::id());
    for _ in 0..ROUNDS {
        let wait = Duration::from_micros(super::faults::next(&mut state, 300_000));
        round::see(&mut bed, (500, &PHASES), wait, Bed::kill_front_end, |bed| {
            pace(DOWN, Why::TimeIsUp);
            bed.start_front_end();
        });
        bed.wait_for_links(2);
        bed.assert_quiet();
    }
    bed.stop_after_crash();
}

/// Clients that sent a request while something kept it from being answered, then a kill: each must be told.
fn assert_all_told(bed: &mut Bed, clients: Vec<Client>, repair: impl FnOnce(&Bed)) {
    let killed = Instant::now();
    bed.kill_front_end();
    repair(bed);
    pace(DOWN, Why::TimeIsUp);
    bed.start_front_end();
    for mut client in clients {
        client.stream.set_read_timeout(Some(GIVE_UP)).unwrap();
        let end = client.answer().map(|answer| answer.status);
        let waited = killed.elapsed();
        let silent = end.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        assert!(!silent && waited < BOUND, "{end:?} after {waited:?}");
    }
    bed.wait_for_links(2);
    bed.assert_quiet();
}

#[test]
fn clients_whose_handoff_was_not_confirmed_are_told() {
    const COUNT: usize = 40;
    let handoff = "take_over_timeout = \"5s\"".to_owned();
    let mut bed = Bed::new(Options { handoff, ..Options::default() }, &[("body", content(7, BODY))]);
    let vip = bed.vip();
    // The agents find the handoffs only after the front-end is gone.
    bed.agents.iter().flatten().for_each(|agent| agent.pause().unwrap());
    let clients: Vec<Client> = bed.client(|| {
        let mut clients: Vec<Client> = (0..COUNT).map(|_| Client::connect(vip).unwrap()).collect();
        clients.iter_mut().for_each(|client| client.send("/body").unwrap());
        clients
    });
    eventually("handoffs", || bed.metric("plimsoll_flows") == Some(COUNT as f64));
    assert_all_told(&mut bed, clients, |bed| {
        bed.agents.iter().flatten().for_each(|agent| agent.resume().unwrap());
    });
    bed.stop_after_crash();
}

#[test]
fn a_client_whose_connection_was_being_given_back_is_told() {
    let mut bed = Bed::new(Options::default(), &[("body", content(7, BODY))]);
    let vip = bed.vip();
    let mut client = bed.client(|| Client::connect(vip).unwrap());
    assert_eq!(client.get("/body").unwrap().status, 200);
    let returned = |bed: &Bed| bed.metric("plimsoll_handoffs_on_total").unwrap();
    let before = returned(&bed);
    // The agent asks, and hears that the connection is to come back. The longer message with which it does is lost.
    bed.lab.drop_frames("tcp sport 7400 ip length > 160").unwrap();
    client.send("/body").unwrap();
    let here = |bed: &Bed| -> usize {
        (0..2)
            .map(|index| {
                let node = bed.lab.node(plimsoll_lab::Node::Backend(index)).unwrap();
                let arguments = ["-tanH", "state", "established", "src", &vip.to_string()];
                let sockets = node.command("ss").args(arguments).output().unwrap();
                String::from_utf8_lossy(&sockets.stdout).lines().count()
            })
            .sum()
    };
    eventually("return", || here(&bed) == 0);
    assert_eq!(returned(&bed), before, "a connection arrived elsewhere");
    assert_all_told(&mut bed, vec![client], |bed| bed.lab.pass_frames().unwrap());
    bed.stop_after_crash();
}
