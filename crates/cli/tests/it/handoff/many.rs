//! Many connections at once, each of which goes from back-end to back-end as its targets ask for.

use std::net::SocketAddr;

use super::bed::{Bed, Options};
use super::http::{Client, content};

const CONNECTIONS: usize = 10_000;
const THREADS: usize = 4;
const FILES: usize = 50;
const ROUNDS: usize = 3;

/// A client for each connection, and requests for files that nothing but chance connects.
fn visit(vip: SocketAddr, seed: u64, bodies: &[Vec<u8>]) {
    let mut clients: Vec<Client> =
        (0..CONNECTIONS / THREADS).map(|_| Client::connect(vip).unwrap()).collect();
    let mut state = seed;
    for _ in 0..ROUNDS {
        for client in &mut clients {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let file = (state >> 33) as usize % FILES;
            let answer = client.get(&format!("/f{file}")).unwrap();
            assert!(answer.body == bodies[file], "{}", answer.head);
        }
    }
}

#[test]
fn ten_thousand_connections_with_random_targets() {
    let bodies: Vec<Vec<u8>> = (0..FILES).map(|i| content(i as u64 + 1, 100 + i * 397)).collect();
    let names: Vec<String> = (0..FILES).map(|i| format!("f{i}")).collect();
    let files: Vec<(&str, Vec<u8>)> = names.iter().map(String::as_str).zip(bodies.iter().cloned()).collect();
    // A connection waits for the others; how long that takes depends on the machine.
    let config = "[timeouts]\nhead = \"1h\"\nidle = \"1h\"\n".to_owned();
    let agent = ["--idle-timeout", "3600"].map(str::to_owned).to_vec();
    let options = Options { backends: 3, policy: "uri_hash", config, agent, ..Options::default() };
    let bed = Bed::new(options, &files);
    let vip = bed.vip();
    bed.client(|| {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let bodies = &bodies;
                scope.spawn(move || visit(vip, thread as u64, bodies));
            }
        });
    });
    // Two in three further requests belong elsewhere.
    let on = bed.metric("plimsoll_handoffs_on_total").unwrap();
    let further = (CONNECTIONS * (ROUNDS - 1)) as f64;
    assert!((0.5..0.8).contains(&(on / further)), "{on} of {further} were handed on");
    assert_eq!(bed.metric("plimsoll_connections_lost_total"), Some(0.0));
    bed.assert_quiet();
    bed.access_log(CONNECTIONS * ROUNDS);
    bed.stop();
}
