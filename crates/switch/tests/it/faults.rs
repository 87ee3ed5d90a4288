//! Floods of forged packets.

use plimsoll_datapath::switch::SwitchHook;

use crate::world::{OPTIONS, World};

const FORGED: u32 = 400_000;

/// A SYN from this client, as if for the interface `lo`.
fn forged_syn(number: u32, vip: std::net::Ipv4Addr) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend((0x0b00_0000 + number).to_be_bytes());
    frame.extend(vip.octets());
    frame.extend([0x12, 0x34, 0, 80]);
    frame.extend([0; 8]);
    frame.extend([0x50, 0x02, 0x20, 0, 0, 0, 0, 0]);
    frame
}

#[test]
fn forged_first_packets_break_nothing() {
    let world = World::new();
    let running = world.start_with("round_robin", OPTIONS, 2000);
    let mut connections: Vec<_> = (0..50).map(|_| world.connect(world.vip())).collect();
    running.until("all are counted", |shown| shown.conns == 50);
    for number in 0..FORGED {
        let frame = forged_syn(number, world.lab.virtual_address());
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
