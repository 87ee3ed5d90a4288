use proptest::prelude::*;

use super::*;
use crate::offer::ServiceOffer;

const TTL: Duration = Duration::from_secs(4);
const BEGAN_MS: u64 = 1_700_000_000_000;

/// A map, and a time that goes on.
struct World {
    map: ServiceMap,
    began: Instant,
    passed: Duration,
}

impl World {
    fn new(bounds: MapBounds) -> Self {
        let map = ServiceMap::new(bounds, Some("own".to_owned()), None);
        Self { map, began: Instant::now(), passed: Duration::ZERO }
    }

    fn now(&self) -> DirectoryTime {
        let passed_ms = u64::try_from(self.passed.as_millis()).unwrap();
        DirectoryTime { at: self.began + self.passed, unix_ms: BEGAN_MS + passed_ms }
    }

    /// An announcement that is made now.
    fn says(&self, node: &str, sequence: u64, services: &[&str]) -> Announcement {
        let offer = |name: &&str| ServiceOffer::new(name.parse().unwrap(), ([10, 0, 0, 1], 80).into());
        let said = Said::Offers(services.iter().map(offer).collect());
        let (node, sent_ms) = (node.to_owned(), self.now().unix_ms);
        Announcement { node, boot: 1, sequence, sent_ms, ttl_ms: 4000, said }
    }

    fn hears(&mut self, announcement: Announcement) -> (Result<(), DropReason>, Vec<MapChange>) {
        let now = self.now();
        self.map.hear(announcement, Liveness::Repeated, now)
    }

    fn hears_of(&mut self, node: &str, sequence: u64, services: &[&str]) -> Vec<MapChange> {
        let (outcome, changes) = self.hears(self.says(node, sequence, services));
        assert_eq!(outcome, Ok(()));
        changes
    }

    fn hears_here(&mut self, node: &str, sequence: u64, services: &[&str]) {
        let (said, now) = (self.says(node, sequence, services), self.now());
        assert_eq!(self.map.hear(said, Liveness::RepeatedHere, now).0, Ok(()));
    }

    fn later(&mut self, time: Duration) -> Vec<MapChange> {
        self.passed += time;
        self.map.expire(self.now().at)
    }

    fn names(&self) -> Vec<String> {
        self.map.replicas().map(|r| format!("{} {}", r.offer.key, r.node)).collect()
    }
}

fn left(changes: &[MapChange]) -> Vec<(String, LeaveReason)> {
    let left = changes.iter().filter_map(|change| match change {
        MapChange::Left(replica, reason) => Some((replica.node.clone(), *reason)),
        _ => None,
    });
    left.collect()
}

#[test]
fn what_is_not_repeated_expires_and_comes_back() {
    let mut world = World::new(MapBounds::default());
    assert_eq!(world.hears_of("a", 1, &["s/0", "s/1"]).len(), 2);
    world.hears_of("b", 1, &["s/0"]);
    assert_eq!(world.names(), ["s/0 a", "s/0 b", "s/1 a"]);
    for sequence in 2..5 {
        assert_eq!(world.later(TTL / 4), []);
        assert_eq!(world.hears_of("b", sequence, &["s/0"]), [], "nothing new");
    }
    let gone = world.later(TTL / 4);
    let expired = ("a".to_owned(), LeaveReason::Expired);
    assert_eq!(left(&gone), [expired.clone(), expired], "after exactly the time to live");
    assert!(matches!(&world.hears_of("a", 2, &["s/1"])[..], [MapChange::Joined(_)]));
}

#[test]
fn a_goodbye_takes_effect_at_once_and_is_not_undone_by_what_was_said_before() {
    let mut world = World::new(MapBounds::default());
    world.hears_of("a", 1, &["s/0", "t/0"]);
    let earlier = world.says("a", 2, &["s/0"]);
    let goodbye = Announcement { said: Said::Goodbye, ..world.says("a", 3, &[]) };
    let (outcome, changes) = world.hears(goodbye);
    assert_eq!((outcome, changes.len(), world.names().len()), (Ok(()), 2, 0));
    assert_eq!(world.hears(earlier), (Err(DropReason::Replayed), vec![]));
}

#[test]
fn replays_and_earlier_processes_are_dropped() {
    let mut world = World::new(MapBounds::default());
    let first = world.says("a", 1, &["s/0"]);
    world.hears_of("a", 2, &["s/0"]);
    assert_eq!(world.hears(first.clone()).0, Err(DropReason::Replayed));
    let restarted = Announcement { boot: 2, ..world.says("a", 1, &["s/0"]) };
    assert_eq!(world.hears(restarted).0, Ok(()));
    assert_eq!(world.hears(world.says("a", 99, &["s/0"])).0, Err(DropReason::Stale), "the earlier process");
    assert!(world.map.take_doubled().is_empty(), "it may have ended");
    for sequence in 100..110 {
        assert_eq!(world.hears(world.says("a", sequence, &["s/0"])).0, Err(DropReason::Stale));
        let later = Announcement { boot: 2, ..world.says("a", sequence, &["s/0"]) };
        assert_eq!(world.hears(later).0, Ok(()));
    }
    assert_eq!(world.map.take_doubled(), ["a"], "told once");
    // Long after, nothing is known of the node, but the time in the announcement tells.
    world.later(Duration::from_secs(120));
    let mut fresh = World { map: World::new(MapBounds::default()).map, ..world };
    assert_eq!(fresh.hears(first).0, Err(DropReason::Stale));
    let ahead = Announcement { sent_ms: fresh.now().unix_ms + 31_000, ..fresh.says("b", 1, &["s/0"]) };
    assert_eq!(fresh.hears(ahead).0, Err(DropReason::Stale), "of a clock that is ahead");
}

#[test]
fn a_node_is_remembered_until_its_announcements_are_too_old_anyway() {
    let mut world = World::new(MapBounds { nodes: 1, ..MapBounds::default() });
    let ahead = Announcement { sent_ms: world.now().unix_ms + 29_000, ..world.says("a", 1, &["s/0"]) };
    assert_eq!(world.hears(ahead.clone()).0, Ok(()));
    let goodbye = Announcement { said: Said::Goodbye, ..world.says("a", 2, &[]) };
    assert_eq!(world.hears(goodbye).0, Ok(()));
    world.later(Duration::from_secs(58));
    assert_eq!(world.hears(world.says("b", 1, &["s/0"])).0, Err(DropReason::Full));
    assert_eq!(world.hears(ahead.clone()).0, Err(DropReason::Replayed));
    world.later(Duration::from_secs(3));
    assert_eq!(world.hears(world.says("b", 1, &["s/0"])).0, Ok(()));
    assert_eq!(world.hears(ahead).0, Err(DropReason::Stale));
}

#[test]
fn a_node_whose_clock_was_set_back_is_heard_after_a_minute() {
    let mut world = World::new(MapBounds::default());
    let of_process =
        |world: &World, boot, sequence| Announcement { boot, ..world.says("a", sequence, &["s/0"]) };
    assert_eq!(world.hears(of_process(&world, 10, 7)).0, Ok(()));
    for sequence in 1..60 {
        world.later(Duration::from_secs(1));
        let earlier = of_process(&world, 5, sequence);
        assert_eq!(world.hears(earlier).0, Err(DropReason::Stale), "{sequence} s later");
    }
    world.later(Duration::from_secs(1));
    assert_eq!(world.hears(of_process(&world, 5, 60)).0, Ok(()));
    assert_eq!(world.names(), ["s/0 a"]);
    // From then on it is the one that counts.
    assert_eq!(world.hears(of_process(&world, 5, 60)).0, Err(DropReason::Replayed));
    assert_eq!(world.hears(of_process(&world, 5, 61)).0, Ok(()));
}

#[test]
fn in_etcd_too_a_node_whose_clock_was_set_back_is_heard() {
    let mut world = World::new(MapBounds::default());
    let puts = |world: &mut World, boot, port| {
        let mut said = Announcement { boot, ..world.says("a", 1, &["s/0"]) };
        if let Said::Offers(offers) = &mut said.said {
            offers[0].address.set_port(port);
        }
        let now = world.now();
        world.map.hear(said, Liveness::Leased, now).0
    };
    assert_eq!(puts(&mut world, 10, 80), Ok(()));
    world.later(Duration::from_secs(30));
    assert_eq!(puts(&mut world, 5, 81), Err(DropReason::Replayed));
    world.later(Duration::from_secs(30));
    assert_eq!(puts(&mut world, 5, 81), Ok(()));
    let ports: Vec<u16> = world.map.replicas().map(|replica| replica.offer.address.port()).collect();
    assert_eq!(ports, [81]);
}

/// What a node repeats at the pace of multicast, and a listener keeps, whatever times to live they have.
#[test]
fn no_two_times_to_live_make_a_node_come_and_go() {
    let all_s = [0.4, 1.0, 3.0, 10.0, 3600.0];
    for (node_s, listener_s) in all_s.into_iter().flat_map(|node| all_s.map(|listener| (node, listener))) {
        let [node, listener] = [node_s, listener_s].map(Duration::from_secs_f64);
        let mut world = World::new(MapBounds::of_listener(listener));
        let ttl_ms = u32::try_from(node.as_millis()).unwrap();
        // At the longest pause, and every other one is lost.
        let pause = crate::multicast::repeat_interval(node).mul_f64(1.25);
        for sequence in 0..40 {
            let said = Announcement { ttl_ms, ..world.says("a", sequence, &["s/0"]) };
            if sequence % 2 == 0 {
                assert_eq!(world.hears(said).0, Ok(()));
            }
            for part in 0..10 {
                world.hears_of("b", 10 * sequence + part, &[]);
                assert_eq!(world.later(pause / 10), [], "{node_s} s at a listener of {listener_s} s");
            }
        }
        // Once it is dead, it goes, within the shorter of the times to live, or 3 s.
        let wait = node.min(listener.max(Duration::from_secs(3)));
        for part in 0..100 {
            world.hears_of("b", 1000 + part, &[]);
            world.later(wait / 100);
        }
        assert_eq!(world.names(), Vec::<String>::new(), "{node_s} s at a listener of {listener_s} s");
    }
}

#[test]
fn silence_of_everybody_leaves_the_last_map_in_use() {
    let mut world = World::new(MapBounds::default());
    for round in 1..4 {
        world.hears_of("a", round, &["s/0"]);
        world.later(TTL / 100);
        world.hears_of("b", round, &["s/0"]);
        world.later(TTL / 4);
    }
    // What is said on this machine comes back whatever the network does.
    for round in 1..100 {
        assert_eq!(world.later(TTL / 4), []);
        world.hears_of("own", round, &["gateway/0"]);
        world.hears_here("beside", round, &[]);
    }
    assert!(world.map.is_silent());
    assert_eq!(world.names(), ["gateway/0 own", "s/0 a", "s/0 b"]);
    world.hears_of("b", 9, &["s/0"]);
    assert!(!world.map.is_silent());
    assert_eq!(world.later(TTL / 2), [], "the others have their time to come back");
    world.hears_of("b", 10, &["s/0"]);
    assert_eq!(world.later(TTL / 4), []);
    world.hears_of("b", 11, &["s/0"]);
    let expired = ["own", "a"].map(|node| (node.to_owned(), LeaveReason::Expired));
    assert_eq!(left(&world.later(TTL / 4)), expired);
}

#[test]
fn on_one_machine_alone_those_that_die_expire() {
    let mut world = World::new(MapBounds::default());
    world.hears_here("dies", 1, &["s/0"]);
    for round in 1..5 {
        world.hears_here("stays", round, &["s/0"]);
        assert_eq!(left(&world.later(TTL / 4)).len(), usize::from(round == 4));
    }
    assert_eq!(world.names(), ["s/0 stays"]);
    // And when nothing at all is heard, what was last known stays.
    assert_eq!(world.later(TTL), []);
    assert!(world.map.is_silent());
    world.hears_here("other", 1, &[]);
    assert!(!world.map.is_silent());
}

#[test]
fn bounds_hold_and_what_fits_is_taken() {
    let bounds = MapBounds { nodes: 3, services: 2, replicas: 4, ..MapBounds::default() };
    let mut world = World::new(bounds);
    let (outcome, changes) = world.hears(world.says("a", 1, &["s/0", "s/1", "s/2"]));
    assert_eq!((outcome, changes.len()), (Err(DropReason::Full), 2), "a third partition");
    let (outcome, changes) = world.hears(world.says("b", 1, &["s/1", "s/0"]));
    assert_eq!((outcome, changes.len()), (Ok(()), 2));
    assert_eq!(world.hears(world.says("c", 1, &["s/0"])).0, Err(DropReason::Full), "a fifth replica");
    assert_eq!(world.hears(world.says("d", 1, &["s/0"])).0, Err(DropReason::Full), "a fourth node");
    assert_eq!(
        world.hears(world.says("a", 2, &["s/0", "s/1"])),
        (Ok(()), vec![]),
        "those that are there stay"
    );
}

#[test]
fn only_what_is_of_interest_is_kept_but_all_tells_that_the_network_works() {
    let mut world = World::new(MapBounds::default());
    world.map.only = Some("s/1".parse::<ServiceKey>().unwrap().into());
    world.hears_of("a", 1, &["s/0", "s/1"]);
    assert_eq!(world.names(), ["s/1 a"]);
    for sequence in 1..5 {
        world.later(TTL / 4 - Duration::from_millis(1));
        world.hears_of("b", sequence, &["t/0"]);
    }
    assert_eq!(left(&world.later(TTL / 4)).len(), 1);
}

#[test]
fn a_change_is_told_and_a_longer_time_to_live_is_cut() {
    let mut world = World::new(MapBounds { most_ttl: TTL, ..MapBounds::default() });
    world.hears_of("a", 1, &["s/0"]);
    let mut other = Announcement { ttl_ms: 3_600_000, ..world.says("a", 2, &["s/0"]) };
    if let Said::Offers(offers) = &mut other.said {
        offers[0].weight_steps = 512;
    }
    let (_, changes) = world.hears(other);
    assert!(matches!(&changes[..], [MapChange::Changed(r)] if r.offer.weight_steps == 512), "{changes:?}");
    assert_eq!(world.map.next_expiry(), Some(world.now().at + TTL));
    // Hearing it again does not look through all; the next look does.
    world.later(TTL / 2);
    world.hears_of("a", 3, &["s/0"]);
    assert_eq!(left(&world.later(TTL / 2)), []);
    assert_eq!(world.map.next_expiry(), Some(world.now().at + TTL / 2));
}

/// What the directory has of a node.
fn leased(world: &World, node: &str, sequence: u64) -> Announcement {
    world.says(node, sequence, &["s/0"])
}

fn id(node: &str) -> ReplicaId {
    ("s/0".parse().unwrap(), node.to_owned())
}

#[test]
fn a_lease_ends_when_the_directory_says_so_and_not_by_time() {
    let mut world = World::new(MapBounds::default());
    let now = world.now();
    for node in ["a", "b"] {
        assert_eq!(world.map.hear(leased(&world, node, 1), Liveness::Leased, now).0, Ok(()));
    }
    assert_eq!(world.later(TTL * 1000), []);
    let gone = world.map.withdrawn(&id("a"), world.now().at);
    assert!(matches!(gone, Some(MapChange::Left(_, LeaveReason::Goodbye))));
    assert_eq!(world.names(), ["s/0 b"]);
}

#[test]
fn a_directory_that_returns_with_less_loses_no_replica_that_is_published_again() {
    let mut world = World::new(MapBounds::default());
    let (now, old) = (world.now(), leased(&world, "a", 1));
    for node in ["a", "b", "c"] {
        assert_eq!(world.map.hear(leased(&world, node, 1), Liveness::Leased, now).0, Ok(()));
    }
    world.later(Duration::from_secs(3600));
    let now = world.now();
    assert_eq!(world.map.hear(old, Liveness::Leased, now), (Ok(()), vec![]), "what is in use may be old");
    world.map.listed(&[id("a")].into(), now.at);
    assert_eq!(world.map.withdrawn(&id("a"), now.at), None, "its lease ran out while nobody could extend it");
    assert_eq!(world.later(TTL / 2), []);
    let now = world.now();
    for node in ["a", "b"] {
        let again = Announcement { sequence: 2, ..leased(&world, node, 2) };
        assert_eq!(world.map.hear(again, Liveness::Leased, now), (Ok(()), vec![]));
    }
    assert_eq!(left(&world.later(TTL)), [("c".to_owned(), LeaveReason::Expired)]);
    assert_eq!(world.names(), ["s/0 a", "s/0 b"]);
    assert!(world.map.withdrawn(&id("b"), world.now().at).is_some());
}

#[test]
fn a_directory_that_lost_all_leaves_nodes_the_time_of_an_attempt_to_publish_again() {
    let least_settling = TTL * 2;
    let mut world = World::new(MapBounds { least_settling, ..MapBounds::default() });
    let now = world.now();
    for node in ["a", "b"] {
        assert_eq!(world.map.hear(leased(&world, node, 1), Liveness::Leased, now).0, Ok(()));
    }
    world.map.listed(&BTreeSet::new(), now.at);
    assert_eq!(world.later(TTL + TTL / 2), []);
    let again = Announcement { sequence: 2, ..leased(&world, "a", 2) };
    let now = world.now();
    assert_eq!(world.map.hear(again, Liveness::Leased, now), (Ok(()), vec![]));
    assert_eq!(left(&world.later(TTL)), [("b".to_owned(), LeaveReason::Expired)]);
    assert_eq!(world.names(), ["s/0 a"]);
}

#[test]
fn an_older_value_that_is_put_back_is_dropped() {
    let mut world = World::new(MapBounds::default());
    let now = world.now();
    let old = leased(&world, "a", 1);
    for sequence in [1, 2] {
        assert_eq!(world.map.hear(leased(&world, "a", sequence), Liveness::Leased, now).0, Ok(()));
    }
    assert_eq!(world.map.hear(old.clone(), Liveness::Leased, now).0, Err(DropReason::Replayed));
    world.later(Duration::from_secs(31));
    world.map.withdrawn(&id("a"), world.now().at);
    let now = world.now();
    assert_eq!(world.map.hear(old, Liveness::Leased, now).0, Err(DropReason::Stale));
}

proptest! {
    #[test]
    fn no_sequence_of_announcements_breaks_the_bounds(
        said in prop::collection::vec((0..8u8, 0..4u64, 0..64u64, 0..12u8, 0..3000u64, any::<bool>()), 0..200)
    ) {
        let bounds = MapBounds { nodes: 5, services: 4, replicas: 9, ..MapBounds::default() };
        let mut world = World::new(bounds);
        for (node, boot, sequence, service, wait_ms, says_goodbye) in said {
            world.later(Duration::from_millis(wait_ms));
            let services = [format!("s/{service}")];
            let services: Vec<&str> = services.iter().map(|s| &**s).collect();
            let mut announcement = world.says(&format!("n{node}"), sequence, &services);
            announcement.boot = boot;
            if says_goodbye {
                announcement.said = Said::Goodbye;
            }
            let before = world.names();
            let (outcome, changes) = world.hears(announcement.clone());
            if outcome.is_err() {
                prop_assert!(changes.is_empty() && world.names() == before);
            }
            prop_assert_ne!(world.hears(announcement).0, Ok(()), "the same twice");
            prop_assert!(world.map.nodes.len() <= 5 && world.map.entries.len() <= 9);
            let keys: BTreeSet<_> = world.map.entries.keys().map(|(key, _)| key).collect();
            prop_assert!(keys.len() <= 4);
        }
    }
}
