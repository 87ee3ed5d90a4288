//! A connection that stays frozen at one machine while another answers on it, and goes on at the first.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use plimsoll_datapath::tcp::{
    Frozen, QueueLimits, TcpState, discard, fast_forward, restore, unacknowledged_bytes,
};
use plimsoll_datapath::{PacketRouter, PacketRouterConfig};
use plimsoll_testkit::{PATIENCE, eventually, kernel_counter, uninterrupted};

use crate::network::{Instance, has_nothing_to_read};
use crate::tcp::{blocking, flow_of, sent, wait_for_bytes};
use crate::tcp_world::{Plan, V4, V6, World};

fn read_exactly(stream: &mut TcpStream, bytes: usize) -> Vec<u8> {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = vec![0; bytes];
    stream.read_exact(&mut buffer).unwrap();
    buffer
}

fn answer(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| ((at + number) % 251) as u8).collect()
}

/// The state in which the original goes on, when the clone has sent this much and the client acknowledged it.
fn later(mut state: TcpState, sent_bytes: usize) -> TcpState {
    state.send_next = state.send_next.wrapping_add(u32::try_from(sent_bytes).unwrap());
    state.send_queue.clear();
    state.unsent_bytes = 0;
    state.receive_queue.clear();
    state
}

/// Has the second machine answer on a connection that the first one has frozen.
fn answered_by_clone(world: &World, client: &mut TcpStream, machine: TcpStream, answer: &[u8]) -> TcpStream {
    let frozen = Frozen::freeze(machine.into()).unwrap();
    let state = sent(&frozen.snapshot(&flow_of(&frozen), &[], QueueLimits::default()).unwrap());
    let restored = world.machines[1].run(|| restore(&state).unwrap());
    world.route_to(1);
    let mut clone = blocking(restored.activate().unwrap());
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read_exactly(client, answer.len()));
        clone.write_all(answer).unwrap();
        assert!(reading.join().unwrap() == answer, "another answer");
    });
    eventually("that all is acknowledged", || unacknowledged_bytes(clone.as_fd()).unwrap() == 0);
    // Another copy of its descriptor holds nothing up.
    let copy = clone.try_clone().unwrap();
    discard(clone.as_fd()).unwrap();
    drop(clone);
    let forwarded = fast_forward(frozen, &later(state, answer.len())).unwrap();
    world.route_to(0);
    let machine = blocking(forwarded.activate().unwrap());
    drop(copy);
    machine
}

fn goes_on_at_the_original(plan: Plan, sysctls: &[(&str, &str)]) {
    let world = World::new(plan);
    for (name, value) in sysctls {
        world.client.sysctl(name, value);
    }
    let (mut client, mut machine) = world.connection();
    for (number, bytes) in [10, 300_000, 1, 100_000].into_iter().enumerate() {
        client.write_all(b"request").unwrap();
        assert_eq!(read_exactly(&mut machine, 7), b"request");
        let before = machine.as_raw_fd();
        machine = answered_by_clone(&world, &mut client, machine, &answer(number, bytes));
        assert_eq!(machine.as_raw_fd(), before, "another descriptor");
        assert!(has_nothing_to_read(&client), "more than the answer");
        // Its own answer follows.
        client.write_all(b"own").unwrap();
        assert_eq!(read_exactly(&mut machine, 3), b"own");
        machine.write_all(&answer(7, 50_000)).unwrap();
        assert!(read_exactly(&mut client, 50_000) == answer(7, 50_000));
    }
    drop(machine);
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty(), "the end comes alone");
}

#[test]
fn a_clone_answers_and_the_original_goes_on() {
    goes_on_at_the_original(V4, &[]);
    goes_on_at_the_original(V6, &[]);
}

#[test]
fn a_clone_answers_a_client_without_options() {
    let off = ["net/ipv4/tcp_timestamps", "net/ipv4/tcp_sack", "net/ipv4/tcp_window_scaling"];
    goes_on_at_the_original(V4, &off.map(|name| (name, "0")));
    goes_on_at_the_original(V4, &[(off[0], "0")]);
}

#[test]
fn what_was_unread_is_put_back() {
    let world = World::new(V4);
    let (mut client, machine) = world.connection();
    client.write_all(b"unread").unwrap();
    wait_for_bytes(&machine, 6);
    let frozen = Frozen::freeze(machine.into()).unwrap();
    let state = frozen.snapshot(&flow_of(&frozen), b"read ", QueueLimits::default()).unwrap();
    assert_eq!(state.receive_queue, b"read unread");
    let mut machine = blocking(fast_forward(frozen, &state).unwrap().activate().unwrap());
    assert_eq!(read_exactly(&mut machine, 11), b"read unread");
    client.write_all(b"more").unwrap();
    assert_eq!(read_exactly(&mut machine, 4), b"more");
}

/// A kernel keeps a segment whole until all of it is acknowledged. Segments of a restored queue have other boundaries than those
/// that the client has received.
#[test]
fn what_is_acknowledged_of_a_segment_does_not_travel() {
    const SENT: usize = 600;
    const ACKNOWLEDGED: usize = 200;
    let world = World::new(V4);
    // The kernel may send the rest again before it is frozen.
    let travels_in_part = || {
        let (mut client, mut machine) = world.connection();
        let bytes = answer(0, SENT);
        machine.write_all(&bytes[..ACKNOWLEDGED]).unwrap();
        assert!(read_exactly(&mut client, ACKNOWLEDGED) == bytes[..ACKNOWLEDGED]);
        eventually("that it is acknowledged", || unacknowledged_bytes(machine.as_fd()).unwrap() == 0);
        let frozen = Frozen::freeze(machine.into()).unwrap();
        let mut state = frozen.snapshot(&flow_of(&frozen), &[], QueueLimits::default()).unwrap();
        // As if the rest had been lost on its way to the client, and so had the acknowledgment.
        state.send_next = state.send_next.wrapping_add(u32::try_from(SENT - ACKNOWLEDGED).unwrap());
        state.send_queue.clone_from(&bytes);
        frozen.close();
        let fd = world.machines[0].run(|| restore(&state).unwrap().activate().unwrap());
        // The client has told its number by now, as it was asked for it.
        let frozen = Frozen::freeze(fd).unwrap();
        let state = frozen.snapshot(&flow_of(&frozen), &[], QueueLimits::default()).unwrap();
        if state.send_queue.len() != SENT - ACKNOWLEDGED {
            return false;
        }
        assert!(state.send_queue == bytes[ACKNOWLEDGED..], "other bytes");
        frozen.close();
        let restored = world.machines[1].run(|| restore(&state).unwrap());
        world.route_to(1);
        let machine = blocking(restored.activate().unwrap());
        assert!(read_exactly(&mut client, SENT - ACKNOWLEDGED) == bytes[ACKNOWLEDGED..], "the client");
        world.route_to(0);
        drop(machine);
        true
    };
    eventually("a segment that is acknowledged in part", travels_in_part);
}

fn sent_again(world: &World) -> u64 {
    let counts = || std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    kernel_counter(&world.machines[0].run(counts), "Tcp", "RetransSegs")
}

/// A frozen connection sends again what its client has not acknowledged, with timestamps that those of a clone are behind.
fn sends_nothing_again_once_silenced(plan: Plan, go_on: impl Fn(&World, Frozen, &TcpState) -> OwnedFd) {
    let world = World::new(plan);
    let (mut client, mut machine) = world.connection();
    client.write_all(b"read and unread").unwrap();
    assert_eq!(read_exactly(&mut machine, 9), b"read and ");
    wait_for_bytes(&machine, 6);
    // Frozen, it acknowledges nothing.
    let deaf = Frozen::freeze(client.into()).unwrap();
    machine.write_all(b"answer").unwrap();
    let mut frozen = Frozen::freeze(machine.into()).unwrap();
    let state = frozen.snapshot(&flow_of(&frozen), b"", QueueLimits::default()).unwrap();
    assert_eq!((&state.send_queue[..], &state.receive_queue[..]), (&b"answer"[..], &b"unread"[..]));
    let before = sent_again(&world);
    eventually("that it sends again", || sent_again(&world) > before);
    frozen.silence(state.clone()).unwrap();
    let before = sent_again(&world);
    plimsoll_testkit::stays("silence", Duration::from_millis(1500), || sent_again(&world) == before);
    // Before the client says anything: no router holds its packets here.
    let mut machine = blocking(go_on(&world, frozen, &state));
    let mut client = blocking(deaf.thaw().unwrap());
    assert_eq!(read_exactly(&mut client, 6), b"answer");
    assert_eq!(read_exactly(&mut machine, 6), b"unread");
    client.write_all(b"request").unwrap();
    assert_eq!(read_exactly(&mut machine, 7), b"request");
    machine.write_all(&answer(3, 50_000)).unwrap();
    assert!(read_exactly(&mut client, 50_000) == answer(3, 50_000));
}

#[test]
fn what_is_silenced_sends_nothing_again() {
    for plan in [V4, V6] {
        sends_nothing_again_once_silenced(plan, |world, frozen, state| {
            world.machines[0].run(|| fast_forward(frozen, state).unwrap().activate().unwrap())
        });
        sends_nothing_again_once_silenced(plan, |world, frozen, _| {
            world.machines[0].run(|| frozen.thaw().unwrap())
        });
    }
}

/// The client takes none of a machine's packets for older than those of the machine before.
#[test]
fn each_stamp_is_later_than_what_was_sent_before() {
    // What a machine adds that restores a connection.
    const STEP: u32 = 2;
    let world = World::new(V4);
    let (_client, machine) = world.connection();
    let mut frozen = Frozen::freeze(machine.into()).unwrap();
    let flow = flow_of(&frozen);
    let state = frozen.snapshot(&flow, &[], QueueLimits::default()).unwrap();
    let mut sent = state.timestamp.unwrap() + STEP;
    let is_later = |timestamp: u32, sent: u32| timestamp.wrapping_sub(sent).cast_signed() > 0;
    for made_ahead in [0, 0, 2, 0] {
        let mut later = state.clone();
        frozen.stamp(&mut later).unwrap();
        assert!(is_later(later.timestamp.unwrap(), sent), "{:?} after {sent}", later.timestamp);
        sent = later.timestamp.unwrap() + STEP + made_ahead * 3 * STEP;
        frozen.passed_ahead(made_ahead);
    }
    let live = fast_forward(frozen, &state).unwrap().activate().unwrap();
    let state = Frozen::freeze(live).unwrap().snapshot(&flow, &[], QueueLimits::default()).unwrap();
    assert!(is_later(state.timestamp.unwrap() + STEP, sent), "{:?} after {sent}", state.timestamp);
}

#[test]
fn what_is_discarded_says_nothing() {
    let world = World::new(V4);
    let (client, mut machine) = world.connection();
    machine.write_all(b"answer").unwrap();
    let copy: OwnedFd = machine.try_clone().unwrap().into();
    wait_for_bytes(&client, 6);
    discard(machine.as_fd()).unwrap();
    drop((machine, copy));
    let mut client = client;
    assert_eq!(read_exactly(&mut client, 6), b"answer");
    plimsoll_testkit::stays("silence", Duration::from_millis(300), || has_nothing_to_read(&client));
}

/// Its answer meets no socket at the machine that asks, so the kernel there resets it by the number that it tells.
#[test]
fn a_client_that_the_router_asks_is_reset() {
    for plan in [V4, V6] {
        let world = World::new(plan);
        let (mut client, mut machine) = world.connection();
        let vip = machine.local_addr().unwrap();
        client.write_all(b"request").unwrap();
        read_exactly(&mut machine, 7);
        let frozen = Frozen::freeze(machine.into()).unwrap();
        let flow = flow_of(&frozen);
        frozen.close();
        let instance = Instance::new();
        let config = PacketRouterConfig {
            instance: instance.0.clone(),
            interface: "link0".to_owned(),
            vips: vec![vip],
            clones: 100,
            ring_bytes: 1 << 16,
        };
        world.machines[0].run(|| {
            let (router, _ring) = PacketRouter::open(&config, None).unwrap();
            router.ask_numbers(&flow, 7).unwrap();
        });
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let error = uninterrupted(|| client.read(&mut [0; 8])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
}

/// Prints what it costs: run it with `--release -- --nocapture fast_forwarded_very_often`.
#[test]
fn fast_forwarded_very_often() {
    const ROUNDS: usize = 2_000;
    for plan in [V4, V6] {
        let world = World::new(plan);
        let (mut client, machine) = world.connection();
        let mut times: [Vec<Duration>; 4] = Default::default();
        let mut machine = world.machines[0].run(|| {
            let mut fd: OwnedFd = machine.into();
            for _ in 0..ROUNDS {
                let start = Instant::now();
                let frozen = Frozen::freeze(fd).unwrap();
                let froze = start.elapsed();
                let state = frozen.snapshot(&flow_of(&frozen), &[], QueueLimits::default()).unwrap();
                let read = start.elapsed();
                let forwarded = fast_forward(frozen, &state).unwrap();
                let there = start.elapsed();
                fd = forwarded.activate().unwrap();
                let steps = [froze, read - froze, there - read, start.elapsed() - there];
                times.iter_mut().zip(steps).for_each(|(times, step)| times.push(step));
            }
            blocking(fd)
        });
        client.write_all(b"still").unwrap();
        assert_eq!(read_exactly(&mut machine, 5), b"still");
        for (name, mut times) in ["freeze", "snapshot", "fast-forward", "activate"].into_iter().zip(times) {
            times.sort_unstable();
            println!(
                "{}: {name} p50 {:?} p99 {:?}",
                world.vip(0).ip(),
                times[ROUNDS / 2],
                times[ROUNDS * 99 / 100]
            );
        }
    }
}
