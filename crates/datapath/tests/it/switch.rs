//! The switch's programs, tried on single packets by XDP and by tc.

use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_datapath::switch::{
    ChoiceRings, ConnChange, ConnEvent, ConnHolder, ConnTable, MOST_CHOICES, PreparedChoice, Switch,
    SwitchConfig, SwitchConn, SwitchHook, TABLE_SLOTS, Transport,
};
use plimsoll_datapath::{Flow, NextHop, PacketVerdict};

use crate::network::Instance;
use crate::packet::{ACK, FIN, Packet, RST, SYN};

pub(crate) const HOOKS: [SwitchHook; 2] = [SwitchHook::Tc, SwitchHook::Xdp];
pub(crate) const VIPS: [&str; 2] = ["10.0.0.1:80", "[fd00::1]:80"];

pub(crate) fn hop(backend: u16) -> NextHop {
    NextHop {
        ifindex: 1,
        mac: [2, 0, 0, 0, 1, u8::try_from(backend).unwrap()],
        own_mac: [2, 0, 0, 0, 0, 0xa],
    }
}

pub(crate) fn config(instance: &Instance) -> SwitchConfig {
    SwitchConfig {
        instance: instance.0.clone(),
        interfaces: vec![],
        hook: SwitchHook::Auto,
        connections: 10_000,
        opening: 1000,
        sample_bytes: 0,
    }
}

/// A switch at no interface before three back-ends, which serves TCP and UDP at [`VIPS`]. The hash places slot n at n modulo 3.
pub(crate) struct World {
    pub(crate) switch: Switch,
    pub(crate) rings: ChoiceRings,
    pub(crate) hook: SwitchHook,
    _instance: Instance,
}

impl World {
    pub(crate) fn new(hook: SwitchHook) -> Self {
        let instance = Instance::new();
        let switch = Switch::open_for(&config(&instance), None).expect("these tests need root");
        let services = VIPS.map(|vip| vip.parse().unwrap());
        let both = [Transport::Tcp, Transport::Udp];
        let services: Vec<_> = services.iter().flat_map(|&vip| both.map(|t| (vip, t))).collect();
        switch.set_services(&services).unwrap();
        for backend in 0..3 {
            switch.set_backend(ConnHolder { backend, generation: 0 }, 1, Some(&hop(backend))).unwrap();
        }
        let table: Vec<_> = (0..TABLE_SLOTS).map(|slot| Some((slot % 3) as u16)).collect();
        switch.set_table(&table).unwrap();
        let rings = switch.choices().unwrap();
        Self { switch, rings, hook, _instance: instance }
    }

    /// Has a choice in the rings of all CPUs meanwhile, as it is not known on which one a frame is tried.
    pub(crate) fn with_choice<T>(&mut self, choice: PreparedChoice, work: impl FnOnce(&Self) -> T) -> T {
        for cpu in 0..self.rings.cpus() {
            assert!(self.rings.put(cpu, choice));
        }
        let result = work(self);
        self.rings.withdraw(|_| true, |_| {});
        result
    }

    /// Which back-end gets the frame, if one does.
    pub(crate) fn backend(&self, frame: &[u8]) -> Option<u16> {
        let trial = self.switch.try_frame(self.hook, frame, 1).unwrap();
        match trial.verdict {
            PacketVerdict::Pass => {
                assert_eq!(trial.frame, frame, "what passes is left as it is");
                None
            }
            PacketVerdict::Redirect => {
                assert_eq!(trial.frame[12..], frame[12..], "only MAC addresses change");
                assert_eq!(trial.frame[6..12], hop(0).own_mac);
                assert_eq!(trial.frame[..5], hop(0).mac[..5]);
                Some(trial.frame[5].into())
            }
            other => panic!("{other:?}"),
        }
    }

    fn events(&self) -> Vec<ConnEvent> {
        let mut events = Vec::new();
        let mut reader = self.switch.events().unwrap();
        reader.wait(Duration::ZERO, |event| events.push(event)).unwrap();
        events
    }

    pub(crate) fn table(&self, conn: &SwitchConn) -> Option<ConnTable> {
        self.switch.get(conn).unwrap().map(|(table, _)| table)
    }
}

/// (client, virtual address) of both families.
pub(crate) fn pairs() -> [(SocketAddr, SocketAddr); 2] {
    VIPS.map(|vip| {
        let client = if vip.starts_with('[') { "[fd00::9]:4711" } else { "10.0.0.9:4711" };
        (client.parse().unwrap(), vip.parse().unwrap())
    })
}

pub(crate) fn worlds() -> impl Iterator<Item = (World, SocketAddr, SocketAddr)> {
    HOOKS.into_iter().flat_map(|hook| pairs().map(|(client, vip)| (World::new(hook), client, vip)))
}

pub(crate) fn tcp(client: SocketAddr, vip: SocketAddr) -> SwitchConn {
    SwitchConn { flow: Flow::new(client, vip), transport: Transport::Tcp }
}

/// The back-end that the hash gives, and another one.
pub(crate) fn hashed_and_other(world: &World, client: SocketAddr, vip: SocketAddr) -> (u16, u16) {
    let hashed = world.backend(&Packet::new(client, vip, SYN).frame()).unwrap();
    (hashed, (hashed + 1) % 3)
}

#[test]
fn a_connection_goes_where_its_first_packet_went() {
    for (mut world, client, vip) in worlds() {
        let (hashed, chosen) = hashed_and_other(&world, client, vip);
        let conn = tcp(client, vip);
        assert_eq!(world.table(&conn), None, "nothing is kept of a SYN that the hash has placed");
        let syn = Packet::new(client, vip, SYN).numbers(999, 0).frame();
        let choice = PreparedChoice { number: 17, backend: chosen };
        world.with_choice(choice, |world| assert_eq!(world.backend(&syn), Some(chosen)));
        assert_eq!(world.table(&conn), Some(ConnTable::Opening));
        assert_eq!(world.backend(&syn), Some(chosen), "a repeated SYN takes no further choice");
        let ack = Packet::new(client, vip, ACK).numbers(1000, 5).payload(10);
        assert_eq!(world.backend(&ack.frame()), Some(chosen));
        assert_eq!(world.table(&conn), Some(ConnTable::Established));
        let fin = Packet::new(client, vip, FIN | ACK).numbers(1010, 7);
        assert_eq!(world.backend(&fin.frame()), Some(chosen));
        assert_eq!(world.backend(&Packet::new(client, vip, ACK).numbers(1011, 8).frame()), Some(chosen));
        let (_, entry) = world.switch.get(&conn).unwrap().unwrap();
        assert_eq!((entry.packets, entry.fin, entry.rst, entry.hashed), (5, true, false, false));
        assert_eq!((entry.seq_end, entry.last_ack, entry.choice), (1011, 8, Some(17)));
        assert_eq!(world.backend(&syn), Some(hashed), "the client uses its port again");
        assert_eq!(world.table(&conn), None);

        let events = world.events();
        let changes: Vec<_> = events.iter().map(|event| event.change).collect();
        let [ConnChange::Began, ConnChange::Established { round_trip_ns: Some(_) }, ConnChange::Ended] =
            changes[..]
        else {
            panic!("{changes:?}")
        };
        assert!(events.iter().all(|e| e.conn == conn && e.choice == Some(17) && e.holder.backend == chosen));
    }
}

#[test]
fn without_choices_the_hash_decides() {
    for (world, client, vip) in worlds() {
        let conn = tcp(client, vip);
        let (hashed, _) = hashed_and_other(&world, client, vip);
        for flags in [SYN, RST, SYN | ACK, FIN] {
            assert_eq!(world.backend(&Packet::new(client, vip, flags).frame()), Some(hashed));
            assert_eq!(world.table(&conn), None, "{flags}");
        }
        assert_eq!(world.backend(&Packet::new(client, vip, ACK).frame()), Some(hashed));
        assert_eq!(world.table(&conn), Some(ConnTable::Hashed));
        assert!(world.events().is_empty(), "a single packet may be forged");
        // It stays there when the table changes.
        world.switch.set_table(&vec![Some((hashed + 1) % 3); TABLE_SLOTS]).unwrap();
        assert_eq!(world.backend(&Packet::new(client, vip, ACK).frame()), Some(hashed));
        assert_eq!(world.backend(&Packet::new(client, vip, RST).frame()), Some(hashed));
        let changes: Vec<_> = world.events().iter().map(|event| (event.change, event.choice)).collect();
        let established = ConnChange::Established { round_trip_ns: None };
        assert_eq!(changes, [(established, None), (ConnChange::Ended, None)]);
        let counters = world.switch.counters().unwrap();
        assert_eq!((counters.chosen, counters.hashed, counters.stray), (0, 1, 1));
    }
}

#[test]
fn datagrams_are_connections_too() {
    for (mut world, client, vip) in worlds() {
        let conn = SwitchConn { transport: Transport::Udp, ..tcp(client, vip) };
        let datagram = Packet::new(client, vip, 0).udp(&[1; 30]);
        let choice = PreparedChoice { number: 3, backend: 2 };
        world.with_choice(choice, |world| assert_eq!(world.backend(&datagram), Some(2)));
        assert_eq!(world.table(&conn), Some(ConnTable::Opening));
        assert_eq!(world.backend(&datagram), Some(2));
        assert_eq!(world.table(&conn), Some(ConnTable::Established));
        // Its back-end goes: the next datagram begins another one.
        let holder = ConnHolder { backend: 2, generation: 0 };
        world.switch.set_backend(holder, 1, None).unwrap();
        let choice = PreparedChoice { number: 4, backend: 1 };
        world.with_choice(choice, |world| assert_eq!(world.backend(&datagram), Some(1)));
        let changes: Vec<_> = world.events().iter().map(|event| (event.change, event.choice)).collect();
        let established = ConnChange::Established { round_trip_ns: None };
        let (began, lost) = (ConnChange::Began, ConnChange::Lost);
        assert_eq!(changes, [(began, Some(3)), (established, Some(3)), (lost, Some(3)), (began, Some(4))]);
    }
}

#[test]
fn clients_of_a_back_end_that_is_gone_are_left_to_our_kernel() {
    for (mut world, client, vip) in worlds() {
        let syn = Packet::new(client, vip, SYN).numbers(999, 0).frame();
        let ack = Packet::new(client, vip, ACK).numbers(1000, 5).frame();
        let choice = PreparedChoice { number: 1, backend: 0 };
        world.with_choice(choice, |world| world.backend(&syn));
        assert_eq!(world.backend(&ack), Some(0));
        let holder = ConnHolder { backend: 0, generation: 0 };
        world.switch.set_backend(holder, 1, None).unwrap();
        assert_eq!((world.backend(&ack), world.backend(&ack)), (None, None));
        // Another back-end gets the index: it has nothing to do with this connection.
        world.switch.set_backend(ConnHolder { generation: 1, ..holder }, 2, Some(&hop(0))).unwrap();
        assert_eq!(world.backend(&ack), None);
        assert_eq!(world.switch.known_backends().unwrap()[0], (ConnHolder { generation: 1, ..holder }, 2));
        let lost: Vec<_> = world.events().into_iter().filter(|e| e.change == ConnChange::Lost).collect();
        assert_eq!(lost.len(), 1);
        assert_eq!((lost[0].holder, lost[0].choice), (holder, Some(1)));
        assert_eq!(world.switch.backend_counters(0).unwrap().resets, 1);
        let choice = PreparedChoice { number: 2, backend: 2 };
        world.with_choice(choice, |world| assert_eq!(world.backend(&syn), Some(2), "a new connection"));
    }
}

#[test]
fn choices_are_taken_in_order_and_withdrawn_ones_passed_over() {
    for hook in HOOKS {
        let mut world = World::new(hook);
        let cpus = world.rings.cpus();
        for cpu in 0..cpus {
            for number in 1..=MOST_CHOICES as u64 {
                assert!(world.rings.put(cpu, PreparedChoice { number, backend: (number % 3) as u16 }));
            }
            assert!(!world.rings.put(cpu, PreparedChoice { number: 99, backend: 0 }), "it is full");
        }
        let mut withdrawn = 0;
        world.rings.withdraw(|choice| choice.backend == 1, |_| withdrawn += 1);
        assert_eq!(withdrawn, cpus * 22);
        let expected = (1..=MOST_CHOICES as u64).filter(|number| number % 3 != 1);
        // On one CPU, as the order is that of a CPU.
        let (_, vip) = pairs()[0];
        let taken = on_one_cpu(|| {
            let syn = |port| Packet::new(SocketAddr::new([10, 0, 0, 9].into(), port), vip, SYN).frame();
            let got: Vec<_> = (1000..1042).map(|port| world.backend(&syn(port)).unwrap()).collect();
            (got, world.events().iter().map(|event| event.choice.unwrap()).collect::<Vec<_>>())
        });
        assert_eq!(taken.1, expected.clone().collect::<Vec<_>>());
        assert_eq!(taken.0, expected.map(|number| (number % 3) as u16).collect::<Vec<_>>());
        assert_eq!((0..cpus).filter(|&cpu| world.rings.is_empty(cpu)).count(), 1);
        // What was withdrawn makes room.
        for cpu in (0..cpus).filter(|&cpu| !world.rings.is_empty(cpu)).collect::<Vec<_>>() {
            assert_eq!(world.rings.len(cpu), 42);
            let put =
                (0..100).filter(|_| world.rings.put(cpu, PreparedChoice { number: 1, backend: 0 })).count();
            assert_eq!((put, world.rings.len(cpu)), (22, MOST_CHOICES));
        }
        let mut cleared = 0;
        world.switch.choices().unwrap().clear(|_| cleared += 1);
        assert_eq!(cleared, (cpus - 1) * MOST_CHOICES);
    }
}

fn on_one_cpu<T>(work: impl FnOnce() -> T) -> T {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let before = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|&cpu| before.is_set(cpu)).unwrap());
    sched_setaffinity(None, &one).unwrap();
    let result = work();
    sched_setaffinity(None, &before).unwrap();
    result
}

#[test]
fn a_reset_must_be_near_what_the_client_has_sent() {
    for (world, client, vip) in worlds() {
        let ack = Packet::new(client, vip, ACK).numbers(5000, 5);
        let backend = world.backend(&ack.frame());
        for seq in [5000 + (1 << 20) + 1, 5000_u32.wrapping_sub((1 << 20) + 2), 1 << 31] {
            for flags in [RST, FIN | ACK] {
                let forged = Packet::new(client, vip, flags).numbers(seq, 5);
                assert_eq!(world.backend(&forged.frame()), backend);
                assert!(!world.switch.get(&tcp(client, vip)).unwrap().unwrap().1.is_over(), "{seq}");
            }
        }
        world.backend(&Packet::new(client, vip, RST).numbers(5000 + (1 << 20), 5).frame());
        assert!(world.switch.get(&tcp(client, vip)).unwrap().unwrap().1.rst);
    }
}

#[test]
fn forged_first_packets_push_out_nothing_that_is_established() {
    const FORGED: u32 = 50_000;
    for hook in HOOKS {
        let mut world = World::new(hook);
        let (_, vip) = pairs()[0];
        let client = |number: u32| {
            let [_, a, b, c] = number.to_be_bytes();
            SocketAddr::new([11, a, b, c].into(), 4711)
        };
        let kept: Vec<_> = (0..100).map(client).collect();
        for (&client, number) in kept.iter().zip(1..) {
            let choice = PreparedChoice { number, backend: 2 };
            let syn = Packet::new(client, vip, SYN).numbers(999, 0).frame();
            world.with_choice(choice, |world| world.backend(&syn));
            world.backend(&Packet::new(client, vip, ACK).numbers(1000, 5).frame());
        }
        for number in 0..FORGED {
            // With a choice for each of the first, so that the table of opening connections overflows.
            if number < 4000 && number.is_multiple_of(8) {
                let choice = PreparedChoice { number: number.into(), backend: 1 };
                (0..world.rings.cpus()).for_each(|cpu| (0..8).for_each(|_| _ = world.rings.put(cpu, choice)));
            }
            let syn = Packet::new(client(1000 + number), vip, SYN).frame();
            world.switch.try_frame(hook, &syn, 1).unwrap();
        }
        for &client in &kept {
            let ack = Packet::new(client, vip, ACK).numbers(1000, 5).frame();
            assert_eq!(world.backend(&ack), Some(2));
        }
        assert!(world.switch.counters().unwrap().chosen > 1100, "more than the table holds");
    }
}
