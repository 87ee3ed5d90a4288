use super::super::config::{ClonePeer, NodeLoads};
use super::*;
use crate::daemon::ServeConfig;
use plimsoll_wire::Key;

fn mapping(own: &str) -> Mapping {
    with_least(own, 0)
}

fn with_least(own: &str, min_bytes: u64) -> Mapping {
    let listen = "10.0.0.1:7400".parse().unwrap();
    let serve = ServeConfig::Copy("127.0.0.1:80".parse().unwrap());
    let mut config = CloneConfig::new(own, listen, Key::new([1; 32]), serve);
    config.min_bytes = min_bytes;
    config.peers = ["c", "a", "b"]
        .into_iter()
        .filter(|name| *name != own)
        .map(|name| ClonePeer { name: name.to_owned(), address: "10.0.0.2:7400".parse().unwrap() })
        .collect();
    Mapping::new(&config).unwrap()
}

fn name(own: &str, place: NodePlace) -> String {
    let others: Vec<_> = ["c", "a", "b"].into_iter().filter(|name| *name != own).collect();
    match place {
        NodePlace::Here => own.to_owned(),
        NodePlace::Peer(number) => others[number].to_owned(),
    }
}

#[test]
fn all_nodes_agree() {
    let nodes = ["a", "b", "c"].map(|own| (own, mapping(own)));
    for (_, mapping) in &nodes {
        (0..2).for_each(|peer| mapping.set_up(peer, true));
    }
    let mut seen = std::collections::BTreeMap::new();
    for number in 0..300 {
        let target = format!("/{number}");
        let found = nodes.each_ref().map(|(own, mapping)| {
            let placed = mapping.place_now(target.as_bytes(), false);
            let found = name(own, placed.place);
            mapping.ended(&placed, MappedEnd::Answered { content_bytes: 1, whole: false });
            found
        });
        assert!(found.iter().all(|other| *other == found[0]), "{target}: {found:?}");
        *seen.entry(found[0].clone()).or_insert(0) += 1;
    }
    assert!(seen.len() == 3 && seen.values().all(|&count| count > 50), "{seen:?}");
}

#[test]
fn without_links_all_is_answered_here() {
    let mapping = mapping("a");
    for number in 0..50 {
        let placed = mapping.place_now(format!("/{number}").as_bytes(), false);
        assert_eq!(placed.place, NodePlace::Here);
        mapping.ended(&placed, MappedEnd::Failed);
    }
    mapping.set_up(0, true);
    assert!((0..50).all(|n| mapping.place_now(format!("/{n}").as_bytes(), true).place == NodePlace::Here));
    let places: Vec<_> =
        (0..50).map(|n| mapping.place_now(format!("/{n}").as_bytes(), false).place).collect();
    assert!(places.contains(&NodePlace::Peer(0)) && places.contains(&NodePlace::Here));
}

#[test]
fn what_is_known_to_be_small_is_answered_here() {
    let mapping = with_least("a", 1000);
    (0..2).for_each(|peer| mapping.set_up(peer, true));
    let elsewhere = |target: &str| mapping.place_now(target.as_bytes(), false).place != NodePlace::Here;
    let targets: Vec<_> = (0..100).map(|n| format!("/{n}")).filter(|target| elsewhere(target)).collect();
    assert!(targets.len() > 30);
    for (number, target) in targets.iter().enumerate() {
        let content_bytes = if number % 2 == 0 { 999 } else { 1000 };
        let mapped = mapping.place_now(target.as_bytes(), false);
        mapping.ended(&mapped, MappedEnd::Answered { content_bytes, whole: true });
        assert_eq!(elsewhere(target), number % 2 == 1, "{target}");
        // A part says nothing of the whole.
        let mapped = mapping.place_now(target.as_bytes(), false);
        mapping.ended(&mapped, MappedEnd::Answered { content_bytes: 5, whole: false });
        assert_eq!(elsewhere(target), number % 2 == 1, "{target}");
    }
}

impl Mapping {
    /// The place where nobody is asked.
    fn place_now(&self, target: &[u8], here_only: bool) -> MappedRequest {
        self.offer(TargetId::from_key(target), here_only, &AsksNodes::default()).unwrap()
    }
}

fn config(policy: &str) -> CloneConfig {
    let serve = ServeConfig::Copy("127.0.0.1:80".parse().unwrap());
    let mut config = CloneConfig::new("a", "10.0.0.1:7400".parse().unwrap(), Key::new([1; 32]), serve);
    config.policy = policy.parse().unwrap();
    config.peers = vec![ClonePeer { name: "b".to_owned(), address: "10.0.0.2:7400".parse().unwrap() }];
    config
}

#[test]
fn every_policy_works_or_says_why_not() {
    let mut lacking = Vec::new();
    for spec in plimsoll_policy::policies::REGISTRY {
        match Mapping::new(&config(spec.name)) {
            Ok(mapping) => {
                mapping.set_up(0, true);
                for number in 0..200 {
                    let placed = mapping.place_now(format!("/{}", number % 17).as_bytes(), false);
                    let end = MappedEnd::Answered { content_bytes: number * 100, whole: true };
                    mapping.ended(&placed, end);
                }
                let look = mapping.look();
                assert_eq!(look.counts.assigned, 200, "{}", spec.name);
                assert!(look.nodes.iter().all(|node| node.own_load == 0), "{}", spec.name);
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.starts_with(&format!("--clone-policy {}: it ", spec.name)), "{text}");
                lacking.push(spec.name);
            }
        }
    }
    // All others work.
    assert!(lacking.contains(&"csld") && lacking.contains(&"weighted_round_robin_host"), "{lacking:?}");
    assert!(!lacking.contains(&"lard_r") && !lacking.contains(&"adaptload"), "{lacking:?}");
    let mut polls = config("prequal");
    assert!(Mapping::new(&polls).is_err());
    polls.loads = NodeLoads::POLL;
    assert!(Mapping::new(&polls).is_ok(), "it gets reports");
}

#[test]
fn the_decision_log_replays() {
    for policy in ["uri_hash", "lard_r", "adaptload", "random_polling", "round_robin"] {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(policy);
        config.decision_log = Some(directory.path().to_owned());
        let mapping = Mapping::new(&config).unwrap();
        mapping.set_up(0, true);
        let mut under_way = Vec::new();
        for number in 0..2000_u64 {
            under_way.push(mapping.place_now(format!("/{}", number * number % 97).as_bytes(), false));
            if number % 3 == 0 || number > 1500 {
                let mapped = under_way.swap_remove((number % 5) as usize % under_way.len());
                let end = MappedEnd::Answered { content_bytes: number % 50 * 1000, whole: true };
                mapping.ended(&mapped, end);
            }
            if number == 900 {
                mapping.set_up(0, false);
            }
            if number == 1000 {
                mapping.set_up(0, true);
                mapping.share(&[(1000, 5), (40_000, 9)]);
                mapping.report(&LoadReport::of(BackendId(1), 7));
            }
        }
        mapping.close_log();
        drop(mapping);
        let mut reader = plimsoll_decisions::LogReader::open(directory.path()).unwrap();
        let mut decisions = |_| {};
        let proof = plimsoll_decisions::replay(&mut reader, &mut decisions).unwrap();
        // Of a poll, the question and the choice are decisions.
        let (all, _) = proof.decisions();
        assert!(proof.is_proved() && all >= 2000, "{policy}: {proof:?}");
    }
}
