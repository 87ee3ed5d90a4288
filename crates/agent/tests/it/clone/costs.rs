//! From which size on a clone costs less than fetching a document from the node that has it.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use plimsoll_agent::daemon::ServeConfig;
use plimsoll_lab::Node;
use plimsoll_origin::synthetic::Synthetic;
use plimsoll_origin::{Origin, OriginConfig, OriginService, Source};

use super::World;
use super::client::{Client, get, is_document};

const SIZES: [u64; 11] = [64, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144, 1_048_576];

/// CPU time of this process, which has all nodes and the client, with what the kernel does for it.
fn cpu() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(tasks.sum())
}

/// A request's mean time, and that of the CPU, in microseconds; `None` when the connection was reset.
fn measured(client: &mut Client, path: &str, requests: u32) -> Option<(f64, f64)> {
    let (began_at, before) = (Instant::now(), cpu());
    for _ in 0..requests {
        client.send(&get(path));
        assert!(is_document(path, &client.try_answer(false).ok()?.body), "{path}");
    }
    let of = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(requests);
    Some((of(began_at.elapsed()), of(cpu().saturating_sub(before))))
}

/// A document of this size whose clones are node 1's.
fn document_of(world: &World, size: u64) -> String {
    let is_of = |path: &String| {
        let before = world.node(1).stats().made;
        let mut client = world.connect();
        client.send(&get(path));
        assert!(is_document(path, &client.answer(false).body), "{path}");
        world.node(1).stats().made > before
    };
    (0..200).map(|at| format!("/size/{size}/at{at}")).find(is_of).expect("a document of node 1")
}

/// An origin of node 1 for other nodes, until the end of the process.
fn origin(world: &World, address: SocketAddr) {
    let bind = || TcpListener::bind(address).unwrap();
    let listener = world.lab.node(Node::Backend(1)).unwrap().run(bind).unwrap();
    listener.set_nonblocking(true).unwrap();
    let serve = async move {
        let source = Source::synthetic(Synthetic::fixed(1000));
        let service = OriginService::new(OriginConfig::new(source)).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        Origin::listen(service, listener).unwrap().serve(std::future::pending()).await;
    };
    std::thread::spawn(|| {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(serve);
    });
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Node 0 answers itself, or has node 1 answer by a clone; node 2 fetches from node 1, and sends that on. All have everything in
/// memory. One client asks for one document after the other, on a kept connection for each way.
#[test]
fn a_clone_and_a_fetch_by_size() {
    let fetched_from = std::cell::Cell::new(None);
    let number = std::cell::Cell::new(0);
    let world = World::with(|config| {
        config.vips.push(SocketAddr::new(config.listen.ip(), 80));
        match number.replace(number.get() + 1) {
            1 => fetched_from.set(Some(SocketAddr::new(config.listen.ip(), 8080))),
            2 => config.serve = ServeConfig::Copy(fetched_from.get().unwrap()),
            _ => {}
        }
    });
    origin(&world, fetched_from.get().unwrap());
    world.lead_to(0);
    let client = world.lab.node(Node::Client).unwrap();
    let connect = |to: SocketAddr| client.run(|| Client::connect(to)).unwrap();
    let at = |number: usize| SocketAddr::new(world.address(number), 80);
    let to = [at(0), world.vip(), at(2)];
    let mut ways = to.map(connect);
    let mut resets = 0;
    // More of them for a measurement, on a quiet machine.
    let rounds = std::env::var("ROUNDS").map_or(1, |rounds| rounds.parse().unwrap());
    println!("  bytes |  own us |  clone us |  fetch us | CPU: own |  clone |  fetch");
    for size in SIZES {
        let path = document_of(&world, size);
        let requests = if size > 200_000 { 40 } else { 150 };
        let mut found = [const { (Vec::new(), Vec::new()) }; 3];
        for round in 0..=rounds {
            for ((way, to), found) in ways.iter_mut().zip(to).zip(&mut found) {
                let Some((time_us, cpu_us)) = measured(way, &path, requests) else {
                    *way = connect(to);
                    resets += 1;
                    continue;
                };
                // The first round fills caches.
                if round > 0 {
                    found.0.push(time_us);
                    found.1.push(cpu_us);
                }
            }
        }
        let [own, clone, fetch] = found.map(|(time, cpu)| (median(time), median(cpu)));
        println!(
            "{size:>7} | {:>7.0} | {:>9.0} | {:>9.0} | {:>8.0} | {:>6.0} | {:>6.0}",
            own.0, clone.0, fetch.0, own.1, clone.1, fetch.1
        );
    }
    assert_eq!(
        (resets, world.node(0).stats().declined),
        (0, 0),
        "each was a clone, and none lost its client"
    );
}
