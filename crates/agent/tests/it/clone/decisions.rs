//! What nodes decide by, and what they tell of it: decision logs that replay, loads of other nodes, access logs, the admin API.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use plimsoll_agent::daemon::{CloneConfig, NodeLoads};
use plimsoll_agent::load::{AnnounceConfig, LoadConfig, LoadRole, LoadService, PreparedLoad};
use plimsoll_config::{AccessLog, AccessLogFormat, Admin};
use plimsoll_decisions::LogReader;
use plimsoll_lab::Node;
use plimsoll_testkit::{PATIENCE, eventually, uninterrupted};
use plimsoll_wire::load::LoadGauge;
use serde_json::Value;
use socket2::SockRef;

use super::client::{get, is_document};
use super::{NODES, World, key};

fn with_admin(config: &mut CloneConfig) {
    config.admin = Some(Admin { address: "127.0.0.1:0".parse().unwrap(), token: None, is_unasked: false });
}

/// What the admin API of a node answers.
fn ask(world: &World, number: usize, method: &str, path: &str) -> String {
    let address = world.node(number).admin_address().unwrap();
    let ask = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let text = world.lab.node(Node::Backend(number)).unwrap().run(ask).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {text}");
    body.to_owned()
}

fn asked(world: &World, number: usize, path: &str) -> Value {
    serde_json::from_str(&ask(world, number, "GET", path)).unwrap()
}

/// The value of a metric, with its labels.
fn metric(metrics: &str, name: &str) -> u64 {
    let line = metrics.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    let value = line.unwrap_or_else(|| panic!("no {name} in {metrics}"));
    value.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Stops a node, so that its logs are complete.
fn stop(world: &mut World, number: usize) {
    let node = world.nodes[number].take().unwrap();
    world.lab.node(Node::Backend(number)).unwrap().run(|| node.stop()).unwrap().unwrap();
}

fn replays(directory: &Path) -> u64 {
    let mut reader = LogReader::open(directory).unwrap();
    let proof = plimsoll_decisions::replay(&mut reader, &mut |_| {}).unwrap();
    assert!(proof.is_proved(), "{proof:?}");
    proof.decisions().0
}

#[test]
fn decisions_replay_and_each_request_has_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str, kind: &str| directory.path().join(format!("{name}.{kind}"));
    let mut world = World::with(|config| {
        config.policy = "lard_r".parse().unwrap();
        config.decision_log = Some(at(&config.name, "decisions"));
        let file = Some(at(&config.name, "log"));
        config.access_log = Some(AccessLog { file, format: AccessLogFormat::Json });
        with_admin(config);
    });
    world.lead_to(0);
    let mut client = world.connect();
    let mut answered = Vec::new();
    for number in 0..60 {
        let path = format!("/size/{}/a{}", number % 4 * 9000 + 10, number % 20);
        client.send(&get(&path));
        let answer = client.answer(false);
        assert!(is_document(&path, &answer.body), "{path}");
        answered.push((path, answer.backend));
    }
    drop(client);
    world.nothing_is_left();
    let by_clones = answered.iter().filter(|(_, backend)| backend != world.name(0)).count() as u64;
    assert!(by_clones > 5, "{by_clones} of 60");

    // What it tells while it runs.
    let metrics = ask(&world, 0, "GET", "/metrics");
    assert_eq!(metric(&metrics, "plimsoll_decisions_total"), 60);
    assert_eq!(metric(&metrics, "plimsoll_requests_total"), 60);
    assert_eq!(metric(&metrics, "plimsoll_clone_asked_total"), by_clones);
    assert_eq!(metric(&metrics, "plimsoll_clone_taken_back_total"), by_clones);
    assert_eq!(metric(&metrics, "plimsoll_clone_time_seconds_count"), by_clones);
    assert_eq!(metric(&metrics, "plimsoll_clone_declined_total{reason=\"refused\"}"), 0);
    // Acknowledgments of several answers may have come as one packet.
    assert!(metric(&metrics, "plimsoll_router_packets_total{what=\"routed\"}") > 0);
    let bytes = |by: &str| metric(&metrics, &format!("plimsoll_clone_content_bytes_total{{by=\"{by}\"}}"));
    let of = |path: &str| path.split('/').nth(2).unwrap().parse::<u64>().unwrap();
    assert_eq!(bytes("here") + bytes("clone"), answered.iter().map(|(path, _)| of(path)).sum::<u64>());
    let made: u64 =
        (1..NODES).map(|n| metric(&ask(&world, n, "GET", "/metrics"), "plimsoll_clone_made_total")).sum();
    assert_eq!(made, by_clones);
    let (path, backend) = answered.last().unwrap();
    let why = asked(&world, 0, &format!("/why?target={path}"));
    assert_eq!((&why["policy"], &why["known_size_bytes"]), (&"lard_r".into(), &of(path).into()));
    assert!(why["server_set"].as_array().unwrap().iter().any(|node| node == backend), "{why}");
    assert!(why["explanation"].as_str().unwrap().contains(backend), "{why}");
    assert_eq!(asked(&world, 0, "/policy")["decisions"], 60);
    assert_eq!(asked(&world, 0, "/nodes")["nodes"].as_array().unwrap().len(), NODES);
    ask(&world, 0, "POST", "/decisions/flush");

    let names: Vec<_> = world.names.clone();
    (0..NODES).for_each(|number| stop(&mut world, number));
    assert_eq!(replays(&at(&names[0], "decisions")), 60);
    (1..NODES).for_each(|number| assert_eq!(replays(&at(&names[number], "decisions")), 0));
    let text = std::fs::read_to_string(at(&names[0], "log")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 60);
    for (line, (path, backend)) in lines.iter().zip(&answered) {
        assert_eq!((&line["target"], &line["backend"]), (&(&**path).into(), &(&**backend).into()), "{line}");
        let mechanism = if *backend == names[0] { Value::Null } else { "clone".into() };
        assert_eq!((&line["mechanism"], &line["bytes"]), (&mechanism, &of(path).into()), "{line}");
        assert_eq!((&line["status"], &line["policy"]), (&200.into(), &"lard_r".into()));
    }
    let reasons: Vec<_> = lines.iter().map(|line| line["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons[0], "new");
    assert!(reasons[20..].iter().all(|reason| *reason == "locality"), "{reasons:?}");
}

/// Nodes that tell their loads, with these loads beside their requests.
struct ToldLoads {
    gauges: RefCell<BTreeMap<String, LoadGauge>>,
    services: Vec<(usize, LoadService)>,
}

impl ToldLoads {
    fn new() -> Self {
        Self { gauges: RefCell::default(), services: Vec::new() }
    }

    fn note(&self, config: &CloneConfig) {
        self.gauges.borrow_mut().insert(config.name.clone(), config.gauge.clone());
    }

    fn start(&mut self, world: &World, announce: bool) {
        for number in 0..NODES {
            let gauge = self.gauges.borrow()[world.name(number)].clone();
            let listen = SocketAddr::new(world.address(number), 7401);
            let mut config = LoadConfig::new(listen, key(), LoadRole::Answer(gauge));
            if announce {
                let others = (0..NODES).filter(|other| *other != number);
                let receivers = others.map(|other| SocketAddr::new(world.address(other), 7402)).collect();
                config.announce = Some(AnnounceConfig::new(Duration::from_millis(20), receivers));
            }
            let start = || PreparedLoad::new(config).unwrap().start().unwrap();
            let service = world.lab.node(Node::Backend(number)).unwrap().run(start).unwrap();
            self.services.push((number, service));
        }
    }

    fn set(&self, world: &World, number: usize, load: u32) {
        self.gauges.borrow()[world.name(number)].set_external(load);
    }

    fn stop(self, world: &World) {
        for (number, service) in self.services {
            world.lab.node(Node::Backend(number)).unwrap().run(|| service.stop()).unwrap();
        }
    }
}

/// Who answers so many requests for new documents.
fn answers(world: &World, count: usize, what: &str) -> BTreeMap<String, usize> {
    let mut client = world.connect();
    let mut found = BTreeMap::new();
    for number in 0..count {
        let path = format!("/size/2000/{what}{number}");
        client.send(&get(&path));
        let answer = client.answer(false);
        assert!(is_document(&path, &answer.body));
        *found.entry(answer.backend).or_insert(0) += 1;
    }
    found
}

#[test]
fn polled_loads_decide() {
    let mut loads = ToldLoads::new();
    let mut world = World::with(|config| {
        config.policy = "lard".parse().unwrap();
        // As long as it takes: this is not about time.
        config.loads = NodeLoads::Poll { size: 3, timeout: PATIENCE, max_age: Duration::ZERO };
        config.decision_log = None;
        with_admin(config);
        loads.note(config);
    });
    loads.start(&world, false);
    world.lead_to(0);
    loads.set(&world, 1, 500);
    let found = answers(&world, 30, "a");
    assert!(!found.contains_key(world.name(1)) && found.contains_key(world.name(2)), "{found:?}");
    // The other way round.
    loads.set(&world, 1, 0);
    loads.set(&world, 2, 500);
    loads.set(&world, 0, 500);
    let found = answers(&world, 30, "b");
    assert_eq!(found.get(world.name(1)), Some(&30), "{found:?}");
    let metrics = ask(&world, 0, "GET", "/metrics");
    assert_eq!(metric(&metrics, "plimsoll_mapping_polls_total"), 60);
    assert!(metric(&metrics, "plimsoll_mapping_reports_total") >= 180);
    world.nothing_is_left();
    loads.stop(&world);
    (0..NODES).for_each(|number| stop(&mut world, number));
}

#[test]
fn announced_loads_decide() {
    let directory = tempfile::tempdir().unwrap();
    let mut loads = ToldLoads::new();
    let mut world = World::with(|config| {
        config.policy = "lard_r".parse().unwrap();
        let hear = SocketAddr::new(config.listen.ip(), 7402);
        config.loads = NodeLoads::Broadcast { hear, interval: Duration::from_millis(20) };
        config.decision_log = Some(directory.path().join(&config.name));
        with_admin(config);
        loads.note(config);
    });
    loads.start(&world, true);
    loads.set(&world, 2, 321);
    world.lead_to(0);
    let shown = |number: usize| {
        let metrics = ask(&world, 0, "GET", "/metrics");
        metric(&metrics, &format!("plimsoll_backend_shown_load{{backend=\"{}\"}}", world.name(number)))
    };
    eventually("the load is known", || shown(2) == 321);
    let found = answers(&world, 30, "a");
    assert!(!found.contains_key(world.name(2)) && found.contains_key(world.name(1)), "{found:?}");
    world.nothing_is_left();
    loads.stop(&world);
    let names = world.names.clone();
    (0..NODES).for_each(|number| stop(&mut world, number));
    assert_eq!(replays(&directory.path().join(&names[0])), 30);
}

#[test]
fn all_nodes_set_the_same_boundaries() {
    let directory = tempfile::tempdir().unwrap();
    let mut world = World::with(|config| {
        config.policy = "adaptload:batch=20".parse().unwrap();
        config.share_period = Duration::from_millis(50);
        config.decision_log = Some(directory.path().join(&config.name));
        with_admin(config);
    });
    // A policy looks at the sizes once it is asked.
    for original in [2, 1, 0] {
        world.lead_to(original);
        let mut client = world.connect();
        client.send(&get("/size/500/first"));
        assert!(is_document("/size/500/first", &client.answer(false).body));
    }
    // The other nodes see none of these requests themselves.
    for round in 0..3 {
        let mut client = world.connect();
        for number in 0..40_u64 {
            let path = format!("/size/{}/s{number}", (number + 1) * 1000);
            client.send(&get(&path));
            assert!(is_document(&path, &client.answer(false).body), "round {round}");
        }
    }
    let boundaries = |number: usize| {
        let tables = asked(&world, number, "/policy/tables");
        let tables = tables["tables"].as_array().unwrap();
        tables.iter().find(|table| table["name"] == "boundaries").map(|table| table["rows"].clone())
    };
    eventually("the same boundaries", || {
        let all: Vec<_> = (0..NODES).map(boundaries).collect();
        all[0].as_ref().is_some_and(|rows| !rows.as_array().unwrap().is_empty())
            && all.iter().all(|other| *other == all[0])
    });
    assert_eq!(asked(&world, 1, "/policy")["nodes_shared_with"], NODES - 1);
    // Now small documents have another node than large ones, at each original.
    world.nothing_is_left();
    let mut client = world.connect();
    let mut who = |size: u64| {
        client.send(&get(&format!("/size/{size}/s{}", size / 1000 - 1)));
        client.answer(false).backend
    };
    assert_ne!(who(1000), who(40_000));
    drop(client);
    world.nothing_is_left();
    let names = world.names.clone();
    (0..NODES).for_each(|number| stop(&mut world, number));
    for name in &names {
        replays(&directory.path().join(name));
    }
}

/// Wherever a request is answered, one node writes its line.
fn each_has_its_line(change: impl Fn(&mut CloneConfig), pipelined: bool) {
    let directory = tempfile::tempdir().unwrap();
    let mut world = World::with(|config| {
        let file = Some(directory.path().join(&config.name));
        config.access_log = Some(AccessLog { file, format: AccessLogFormat::Json });
        change(config);
    });
    let mut answered = Vec::new();
    for original in 0..NODES {
        world.lead_to(original);
        let mut client = world.connect();
        let paths: Vec<_> = (0..40).map(|number| format!("/size/3000/{original}x{number}")).collect();
        if pipelined {
            client.send(&paths.iter().map(|path| get(path)).collect::<String>());
        }
        for path in paths {
            if !pipelined {
                client.send(&get(&path));
            }
            let answer = client.answer(false);
            assert!(is_document(&path, &answer.body), "{path}");
            answered.push((path, answer.backend));
        }
    }
    world.nothing_is_left();
    let names = world.names.clone();
    (0..NODES).for_each(|number| stop(&mut world, number));
    let mut told = Vec::new();
    for name in &names {
        for line in std::fs::read_to_string(directory.path().join(name)).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| line[key].as_str().unwrap().to_owned();
            told.push((text("target"), text("backend")));
            assert_eq!((&line["status"], &line["bytes"]), (&200.into(), &3000.into()), "{line}");
        }
    }
    answered.sort();
    told.sort();
    assert_eq!(told, answered);
}

#[test]
fn requests_that_kept_clones_answer_have_their_lines() {
    each_has_its_line(|config| config.keeps = true, false);
}

#[test]
fn requests_that_clones_made_ahead_answer_have_their_lines() {
    each_has_its_line(|config| config.ahead = 4, true);
}

#[test]
fn a_client_that_resets_its_connection_has_gone_away_for_the_access_log() {
    let directory = tempfile::tempdir().unwrap();
    let mut world = World::with(|config| {
        let file = Some(directory.path().join(&config.name));
        config.access_log = Some(AccessLog { file, format: AccessLogFormat::Json });
    });
    world.lead_to(0);
    // More than all buffers hold, by the node itself and by clones.
    for number in 0..24 {
        let mut client = world.connect();
        client.send(&get(&format!("/size/50000000/{number}")));
        uninterrupted(|| client.stream.read_exact(&mut [0; 1000])).unwrap();
        SockRef::from(&client.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }
    world.nothing_is_left();
    let name = world.name(0).to_owned();
    (0..NODES).for_each(|number| stop(&mut world, number));
    let text = std::fs::read_to_string(directory.path().join(name)).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 24, "{text}");
    assert!(lines.iter().all(|line| line["status"] == 499), "{text}");
    assert!(lines.iter().any(|line| line["mechanism"].is_null()), "one of its own: {text}");
    assert!(lines.iter().any(|line| line["mechanism"] == "clone"), "{text}");
}
