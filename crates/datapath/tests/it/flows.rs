//! The forwarder's maps: flows that come, change hands and go, and what outlives a process.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use plimsoll_datapath::{DatapathError, Flow, FlowEntry, Forwarder, ForwarderConfig, NextHop, PacketVerdict};
use plimsoll_testkit::cpu_time_of;

use crate::forwarder::{NEXT_HOP, config, entry, forwarder, v4, verdict};
use crate::network::{Instance, Segment, opened};
use crate::packet::{ACK, Packet};

#[test]
fn another_agent_gets_the_flow_with_what_is_known() {
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    let other = NextHop { mac: [2, 0, 0, 0, 0, 0xd], ..NEXT_HOP };
    assert!(!forwarder.redirect(&flow, &other, 2).unwrap(), "there is none yet");
    forwarder.insert(&flow, &NEXT_HOP, 1).unwrap();
    verdict(&forwarder, &Packet::new(client, vip, ACK).numbers(10, 20).frame());
    let before = entry(&forwarder, &flow);
    assert!(forwarder.redirect(&flow, &other, 2).unwrap());
    assert_eq!(entry(&forwarder, &flow), FlowEntry { next_hop: other, agent: 2, ..before });
    let trial = forwarder.try_frame(&Packet::new(client, vip, ACK).frame(), 1).unwrap();
    assert_eq!(trial.frame[..6], other.mac);
    forwarder.insert(&flow, &NEXT_HOP, 3).unwrap();
    assert_eq!((entry(&forwarder, &flow).last_ack, entry(&forwarder, &flow).packets), (None, 0));
    assert!(forwarder.remove(&flow).unwrap());
    assert!(!forwarder.remove(&flow).unwrap());
    assert_eq!(verdict(&forwarder, &Packet::new(client, vip, ACK).frame()), PacketVerdict::Pass);
}

#[test]
fn a_flow_that_leads_here_stays_known() {
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    assert!(!forwarder.lead_here(&flow).unwrap(), "there is none yet");
    forwarder.insert(&flow, &NEXT_HOP, 1).unwrap();
    assert!(forwarder.lead_here(&flow).unwrap());
    let frame = Packet::new(client, vip, ACK).numbers(10, 20).frame();
    assert_eq!(verdict(&forwarder, &frame), PacketVerdict::Pass);
    let here = entry(&forwarder, &flow);
    assert_eq!((here.next_hop.ifindex, here.agent, here.over), (0, 1, false));
    assert_eq!((here.last_seq_end, here.last_ack), (Some(10), Some(20)), "its client is still followed");
    assert!(forwarder.end(&flow).unwrap() && entry(&forwarder, &flow).over);
    assert!(forwarder.redirect(&flow, &NEXT_HOP, 2).unwrap());
    assert_eq!(verdict(&forwarder, &frame), PacketVerdict::Redirect);
}

#[test]
fn impossible_next_hops_are_refused() {
    let (forwarder, _instance) = forwarder();
    let (.., flow) = v4();
    for bad in [
        NextHop { ifindex: 0, ..NEXT_HOP },
        NextHop { mac: [0; 6], ..NEXT_HOP },
        NextHop { mac: [0xff; 6], ..NEXT_HOP },
        NextHop { mac: NEXT_HOP.own_mac, ..NEXT_HOP },
    ] {
        assert!(matches!(forwarder.insert(&flow, &bad, 0), Err(DatapathError::Invalid(_))), "{bad:?}");
    }
}

#[test]
fn watched_ports_change() {
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
    let frame = Packet::new(client, vip, ACK).frame();
    forwarder.watch(&["0.0.0.0:8080".parse().unwrap()]).unwrap();
    assert_eq!(verdict(&forwarder, &frame), PacketVerdict::Pass);
    forwarder.watch(&["0.0.0.0:8080".parse().unwrap(), vip]).unwrap();
    assert_eq!(verdict(&forwarder, &frame), PacketVerdict::Redirect);
}

#[test]
fn one_living_instance_takes_over_from_a_dead_one() {
    let instance = Instance::new();
    let config = config(&instance, 1000);
    let (client, vip, flow) = v4();
    let first = Forwarder::open(&config).unwrap();
    first.insert(&flow, &NEXT_HOP, 5).unwrap();
    first.try_frame(&Packet::new(client, vip, ACK).numbers(1, 2).frame(), 1).unwrap();
    let refused = Forwarder::open(&config).unwrap_err();
    assert!(matches!(refused, DatapathError::Busy { .. }), "{refused}");
    assert!(refused.to_string().contains(&instance.pins()), "{refused}");

    let before = entry(&first, &flow);
    drop(first);
    fs::create_dir_all(format!("{}/v0", instance.pins())).unwrap();
    let second = opened(|| Forwarder::open(&config)).unwrap();
    assert_eq!(entry(&second, &flow), before);
    assert_eq!(second.counters().unwrap().forwarded_packets, 1);
    assert!(!fs::exists(format!("{}/v0", instance.pins())).unwrap(), "other layouts are removed");

    drop(second);
    let larger = opened(|| Forwarder::open(&ForwarderConfig { flows: 2000, ..config.clone() })).unwrap();
    assert_eq!((larger.capacity(), larger.get(&flow).unwrap()), (2000, Some(before)));

    larger.insert(&Flow::new("10.0.0.8:1".parse().unwrap(), vip), &NEXT_HOP, 0).unwrap();
    drop(larger);
    let too_small = opened(|| Forwarder::open(&ForwarderConfig { flows: 1, ..config.clone() })).unwrap();
    assert_eq!((too_small.capacity(), too_small.get(&flow).unwrap()), (2000, Some(before)));

    too_small.clear_and_detach().unwrap();
    assert!(!fs::exists(instance.pins()).unwrap());
    assert_eq!(opened(|| Forwarder::open(&config)).unwrap().get(&flow).unwrap(), None);
}

#[test]
fn bad_configurations_are_refused() {
    let instance = Instance::new();
    let good = config(&instance, 1);
    let no_interface = ForwarderConfig { interfaces: vec!["nosuch0".to_owned()], ..good.clone() };
    let error = Forwarder::open(&no_interface).unwrap_err();
    assert!(matches!(&error, DatapathError::NoInterface { name } if name == "nosuch0"), "{error}");
    let loopback = ForwarderConfig { interfaces: vec!["lo".to_owned()], ..good.clone() };
    assert!(matches!(Forwarder::open(&loopback), Err(DatapathError::Invalid(_))));
    let nothing = ForwarderConfig { flows: 0, ..good.clone() };
    assert!(matches!(Forwarder::open(&nothing), Err(DatapathError::Invalid(_))));
    let dots = ForwarderConfig { instance: "../x".to_owned(), ..good };
    assert!(matches!(Forwarder::open(&dots), Err(DatapathError::Invalid(_))));
}

#[test]
fn no_update_is_lost_between_cpus() {
    let (forwarder, _instance) = forwarder();
    let (client, vip, flow) = v4();
    forwarder.insert(&flow, &NEXT_HOP, 0).unwrap();
    const EACH: u32 = 2000;
    thread::scope(|scope| {
        for parity in 0..2 {
            let forwarder = &forwarder;
            scope.spawn(move || {
                for step in 0..EACH {
                    let ack = 10 + 2 * step + parity;
                    let frame = Packet::new(client, vip, ACK).numbers(ack, ack).frame();
                    forwarder.try_frame(&frame, 1).unwrap();
                }
            });
        }
    });
    let seen = entry(&forwarder, &flow);
    let last = 10 + 2 * (EACH - 1) + 1;
    assert_eq!((seen.last_ack, seen.last_seq_end), (Some(last), Some(last)));
    assert_eq!(seen.packets, u64::from(2 * EACH));
}

fn numbered(number: u32) -> Flow {
    let [high, low] = [(number >> 16) as u8, (number >> 8) as u8];
    Flow::new(([10, 1, high, low], 1000 + (number & 0xff) as u16).into(), "10.0.0.1:80".parse().unwrap())
}

#[test]
fn all_flows_are_listed_once_and_a_full_table_says_so() {
    const COUNT: u32 = 20_000;
    let instance = Instance::new();
    let forwarder = Forwarder::open(&config(&instance, COUNT)).unwrap();
    for number in 0..COUNT {
        forwarder.insert(&numbered(number), &NEXT_HOP, number).unwrap();
    }
    assert!(matches!(
        forwarder.insert(&numbered(COUNT), &NEXT_HOP, 0),
        Err(DatapathError::Full { capacity: COUNT, .. })
    ));
    let mut found = vec![0; COUNT as usize];
    forwarder
        .for_each(|flow, entry| {
            assert_eq!(flow, numbered(entry.agent));
            found[entry.agent as usize] += 1;
        })
        .unwrap();
    assert!(found.iter().all(|times| *times == 1));
    forwarder.remove(&numbered(5)).unwrap();
    forwarder.insert(&numbered(COUNT), &NEXT_HOP, 0).unwrap();
}

/// In CPU time, as a machine may do other things. The kernel adds what it takes to look at a packet at all.
#[test]
fn neither_packets_nor_lists_cost_much() {
    let instance = Instance::new();
    let forwarder = Forwarder::open(&config(&instance, 100_000)).unwrap();
    (0..100_000).for_each(|number| forwarder.insert(&numbered(number), &NEXT_HOP, number).unwrap());
    let mut count = 0;
    let (listed, listing) = cpu_time_of(|| forwarder.for_each(|_, _| count += 1));
    listed.unwrap();
    println!("listing {count} flows: {listing:?}");
    assert!(count == 100_000 && listing < Duration::from_secs(1), "27 ms when alone");
    let flow = numbered(7);
    let hit = Packet::new(flow.client, flow.vip, ACK).payload(100).frame();
    let cost = |frame: &[u8]| cpu_time_of(|| forwarder.try_frame(frame, 100_000).unwrap()).1 / 100_000;
    let hit = cost(&hit);
    let miss = Packet::new("10.0.0.7:1".parse().unwrap(), flow.vip, ACK).frame();
    let miss = cost(&miss);
    println!("a packet that is sent on: {hit:?}, one that is not: {miss:?}");
    assert!(hit < Duration::from_micros(10) && miss < Duration::from_micros(10), "110 and 60 ns when alone");
}

/// The qdisc goes with the last filter, after a crash too; unless it was there before.
#[test]
fn the_qdisc_goes_with_the_last_filter() {
    let segment = Segment::new(1);
    let machine = &segment.machines[0];
    let instances = [Instance::new(), Instance::new()];
    let open = |number: usize| {
        let config =
            ForwarderConfig { interfaces: vec!["eth0".to_owned()], ..config(&instances[number], 10) };
        machine.run(|| opened(|| Forwarder::open(&config))).unwrap()
    };
    let clear = |forwarder: Forwarder| machine.run(|| forwarder.clear_and_detach()).unwrap();
    for was_there in [false, true] {
        if was_there {
            let added = Command::new("tc")
                .args(["-n", &machine.name, "qdisc", "add", "dev", "eth0", "clsact"])
                .status();
            assert!(added.unwrap().success());
        }
        // It crashes.
        drop(open(0));
        let first = open(0);
        let second = open(1);
        clear(first);
        assert!(machine.has_qdisc("eth0") && machine.filters("eth0", "ingress").contains("plimsoll_fwd"));
        clear(second);
        assert_eq!(machine.has_qdisc("eth0"), was_there);
    }
}
