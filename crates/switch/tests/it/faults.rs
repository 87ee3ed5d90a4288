//! Floods of forged packets.

use std::time::{Duration, Instant};

use plimsoll_datapath::switch::{ChoiceRings, SwitchHook};
use plimsoll_switch::{ConnTimes, SwitchOptions};

use crate::world::{OPTIONS, World};

const FORGED: u32 = 400_000;

const SYN: u8 = 2;
const ACK: u8 = 0x10;
const FIN_ACK: u8 = 0x11;
const RST: u8 = 4;

/// A packet of this client without data, as if for the interface `lo`.
fn packet(number: u32, vip: std::net::Ipv4Addr, flags: u8, seq: u32) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend((0x0b00_0000 + number).to_be_bytes());
    frame.extend(vip.octets());
    frame.extend([0x12, 0x34, 0, 80]);
    frame.extend(seq.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
    frame
}

#[test]
fn forged_first_packets_break_nothing() {
    let world = World::new();
    let running = world.start_with("round_robin", OPTIONS, 2000);
    let mut connections: Vec<_> = (0..50).map(|_| world.connect(world.vip())).collect();
    running.until("all are counted", |shown| shown.conns == 50);
    for number in 0..FORGED {
        let frame = packet(number, world.lab.virtual_address(), SYN, 0);
        running.switch.try_frame(SwitchHook::Tc, &frame, 1).unwrap();
        if number % 40_000 == 0 {
            // New connections come through meanwhile.
            connections.push(world.connect(world.vip()));
        }
    }
    let counters = running.switch.counters().unwrap();
    assert!(counters.chosen + counters.hashed >= u64::from(FORGED), "{counters:?}");
    // No more are kept than half the table: the others go by the hash.
    running.until("events are read", |shown| shown.opening < 2000);
    for connection in &mut connections {
        let backend = connection.backend;
        assert_eq!(connection.ask().unwrap(), backend);
    }
    assert_eq!(connections.len(), 60);
    let shown = running.shown();
    assert_eq!(shown.conns - shown.opening, 60, "{shown:?}");
}

/// Waits until a choice is there for a connection that begins on this thread's CPU, or not much longer.
fn wait_for_choice(rings: &ChoiceRings) {
    let begun = Instant::now();
    while rings.is_empty(rustix::thread::sched_getcpu()) && begun.elapsed() < Duration::from_millis(100) {
        std::thread::yield_now();
    }
}

/// As many as `PLIMSOLL_SWITCH_CONNECTIONS` says: some end, some are reset, some clients vanish.
#[test]
fn counts_do_not_drift_however_connections_end() {
    let count = std::env::var("PLIMSOLL_SWITCH_CONNECTIONS").ok().and_then(|text| text.parse().ok());
    let count: u32 = count.unwrap_or(30_000);
    let world = World::new();
    let times = ConnTimes {
        idle: Duration::from_secs(3),
        opening: Duration::from_secs(2),
        closing: Duration::from_secs(1),
        ..OPTIONS.times
    };
    let options = SwitchOptions { times, depth: 64, ..OPTIONS };
    let running = world.start_with("least_connections", options, 20_000);
    // Only looked at.
    let rings = running.switch.choices().unwrap();
    let vip = world.lab.virtual_address();
    let send = |number, flags, seq| {
        _ = running.switch.try_frame(SwitchHook::Tc, &packet(number, vip, flags, seq), 1).unwrap();
    };
    for number in 0..count {
        // The policy places four of five at least.
        if number % 5 != 0 {
            wait_for_choice(&rings);
        }
        send(number, SYN, 100);
        match number % 8 {
            // Its client vanishes during the handshake, or after it.
            0 => {}
            1 => send(number, ACK, 101),
            2 => send(number, RST, 101),
            3 => {
                send(number, ACK, 101);
                send(number, RST, 101);
            }
            _ => {
                send(number, ACK, 101);
                send(number, FIN_ACK, 101);
            }
        }
    }
    running.until("none is left", |shown| shown.conns == 0);
    let shown = running.shown();
    let loads: u32 = shown.loads.iter().sum();
    assert_eq!((loads as usize, shown.opening), (shown.prepared, 0), "only choices are load: {shown:?}");
    assert!(shown.counts.taken > u64::from(count) / 2, "{shown:?}");
    println!("{count} connections: {:?}, {:?}", shown.counts, running.switch.counters().unwrap());
}
