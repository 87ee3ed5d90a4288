//! One connection moved very often. Prints what a move costs: run it with `--release -- --nocapture moved_very_often`.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use plimsoll_datapath::tcp::{Frozen, QueueLimits, TcpState, restore};

use crate::tcp::{blocking, flow_of, wait_for_bytes};
use crate::tcp_world::{V4, V6, World};

const ROUNDS: usize = 2_000;

#[test]
fn moved_very_often() {
    for plan in [V4, V6] {
        let world = World::new(plan);
        let (mut client, machine) = world.connection();
        client.write_all(&[b'x'; 300]).unwrap();
        wait_for_bytes(&machine, 300);
        let mut times: [Vec<Duration>; 5] = Default::default();
        let moved = world.machines[0].run(|| {
            let mut fd = machine.into();
            let mut bytes = Vec::new();
            for _ in 0..ROUNDS {
                let start = Instant::now();
                let frozen = Frozen::freeze(fd).unwrap();
                let froze = start.elapsed();
                let state = frozen.snapshot(&flow_of(&frozen), &[], QueueLimits::default()).unwrap();
                let read = start.elapsed();
                frozen.close();
                let closed = start.elapsed();
                bytes.clear();
                state.encode(&mut bytes);
                let state = TcpState::decode(&bytes).unwrap();
                let start = Instant::now();
                let restored = restore(&state).unwrap();
                let there = start.elapsed();
                fd = restored.activate().unwrap();
                let lives = start.elapsed();
                let steps = [froze, read - froze, closed - read, there, lives - there];
                for (step, time) in times.iter_mut().zip(steps) {
                    step.push(time);
                }
            }
            fd
        });
        let mut machine = blocking(moved);
        client.write_all(b"end").unwrap();
        let mut received = [0; 303];
        machine.read_exact(&mut received).unwrap();
        assert_eq!(received[297..], *b"xxxend");
        machine.write_all(b"answer").unwrap();
        client.read_exact(&mut received[..6]).unwrap();
        assert_eq!(received[..6], *b"answer");
        for (name, times) in ["freeze", "snapshot", "close", "restore", "activate"].iter().zip(&mut times) {
            times.sort_unstable();
            println!("{name}: p50 {:?}, p99 {:?}", times[ROUNDS / 2], times[ROUNDS * 99 / 100]);
        }
    }
}
