//! The load of a back-end, asked for and announced over real sockets.

mod announced;
mod asker;
mod index;
mod told;

use std::net::SocketAddr;

use plimsoll_agent::load::{LoadConfig, LoadRole, LoadService, PreparedLoad};
use plimsoll_testkit::{eventually, wait_for};
use plimsoll_wire::Key;
use plimsoll_wire::load::{Inquiry, LoadGauge, LoadKeys, LoadRefusal};

use asker::{Asker, asking};

fn key() -> Key {
    Key::new([7; 32])
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn service(gauge: &LoadGauge) -> LoadService {
    let config = LoadConfig::new(loopback(), key(), LoadRole::Answer(gauge.clone()));
    PreparedLoad::new(config).unwrap().start().unwrap()
}

#[test]
fn the_load_is_told_as_it_is() {
    let gauge = LoadGauge::new();
    let service = service(&gauge);
    let mut asker = Asker::of(service.address());
    assert_eq!(asker.load(), (0, 0));
    let accesses: Vec<_> = (0..5).map(|_| gauge.begin()).collect();
    assert_eq!(asker.load(), (5, 0));
    accesses.into_iter().for_each(|access| access.answered(800));
    assert_eq!(asker.load(), (0, 800));
    let status = service.status();
    assert_eq!((status.counts.taken, status.counts.renewed, status.counts.refused_total()), (3, 1, 0));
    service.stop();
}

#[test]
fn a_hundred_thousand_datagrams_of_others_get_no_answer() {
    const MANY: u64 = 100_000;
    /// Fewer than the system keeps for the agent.
    const AT_ONCE: u64 = 64;
    let gauge = LoadGauge::new();
    let service = service(&gauge);
    let mut asker = Asker::of(service.address());
    asker.load();
    let recorded = asker.recorded;
    let socket = asking(service.address());
    let other = LoadKeys::new(&Key::new([8; 32]));
    let noise = |number: u64| match number % 5 {
        0 => number.to_le_bytes().repeat(usize::try_from(number % 20).unwrap()),
        1 => recorded[..usize::try_from(number % 60).unwrap()].to_vec(),
        2 => {
            let mut changed = recorded;
            changed[usize::try_from(number / 5 % 60).unwrap()] ^= 1 << (number % 8);
            changed.to_vec()
        }
        3 => Inquiry { boot: number, client: number, sequence: number, clock_ns: 0 }.seal(&other).to_vec(),
        _ => recorded.to_vec(),
    };
    for number in 0..MANY {
        socket.send(&noise(number)).unwrap();
        if number % AT_ONCE == AT_ONCE - 1 || number == MANY - 1 {
            let counted = || service.status().counts.refused_total() == number + 1;
            eventually("all are counted", counted);
        }
    }
    let counts = service.status().counts;
    assert_eq!((counts.taken, counts.renewed), (1, 1));
    for why in [LoadRefusal::Length, LoadRefusal::Forged, LoadRefusal::Replayed] {
        assert!(counts.refused_for(why) > 10_000, "{counts:?}");
    }
    socket.set_nonblocking(true).unwrap();
    assert!(socket.recv(&mut [0; 100]).is_err(), "nothing was answered");
    assert_eq!(asker.load(), (0, 0), "it goes on");
    service.stop();
}

#[test]
fn an_agent_that_is_gone_is_asked_again_when_it_is_back() {
    let gauge = LoadGauge::new();
    let first = service(&gauge);
    let address = first.address();
    let mut asker = Asker::of(address);
    asker.load();
    first.stop();
    asker.in_vain();
    let config = LoadConfig::new(address, key(), LoadRole::Answer(gauge));
    let second = wait_for("the port", || PreparedLoad::new(config.clone()).ok()).start().unwrap();
    assert_eq!(asker.load(), (0, 0));
    assert_eq!(second.status().counts.renewed, 1, "it is another run");
    second.stop();
}
