//! What the switch makes of first packets and of what follows, and what stays of its tables.

use std::net::SocketAddr;

use plimsoll_datapath::switch::{
    ConnHolder, ConnTable, PreparedChoice, Switch, SwitchConfig, SwitchHook, TABLE_SLOTS, Transport,
};

use crate::network::{Instance, opened};
use crate::packet::{ACK, FIN, Packet, SYN};
use crate::switch::{World, config, hashed_and_other, hop, pairs, tcp, worlds};

#[test]
fn a_packet_that_does_not_follow_the_first_one_establishes_nothing() {
    for (mut world, client, vip) in worlds() {
        let (_, chosen) = hashed_and_other(&world, client, vip);
        let conn = tcp(client, vip);
        let syn = Packet::new(client, vip, SYN).numbers(u32::MAX, 0).frame();
        let choice = PreparedChoice { number: 1, backend: chosen };
        world.with_choice(choice, |world| assert_eq!(world.backend(&syn), Some(chosen)));
        for seq in [u32::MAX, 65_536, 1 << 31] {
            let other = Packet::new(client, vip, ACK).numbers(seq, 5).payload(3);
            assert_eq!(world.backend(&other.frame()), Some(chosen));
            assert_eq!(world.table(&conn), Some(ConnTable::Opening), "{seq}");
        }
        // The client tries again with another number: from then on that one is right.
        let again = Packet::new(client, vip, SYN).numbers(5_000_000, 0).frame();
        assert_eq!(world.backend(&again), Some(chosen));
        assert_eq!(world.backend(&Packet::new(client, vip, ACK).numbers(0, 5).frame()), Some(chosen));
        assert_eq!(world.table(&conn), Some(ConnTable::Opening));
        // Its acknowledgment is lost, and so is the first packet with data.
        let data = Packet::new(client, vip, ACK).numbers(5_001_449, 5).payload(3);
        assert_eq!(world.backend(&data.frame()), Some(chosen));
        assert_eq!(world.table(&conn), Some(ConnTable::Established));
        assert_eq!(world.switch.get(&conn).unwrap().unwrap().1.seq_end, 5_001_452);
    }
}

#[test]
fn a_repeated_first_packet_goes_where_it_went() {
    for (mut world, client, vip) in worlds() {
        let syn = |seq| Packet::new(client, vip, SYN).numbers(seq, 0).frame();
        let hashed = world.backend(&syn(999)).unwrap();
        let other = (hashed + 1) % 3;
        // There are choices by now, and another table.
        world.switch.set_table(&vec![Some((hashed + 2) % 3); TABLE_SLOTS]).unwrap();
        let choice = PreparedChoice { number: 1, backend: other };
        world.with_choice(choice, |world| assert_eq!(world.backend(&syn(999)), Some(hashed)));
        let ack = Packet::new(client, vip, ACK).numbers(1000, 5).frame();
        assert_eq!(world.backend(&ack), Some(hashed), "its connection, too");
        // Of another client port, to have none of that.
        let mut port = client;
        port.set_port(4712);
        let syn = |seq| Packet::new(port, vip, SYN).numbers(seq, 0).frame();
        let hashed = world.backend(&syn(999)).unwrap();
        let choice = PreparedChoice { number: 2, backend: (hashed + 1) % 3 };
        world.with_choice(choice, |world| {
            assert_eq!(world.backend(&syn(1999)), Some((hashed + 1) % 3), "that is another attempt");
        });
    }
}

#[test]
fn only_what_belongs_to_a_connection_is_sampled() {
    for (world, client, vip) in worlds() {
        world.switch.set_sample_bytes(64).unwrap();
        let data = |seq| Packet::new(client, vip, ACK).numbers(seq, 5).payload(40).frame();
        let samples = |world: &World| world.switch.counters().unwrap().samples;
        world.backend(&Packet::new(client, vip, SYN).payload(40).frame());
        world.backend(&data(1000));
        assert_eq!(samples(&world), 0, "a packet from nowhere");
        world.backend(&data(1040));
        assert_eq!(samples(&world), 1);
        world.backend(&data(1040 + (1 << 21)));
        assert_eq!(samples(&world), 1, "far from what the client has sent");
    }
}

#[test]
fn tables_of_another_size_keep_their_connections() {
    let instance = Instance::new();
    let (client, vip) = pairs()[0];
    let open = |connections, opening| {
        let config = SwitchConfig { connections, opening, ..config(&instance) };
        let switch = opened(|| Switch::open_for(&config, None)).unwrap();
        switch.set_services(&[(vip, Transport::Tcp)]).unwrap();
        switch.set_backend(ConnHolder { backend: 1, generation: 0 }, 1, Some(&hop(1))).unwrap();
        switch.set_table(&vec![Some(1); TABLE_SLOTS]).unwrap();
        switch
    };
    let switch = open(1000, 1000);
    let clients: Vec<_> = (0..300).map(|port| SocketAddr::new(client.ip(), 5000 + port)).collect();
    for &client in &clients {
        switch.try_frame(SwitchHook::Tc, &Packet::new(client, vip, ACK).frame(), 1).unwrap();
    }
    drop(switch);
    for (connections, capacity) in [(4000, 4000), (500, 500), (350, 500)] {
        let switch = open(connections, connections);
        let kept = clients.iter().filter(|&&client| switch.get(&tcp(client, vip)).unwrap().is_some()).count();
        assert_eq!((kept, switch.capacity(ConnTable::Hashed)), (300, capacity), "too many are not moved");
    }
}

#[test]
fn connections_outlive_their_service() {
    for (mut world, client, vip) in worlds() {
        let other = SocketAddr::new(client.ip(), 4712);
        let packet = |from, flags, seq| Packet::new(from, vip, flags).numbers(seq, 5).frame();
        let (_, chosen) = hashed_and_other(&world, client, vip);
        let choice = PreparedChoice { number: 1, backend: chosen };
        world.with_choice(choice, |world| world.backend(&packet(client, SYN, 999)));
        assert_eq!(world.backend(&packet(client, ACK, 1000)), Some(chosen));
        let hashed = world.backend(&packet(other, ACK, 1000));
        world.switch.set_services(&[]).unwrap();
        assert_eq!(world.backend(&packet(client, ACK, 1000)), Some(chosen));
        assert_eq!(world.backend(&packet(other, ACK, 1000)), hashed);
        for (from, by) in [(client, Some(chosen)), (other, hashed)] {
            assert_eq!(world.backend(&packet(from, FIN | ACK, 1000)), by);
            assert_eq!(world.backend(&packet(from, ACK, 1001)), by, "the last packet");
            assert_eq!(world.backend(&packet(from, SYN, 5000)), None, "a new connection");
        }
        let third = SocketAddr::new(client.ip(), 4713);
        assert_eq!(
            (world.backend(&packet(third, SYN, 1)), world.backend(&packet(third, ACK, 1))),
            (None, None)
        );
    }
}
