//! Ten thousand connections of all kinds, over a network that loses, repeats and reorders packets.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_agent::daemon::{CloneConfig, CloneNode, CloneStats};
use plimsoll_lab::{Conditions, Node};
use plimsoll_policy::PolicyChoice;
use plimsoll_policy::policies::random;
use plimsoll_testkit::PATIENCE;

use super::client::{Client, get, is_document};
use super::{NODES, World};

const CLIENTS: usize = 32;
/// Mostly small, with some that take several windows.
const SIZES: [u64; 12] = [0, 1, 37, 300, 1_448, 1_449, 2_000, 2_000, 5_000, 14_600, 20_000, 90_000];

/// SplitMix64: the same choices in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn path(&mut self) -> String {
        let size = SIZES[self.below(SIZES.len() as u64) as usize];
        format!("/size/{size}/c{}", self.below(60))
    }
}

/// Some requests in groups that are sent at once, and one of several ends. How many requests.
fn converse(world: &World, chance: &mut Chance) -> u64 {
    let mut client = world.connect();
    let count = 1 + chance.below(7);
    let closes = chance.below(3) == 0;
    let mut sent = 0;
    while sent < count {
        let group = if chance.below(2) == 0 { 1 } else { 1 + chance.below(count - sent) };
        let paths: Vec<_> = (0..group).map(|_| chance.path()).collect();
        let mut text: String = paths.iter().map(|path| get(path)).collect();
        sent += group;
        if closes && sent == count {
            text.truncate(text.len() - 2);
            text.push_str("Connection: close\r\n\r\n");
        }
        client.send(&text);
        for path in &paths {
            expect(&mut client, path);
        }
    }
    if closes {
        let (rest, end) = client.rest();
        assert!(rest.is_empty() && end.is_ok(), "{} bytes too many, {end:?}", rest.len());
    }
    count
}

fn expect(client: &mut Client, path: &str) {
    let answer = client.answer(false);
    assert_eq!(answer.status, 200, "{path}");
    assert!(is_document(path, &answer.body), "{path} by {}: {}", answer.backend, answer.body.len());
}

/// Leads connections to each node in turn. How many requests there were.
fn converse_often(world: &World, connections: usize) -> u64 {
    let mut requests = 0;
    for original in 0..NODES {
        world.lead_to(original);
        let next = AtomicUsize::new(original);
        let all = |_| {
            let mut requests = 0;
            loop {
                // Every third one is for this original.
                let number = next.fetch_add(NODES, Ordering::Relaxed);
                if number >= connections {
                    return requests;
                }
                requests += converse(world, &mut Chance(number as u64));
            }
        };
        requests += std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || all(client))).collect();
            let joined: Vec<_> = clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            let stats = || world.nodes.iter().flatten().map(CloneNode::stats).collect::<Vec<_>>();
            let count = |requests: std::thread::Result<u64>| {
                requests.unwrap_or_else(|_| panic!("a client fails: {:?}", stats()))
            };
            joined.into_iter().map(count).sum::<u64>()
        });
    }
    requests
}

fn every_byte_is_right(connections: usize, change: impl Fn(&mut CloneConfig)) -> Vec<CloneStats> {
    let mut world = World::with(|config| {
        // Nothing breaks here, however late a busy machine lets the emulated network pass something on.
        config.link_timeout = PATIENCE;
        change(config);
    });
    let bad = Conditions {
        loss: 0.005,
        duplicate: 0.01,
        late: 0.03,
        late_by: Duration::from_millis(3),
        ..Conditions::delayed(Duration::from_micros(300))
    };
    world.lab.link(Node::Client).unwrap().set(&bad).unwrap();
    // Between nodes as well: links, and what is led to clones.
    let between = Conditions { loss: 0.001, ..bad };
    world.lab.link(Node::Backend(1)).unwrap().set(&between).unwrap();
    let requests = converse_often(&world, connections);
    world.lab.link(Node::Client).unwrap().set(&Conditions::default()).unwrap();
    world.lab.link(Node::Backend(1)).unwrap().set(&Conditions::default()).unwrap();
    world.nothing_is_left();
    let stats: Vec<_> = (0..NODES).map(|number| world.node(number).stats()).collect();
    let sum = |of: fn(&CloneStats) -> u64| stats.iter().map(of).sum::<u64>();
    assert_eq!((sum(|stats| stats.lost), sum(|stats| stats.forged)), (0, 0), "{stats:?}");
    assert_eq!((sum(|stats| stats.connections), sum(|stats| stats.requests)), (connections as u64, requests));
    // Two of three requests belong to another node; small ones may be answered here all the same.
    assert!(sum(|stats| stats.clone_answers) > requests / 3, "{stats:?}");
    for (number, node) in world.nodes.iter_mut().enumerate() {
        let node = node.take().unwrap();
        world.lab.node(Node::Backend(number)).unwrap().run(|| node.stop()).unwrap().unwrap();
        let pins = Path::new("/sys/fs/bpf/plimsoll").join(&world.names[number]);
        assert!(!pins.exists(), "{} stays", pins.display());
    }
    stats
}

#[test]
fn five_thousand_connections_whose_documents_have_a_node() {
    for stats in every_byte_is_right(5_000, |_| {}) {
        assert_eq!(stats.clone_answers, stats.fast_forwarded);
        assert_eq!((stats.ahead, stats.kept, stats.rests), (0, 0, 0));
    }
}

#[test]
fn five_thousand_connections_answered_anywhere() {
    every_byte_is_right(5_000, |config| config.policy = PolicyChoice::new(&random::SPEC));
}

#[test]
fn connections_that_clones_keep() {
    let stats = every_byte_is_right(2_000, |config| config.keeps = true);
    let sum = |of: fn(&CloneStats) -> u64| stats.iter().map(of).sum::<u64>();
    assert!(sum(|stats| stats.kept) > 300 && sum(|stats| stats.given_back) > 300, "{stats:?}");
    // The last of a connection may have been answered for a client that is gone.
    assert!(sum(|stats| stats.answered_as_kept) >= sum(|stats| stats.kept), "{stats:?}");
}

#[test]
fn connections_that_clones_keep_wherever_they_are() {
    let random = PolicyChoice::new(&random::SPEC);
    let stats = every_byte_is_right(2_000, |config| {
        config.policy = random.clone();
        config.keeps = true;
    });
    assert!(stats.iter().all(|stats| stats.kept > 100), "{stats:?}");
}

#[test]
fn connections_whose_clones_are_made_ahead() {
    let stats = every_byte_is_right(2_000, |config| config.ahead = 4);
    assert!(stats.iter().all(|stats| stats.ahead > 50), "{stats:?}");
}

#[test]
fn connections_whose_answers_begin_at_the_original() {
    let stats = every_byte_is_right(2_000, |config| config.first_bytes = 1_000);
    assert!(stats.iter().all(|stats| stats.rests > 100), "{stats:?}");
}
