//! Connections through a switch whose process runs, or does not.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use plimsoll_switch::SwitchCommand;

use crate::world::{BACKENDS, Connection, OPTIONS, World};

/// Choices that wait at the CPUs when nothing happens: one at each.
fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How many more one back-end may have than another after connections one by one, because of the choices that wait at the CPUs.
fn slack() -> usize {
    OPTIONS.depth * cpus()
}

#[test]
fn the_policy_places_connections_and_their_ends_are_counted() {
    let world = World::new();
    for (policy, to) in [("round_robin", world.vip()), ("least_connections", world.vip_v6())] {
        let running = world.start(policy, OPTIONS);
        let before = world.accepted();
        let mut connections = Vec::new();
        for count in 1..=60 {
            // The choice of the one before is made good.
            running.until("there are choices", |shown| shown.prepared >= cpus());
            connections.push(world.connect(to));
            running.until("it is counted", |shown| shown.conns == count && shown.opening == 0);
        }
        let counts = running.shown().counts;
        assert_eq!((counts.taken, counts.stayed), (60, 0), "{policy}: {counts:?}");
        if policy == "least_connections" {
            let accepted = world.accepted();
            let got: Vec<usize> = accepted.iter().zip(&before).map(|(now, then)| now - then).collect();
            let spread = got.iter().max().unwrap() - got.iter().min().unwrap();
            assert!(spread <= slack(), "{policy}: {got:?}");
        }
        drop(connections);
        running.until("none is left", |shown| shown.conns == 0);
        let shown = running.shown();
        let waiting: u32 = shown.loads.iter().sum();
        assert_eq!(waiting as usize, shown.prepared, "only choices are load: {shown:?}");
        assert_eq!(shown.counts.forgotten, 0, "all ends were told");
    }
}

#[test]
fn connections_outlive_the_process_and_are_counted_by_the_next_one() {
    let world = World::new();
    let running = world.start("round_robin", OPTIONS);
    let mut kept: Vec<_> = (0..20).map(|_| world.connect(world.vip())).collect();
    running.until("all are counted", |shown| shown.conns == 20);
    drop(running);
    for connection in &mut kept {
        let backend = connection.backend;
        assert_eq!(connection.ask().unwrap(), backend, "without a process");
    }
    // What was put into the rings is taken first, and then the hash decides.
    let mut fresh: Vec<_> = (0..40).map(|_| world.connect(world.vip())).collect();
    // Its tables have other sizes, so that they are copied.
    let running = world.start_with("round_robin", OPTIONS, 12_000);
    running.until("all are counted", |shown| shown.conns == 60);
    assert_eq!(running.shown().counts.stayed, 60);
    for connection in kept.iter_mut().chain(&mut fresh) {
        let backend = connection.backend;
        assert_eq!(connection.ask().unwrap(), backend, "with the next process");
    }
    let loads = |open: &[Connection]| {
        (0..BACKENDS).map(|b| open.iter().filter(|c| u16::from(c.backend) == b).count()).collect::<Vec<_>>()
    };
    kept.append(&mut fresh);
    let by_backend = loads(&kept);
    running.until("loads are as they are", |shown| {
        let all: usize = shown.loads.iter().map(|&load| load as usize).sum();
        all == 60 + shown.prepared
            && shown.loads.iter().zip(&by_backend).all(|(&load, &open)| load as usize >= open)
    });
    drop(kept);
    running.until("none is left", |shown| shown.conns == 0);
}

#[test]
fn counts_do_not_drift() {
    let world = World::new();
    let running = world.start("least_connections", OPTIONS);
    for number in 0..600 {
        let connection = world.connect(if number % 2 == 0 { world.vip() } else { world.vip_v6() });
        if number % 3 == 0 {
            // A reset instead of an orderly end.
            reset_at_end(&connection.stream);
        }
    }
    running.until("all have ended", |shown| shown.counts.ended == 600 && shown.conns == 0);
    let shown = running.shown();
    assert_eq!(shown.loads.iter().sum::<u32>() as usize, shown.prepared, "{shown:?}");
    assert_eq!((shown.counts.taken + shown.counts.stayed, shown.counts.forgotten), (600, 0), "{shown:?}");
}

fn reset_at_end(stream: &TcpStream) {
    rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
}

#[test]
fn a_back_end_that_is_down_loses_its_connections_and_gets_no_others() {
    let world = World::new();
    let running = world.start("round_robin", OPTIONS);
    let connections: Vec<_> = (0..30).map(|_| world.connect(world.vip())).collect();
    running.until("all are counted", |shown| shown.conns == 30);
    running.tell(SwitchCommand::Backends(world.backends(&[1])));
    let of_it = connections.iter().filter(|connection| connection.backend == 1).count();
    assert!(of_it > 0);
    running.until("its connections are lost", |shown| shown.conns == 30 - of_it);
    assert_eq!(running.shown().counts.lost, of_it as u64);
    for mut connection in connections {
        let backend = connection.backend;
        match connection.ask() {
            Ok(answered) => assert!(answered == backend && backend != 1),
            Err(error) => assert!(backend == 1 && error.kind() == ErrorKind::ConnectionReset),
        }
    }
    let more: Vec<_> = (0..30).map(|_| world.connect(world.vip())).collect();
    assert!(more.iter().all(|connection| connection.backend != 1));
}
