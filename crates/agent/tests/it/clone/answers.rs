//! Who answers, and that every byte is right.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use plimsoll_agent::daemon::ServeConfig;
use plimsoll_lab::{Conditions, Node};
use plimsoll_origin::synthetic::Synthetic;
use plimsoll_origin::{OriginConfig, Source};
use plimsoll_testkit::{Why, pace};

use super::client::{Client, get, is_document, is_part};
use super::{NODES, World};

const SIZES: [u64; 9] = [0, 1, 100, 1_400, 1_500, 14_600, 100_000, 300_000, 3_000_000];

#[test]
fn each_request_is_answered_by_the_node_that_has_it() {
    each_request(&World::new());
}

pub(super) fn each_request(world: &World) {
    let mut answered: BTreeMap<String, String> = BTreeMap::new();
    let mut by_clones = 0;
    for original in 0..NODES {
        world.lead_to(original);
        let mut client = world.connect();
        for (number, size) in SIZES.into_iter().cycle().take(45).enumerate() {
            let path = format!("/size/{size}/a{number}");
            client.send(&get(&path));
            let answer = client.answer(false);
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            assert!(is_document(&path, &answer.body), "{path} by {}: {}", answer.backend, answer.body.len());
            let before = answered.entry(path.clone()).or_insert_with(|| answer.backend.clone());
            assert_eq!(*before, answer.backend, "{path}: the nodes do not agree");
            by_clones += u64::from(answer.backend != world.name(original));
        }
    }
    // Each request is a clone's answer at two of three originals.
    assert_eq!(by_clones, 90);
    // What is counted follows the client's last acknowledgment.
    world.nothing_is_left();
    let stats: Vec<_> = (0..NODES).map(|number| world.node(number).stats()).collect();
    let sum = |of: fn(&plimsoll_agent::daemon::CloneStats) -> u64| stats.iter().map(of).sum::<u64>();
    println!("a clone is there after {} us, in the mean", sum(|stats| stats.waited_ns) / 1000 / by_clones);
    assert_eq!(sum(|stats| stats.requests), 135);
    assert_eq!(sum(|stats| stats.own), 45);
    assert_eq!((sum(|stats| stats.clone_answers), sum(|stats| stats.fast_forwarded)), (90, 90));
    assert_eq!((sum(|stats| stats.made), sum(|stats| stats.declined), sum(|stats| stats.lost)), (90, 0, 0));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    pipelined(&World::new());
}

pub(super) fn pipelined(world: &World) {
    world.lead_to(0);
    let paths: Vec<_> = SIZES
        .into_iter()
        .cycle()
        .take(36)
        .enumerate()
        .map(|(n, size)| format!("/size/{size}/p{n}"))
        .collect();
    let all: String = paths.iter().map(|path| get(path)).collect();
    // At once, and in pieces that end anywhere.
    for piece in [all.len(), 700, 61] {
        let mut client = world.connect();
        let mut writer = client.stream.try_clone().unwrap();
        let all = all.clone();
        let sending = std::thread::spawn(move || {
            for piece in all.as_bytes().chunks(piece) {
                std::io::Write::write_all(&mut writer, piece).unwrap();
                pace(Duration::from_millis(1), Why::Pieces);
            }
        });
        let mut by_clones = 0;
        for path in &paths {
            let answer = client.answer(false);
            assert!(is_document(path, &answer.body), "{path} by {}: {}", answer.backend, answer.body.len());
            by_clones += usize::from(answer.backend != world.name(0));
        }
        sending.join().unwrap();
        assert!(by_clones > 9, "{by_clones}");
    }
    world.nothing_is_left();
}

/// Packets with data that the kernel of the client has got on this connection.
fn data_packets(world: &World, client: &Client) -> usize {
    let port = client.stream.local_addr().unwrap().port();
    let filter = format!("sport = :{port}");
    let ask = || Command::new("ss").args(["-tinH", &filter]).output().unwrap();
    let told = world.lab.node(Node::Client).unwrap().run(ask).unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let count = told.split_whitespace().find_map(|word| word.strip_prefix("data_segs_in:")?.parse().ok());
    count.unwrap_or_else(|| panic!("no number of packets: {told}"))
}

/// So that the client does not delay its acknowledgment, which the next node waits for.
#[test]
fn an_answer_that_others_wait_behind_comes_in_two_packets() {
    let world = World::new();
    world.lead_to(0);
    let paths = [1, 2].map(|node| world.document_at(node, 1000));
    let mut client = world.connect();
    client.send(&paths.each_ref().map(|path| get(path)).concat());
    for (number, path) in [1, 2].into_iter().zip(&paths) {
        let answer = client.answer(false);
        assert!(is_document(path, &answer.body) && answer.backend == world.name(number));
    }
    // More if the kernel has sent some again.
    assert!(data_packets(&world, &client) >= 3, "of the first answer two");
}

#[test]
fn other_requests_and_answers() {
    others(&World::new());
}

pub(super) fn others(world: &World) {
    world.lead_to(1);
    let path = world.document_at(2, 50_000);
    let mut client = world.connect();
    client.send(&format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    let head = client.answer(true);
    assert_eq!(
        (head.status, head.field("content-length"), &*head.backend),
        (200, Some("50000"), world.name(2))
    );
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nRange: bytes=100-1099\r\n\r\n"));
    let part = client.answer(false);
    assert_eq!((part.status, part.body.len(), &*part.backend), (206, 1000, world.name(2)));
    assert!(is_part(&path, 100, &part.body));
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nRange: bytes=60000-\r\n\r\n"));
    assert_eq!(client.answer(false).status, 416);
    if let Some(etag) = head.field("etag") {
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nIf-None-Match: {etag}\r\n\r\n"));
        assert_eq!(client.answer(false).status, 304);
    }
    // A head in two packets, larger than one.
    let long = format!("GET {path} HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n", "y".repeat(3000));
    client.send(&long);
    pace(Duration::from_millis(20), Why::Pieces);
    client.send("\r\n");
    assert!(is_document(&path, &client.answer(false).body));
    // Its last one on this connection.
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    let last = client.answer(false);
    assert!(is_document(&path, &last.body) && last.backend == world.name(2));
    let (rest, end) = client.rest();
    assert!(rest.is_empty() && end.is_ok(), "{end:?}");
    // An old client, and one that ends its side at once.
    let mut client = world.connect();
    client.send(&format!("GET {path} HTTP/1.0\r\n\r\n"));
    assert!(is_document(&path, &client.answer(false).body));
    assert!(client.rest().1.is_ok());
    let mut client = world.connect();
    client.send(&get(&path));
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(is_document(&path, &client.answer(false).body));
    assert!(client.rest().1.is_ok());
    // With a body: by the original.
    let mut client = world.connect();
    client.send(&format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"));
    assert_eq!(client.answer(false).status, 405);
    drop(client);
    world.nothing_is_left();
}

#[test]
fn a_next_request_waits_while_a_slow_reader_takes_an_answer() {
    slow_reader(&World::new());
}

pub(super) fn slow_reader(world: &World) {
    world.lead_to(0);
    let path = world.document_at(1, 6_000_000);
    let mut client = world.connect();
    client.send(&get(&path));
    pace(Duration::from_millis(100), Why::SlowPeer);
    // The window is full by now.
    client.send(&get("/size/10/next"));
    pace(Duration::from_millis(300), Why::SlowPeer);
    client.send(&get(&path));
    assert!(is_document(&path, &client.answer(false).body));
    assert!(is_document("/size/10/next", &client.answer(false).body));
    assert!(is_document(&path, &client.answer(false).body));
    drop(client);
    world.nothing_is_left();
}

#[test]
fn many_connections_at_once() {
    let world = World::new();
    for original in 0..NODES {
        world.lead_to(original);
        std::thread::scope(|scope| {
            for connection in 0..24 {
                let world = &world;
                scope.spawn(move || {
                    for round in 0..3 {
                        let mut client = world.connect();
                        for number in 0..10 {
                            let size = [37, 2_000, 40_000][(number + connection) % 3];
                            let path = format!("/size/{size}/m{}", (number * 7 + connection + round) % 50);
                            client.send(&get(&path));
                            let answer = client.answer(false);
                            assert!(is_document(&path, &answer.body), "{path} by {}", answer.backend);
                        }
                    }
                });
            }
        });
    }
    world.nothing_is_left();
    let stats: Vec<_> = (0..NODES).map(|number| world.node(number).stats()).collect();
    assert_eq!(stats.iter().map(|stats| stats.requests).sum::<u64>(), 2160);
    assert_eq!(stats.iter().map(|stats| stats.lost).sum::<u64>(), 0, "{stats:?}");
    assert!(stats.iter().map(|stats| stats.clone_answers).sum::<u64>() > 1000, "{stats:?}");
}

#[test]
fn every_byte_is_right_where_packets_are_lost_and_overtaken() {
    let world = World::new();
    let bad = Conditions {
        loss: 0.01,
        duplicate: 0.01,
        late: 0.03,
        late_by: Duration::from_millis(3),
        ..Conditions::delayed(Duration::from_millis(1))
    };
    world.lab.link(Node::Client).unwrap().set(&bad).unwrap();
    for original in 0..NODES {
        world.lead_to(original);
        std::thread::scope(|scope| {
            for connection in 0..16 {
                let world = &world;
                scope.spawn(move || {
                    let mut client = world.connect();
                    for round in 0..6 {
                        let size = [11, 3_000, 70_000][(round + connection) % 3];
                        let paths =
                            [0, 1, 2].map(|n| format!("/size/{size}/b{}", (n + connection * round) % 40));
                        // One after the other, or together.
                        let together = if (connection + round) % 2 == 0 { 3 } else { 1 };
                        for paths in paths.chunks(together) {
                            client.send(&paths.iter().map(|path| get(path)).collect::<String>());
                            for path in paths {
                                let answer = client.answer(false);
                                assert!(is_document(path, &answer.body), "{path} by {}", answer.backend);
                            }
                        }
                    }
                });
            }
        });
    }
    world.lab.link(Node::Client).unwrap().set(&Conditions::default()).unwrap();
    world.nothing_is_left();
    let stats: Vec<_> = (0..NODES).map(|number| world.node(number).stats()).collect();
    assert_eq!(stats.iter().map(|stats| stats.lost).sum::<u64>(), 0, "{stats:?}");
    assert!(stats.iter().map(|stats| stats.clone_answers).sum::<u64>() > 300, "{stats:?}");
}

#[test]
fn the_rest_of_an_answer_is_sent_by_a_clone() {
    // Within the first packet, at its end, behind the first window, and far on.
    for first_bytes in [1, 1_000, 1_447, 1_448, 1_449, 14_480, 65_536, 1_000_000, 2_999_999] {
        let world = World::with(|config| config.first_bytes = first_bytes);
        world.lead_to(0);
        let mut client = world.connect();
        let mut rests = 0;
        for number in 0..12 {
            let size = [3_000_000, first_bytes, first_bytes + 1][number % 3];
            let path = format!("/size/{size}/r{number}");
            let together = format!("{}{}", get(&path), get("/size/10/after"));
            client.send(&together);
            let answer = client.answer(false);
            assert_eq!((answer.status, &*answer.backend), (200, world.name(0)), "{path}");
            assert!(is_document(&path, &answer.body), "{path}, {first_bytes} here: {}", answer.body.len());
            assert!(is_document("/size/10/after", &client.answer(false).body));
            rests += u64::from(size > first_bytes);
        }
        drop(client);
        world.nothing_is_left();
        let stats = world.node(0).stats();
        assert!(stats.rests > 0 && stats.rests <= rests + 12, "{first_bytes}: {stats:?}");
        assert_eq!((stats.declined, stats.lost), (0, 0), "{first_bytes}: {stats:?}");
    }
}

#[test]
fn the_rest_of_another_document_is_refused() {
    let world = World::with(|config| {
        config.first_bytes = 5_000;
        // The second node has other documents by the same names.
        if config.listen.ip().to_string().ends_with(".12") {
            let names = (0..30).map(|number| format!("/size/20000/o{number}").into_bytes());
            let others = Synthetic::table(names.map(|name| (name, 20_000))).unwrap();
            let source = Source::synthetic(others);
            config.serve = ServeConfig::Origin(OriginConfig::new(source).into());
        }
    });
    world.lead_to(0);
    let mut client = world.connect();
    for number in 0..30 {
        let path = format!("/size/20000/o{number}");
        client.send(&get(&path));
        assert!(is_document(&path, &client.answer(false).body), "{path}");
    }
    drop(client);
    world.nothing_is_left();
    let stats = world.node(0).stats();
    assert!(stats.declined > 0 && stats.rests > 0 && stats.lost == 0, "{stats:?}");
    assert_eq!(world.node(1).stats().made, 0);
}

#[test]
fn curl_gets_what_is_at_other_nodes() {
    by_curl(&World::new());
}

pub(super) fn by_curl(world: &World) {
    world.lead_to(2);
    let paths: Vec<_> = (0..20).map(|n| format!("/size/{}/c{n}", 1 + 4_000 * n)).collect();
    let directory = tempfile::tempdir().unwrap();
    let file = |number: usize| directory.path().join(number.to_string());
    let machine = world.lab.node(Node::Client).unwrap();
    let curl = || {
        let mut command = Command::new("curl");
        command.args(["-sS", "--fail", "--max-time", "60", "-w", "%header{x-backend} %{num_connects}\n"]);
        for (number, path) in paths.iter().enumerate() {
            command.arg("-o").arg(file(number)).arg(format!("http://{}{path}", world.vip()));
        }
        command.output().unwrap()
    };
    let output = machine.run(curl).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said} {}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<Vec<&str>> = said.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines.len(), 20, "{said}");
    for (number, line) in lines.iter().enumerate() {
        assert!(is_document(&paths[number], &std::fs::read(file(number)).unwrap()), "{number}: {said}");
        assert_eq!(line[1], if number == 0 { "1" } else { "0" }, "one connection: {said}");
    }
    let by_clones = lines.iter().filter(|line| line[0] != world.name(2)).count();
    assert!(by_clones > 1, "{said}");
    world.nothing_is_left();
}
