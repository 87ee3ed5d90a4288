//! Cooperative caching: nodes on loopback, and nodes that die, lie or are strangers.

mod wrong;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use http_body_util::BodyExt as _;
use plimsoll_agent::daemon::{CacheLocation, CacheNode, CacheNodeConfig, CachePeer, PreparedCacheNode};
use plimsoll_origin::synthetic::Synthetic;
use plimsoll_origin::{OriginConfig, OriginService, Source};
use plimsoll_testkit::{OwnLoopback, PATIENCE, eventually, uninterrupted};
use plimsoll_wire::caching::{FromHolder, ToHolder, digest};
use plimsoll_wire::codec::messages;
use plimsoll_wire::session::{AgentHandshake, AgentTerms, Keys};
use plimsoll_wire::{Key, random};
use socket2::{Domain, Socket, Type};
use tokio::runtime::Runtime;

use crate::links::establish;

const SIZE_BYTES: usize = 1000;

fn key() -> Key {
    Key::new([7; 32])
}

/// Where the first node takes links; others at the ports behind it.
const PORT: u16 = 7410;

struct Member {
    links: Option<CacheNode>,
    service: OriginService,
}

/// Nodes that all serve the same documents.
struct World {
    own: Arc<OwnLoopback>,
    runtime: Runtime,
    addresses: Vec<SocketAddr>,
    members: Vec<Member>,
}

fn name(number: usize) -> String {
    format!("n{number}")
}

fn config(number: usize, addresses: &[SocketAddr]) -> CacheNodeConfig {
    let mut config = CacheNodeConfig::new(name(number), addresses[number], key());
    let others = (0..addresses.len()).filter(|other| *other != number);
    config.peers = others.map(|other| CachePeer { name: name(other), address: addresses[other] }).collect();
    config
}

impl World {
    fn new(nodes: usize, change: impl Fn(&mut CacheNodeConfig, &mut OriginConfig)) -> Self {
        let own = Arc::new(OwnLoopback::new());
        let addresses: Vec<_> = (PORT..).take(nodes).map(|port| own.at(port)).collect();
        let mut world =
            Self { own, runtime: Runtime::new().unwrap(), addresses: addresses.clone(), members: Vec::new() };
        for number in 0..nodes {
            world.members.push(start(config(number, &addresses), &change));
        }
        for member in &world.members {
            eventually("links", || member.links.as_ref().unwrap().links_up() == nodes - 1);
        }
        world
    }

    /// Asks a node for a document; returns what its memory had to do with the answer.
    fn get(&self, number: usize, path: &str) -> String {
        let (mut parts, ()) = http::Request::get(path).header("host", "x").body(()).unwrap().into_parts();
        parts.version = http::Version::HTTP_11;
        let service = &self.members[number].service;
        let (cache, body) = self.runtime.block_on(async {
            let response = service.answer(&parts).await;
            assert_eq!(response.status(), 200);
            let cache = response.headers()["x-cache"].to_str().unwrap().to_owned();
            (cache, response.into_body().collect().await.unwrap().to_bytes())
        });
        // As an origin without others has it.
        let alone = OriginService::new(OriginConfig::new(source())).unwrap();
        let expected = self
            .runtime
            .block_on(async { alone.answer(&parts).await.into_body().collect().await.unwrap().to_bytes() });
        assert_eq!((body.len(), &body), (SIZE_BYTES, &expected), "a foreign byte");
        cache
    }

    fn links(&self, number: usize) -> &CacheNode {
        self.members[number].links.as_ref().unwrap()
    }

    /// A path whose home is node 1, as node 0 sees it, with what node 0 got.
    fn first_fetched(&self) -> String {
        (0..100)
            .map(|at| format!("/at{at}"))
            .find(|path| self.get(0, path) == "peer")
            .expect("some have another home")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for links in self.members.iter_mut().filter_map(|member| member.links.take()) {
            links.stop();
        }
    }
}

fn source() -> Source {
    Source::synthetic(Synthetic::fixed(SIZE_BYTES as u64))
}

fn start(mut config: CacheNodeConfig, change: &impl Fn(&mut CacheNodeConfig, &mut OriginConfig)) -> Member {
    let mut origin = OriginConfig::new(source());
    change(&mut config, &mut origin);
    let prepared = PreparedCacheNode::new(config).unwrap();
    origin.peers = Some(prepared.memory());
    let service = OriginService::new(origin).unwrap();
    Member { links: Some(prepared.start().unwrap()), service }
}

#[test]
fn each_document_is_read_from_a_disk_once() {
    for policy in ["lru", "lfu"] {
        let world = World::new(3, |_, origin| policy.clone_into(&mut origin.cache_policy));
        for at in 0..60 {
            for node in 0..3 {
                world.get((node + at) % 3, &format!("/at{at}"));
            }
        }
        let stats: Vec<_> = world.members.iter().map(|member| member.service.stats()).collect();
        assert_eq!(stats.iter().map(|stats| stats.reads).sum::<u64>(), 60, "{stats:?}");
        assert_eq!(stats.iter().map(|stats| stats.from_peers).sum::<u64>(), 120, "{stats:?}");
        // Copies are kept.
        assert!(stats.iter().all(|stats| stats.cache_objects == 60));
        assert_eq!(world.get(0, "/at0"), "hit");
        let sent: u64 = (0..3).map(|node| world.links(node).counts().sent).sum();
        assert_eq!(sent, 120);
    }
}

#[test]
fn without_copies_each_document_is_in_one_memory() {
    let world = World::new(3, |config, _| config.replicate = false);
    for round in 0..2 {
        for at in 0..30 {
            for node in 0..3 {
                let cache = world.get(node, &format!("/at{at}"));
                assert!(round == 0 || cache != "miss", "{cache}");
            }
        }
    }
    let objects: u64 = world.members.iter().map(|member| member.service.stats().cache_objects).sum();
    assert_eq!(objects, 30);
}

#[test]
fn hints_lead_to_who_has_it_and_stale_ones_to_the_disk() {
    let hints = |config: &mut CacheNodeConfig, origin: &mut OriginConfig| {
        config.location = CacheLocation::Hints;
        "lru".clone_into(&mut origin.cache_policy);
        origin.cache_bytes = 4 * SIZE_BYTES as u64;
        config.replicate = false;
    };
    let world = World::new(2, hints);
    assert_eq!(world.get(1, "/a"), "miss");
    eventually("a hint", || {
        world.get(0, "/a") == "peer" || world.members[0].service.stats().cache_objects > 0
    });
    assert_eq!(world.get(1, "/b"), "miss");
    // Only node 1 has had /b: a hint leads there sooner or later, or node 0 has read it itself before the hint came.
    assert!(["peer", "miss"].contains(&&*world.get(0, "/b")));
    for at in 0..8 {
        world.get(1, &format!("/at{at}"));
    }
    // Dropped there: whatever node 0 believes, it gets the document.
    assert!(["miss", "hit"].contains(&&*world.get(0, "/a")));
}

#[test]
fn a_node_that_stops_is_replaced_by_the_disk() {
    let mut world = World::new(2, |config, _| config.replicate = false);
    let path = world.first_fetched();
    world.members[1].links.take().unwrap().stop();
    eventually("a lost link", || world.links(0).links_up() == 0);
    assert_eq!(world.get(0, &path), "miss");
    let again = start(config(1, &world.addresses), &|_: &mut CacheNodeConfig, _: &mut OriginConfig| {});
    world.members[1] = again;
    eventually("a link", || world.links(0).links_up() == 1);
    let others: Vec<_> = (0..50).map(|at| world.get(0, &format!("/new{at}"))).collect();
    assert!(others.iter().any(|cache| cache == "peer"), "it is back");
}

/// Another node as the tests want it.
struct Impostor {
    own: Arc<OwnLoopback>,
    address: SocketAddr,
    thread: JoinHandle<usize>,
}

fn say(stream: &mut TcpStream, keys: &mut Keys, message: &FromHolder<'_>) {
    keys.writer.push(message).unwrap();
    let bytes = keys.writer.finish().to_vec();
    let _ = stream.write_all(&bytes);
    keys.writer.consume(bytes.len());
}

impl Impostor {
    /// Takes one link and handles what is asked by `answer`, until the link ends. Returns how many questions there were.
    fn start(answer: impl Fn(&mut TcpStream, &mut Keys, u64, u64) + Send + 'static) -> Self {
        let own = Arc::new(OwnLoopback::new());
        let address = own.at(PORT + 1);
        let listener = TcpListener::bind(address).unwrap();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = uninterrupted(|| listener.accept()).unwrap();
            drop(listener);
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let terms = AgentTerms { name: "n1".to_owned(), window: 1, most_state_bytes: 0 };
            let mut handshake = AgentHandshake::new(&key(), terms, random().unwrap()).unwrap();
            let mut keys = None;
            let mut buffer = [0; 4096];
            let mut asked = 0;
            loop {
                let count = uninterrupted(|| stream.read(&mut buffer)).unwrap_or(0);
                if count == 0 {
                    return asked;
                }
                let mut bytes = &buffer[..count];
                while keys.is_none() && !bytes.is_empty() {
                    let progress = handshake.feed(bytes, 1).unwrap();
                    bytes = &bytes[progress.consumed..];
                    stream.write_all(&progress.send).unwrap();
                    keys = progress.done.map(|established| established.keys);
                }
                let Some(keys) = &mut keys else { continue };
                keys.reader.feed(bytes);
                while let Some(area) = keys.reader.next_frame().unwrap().map(<[u8]>::to_vec) {
                    for message in messages::<ToHolder<'_>>(&area).map(Result::unwrap) {
                        match message {
                            ToHolder::Ask { ask, size_bytes, .. } => {
                                asked += 1;
                                answer(&mut stream, keys, ask, size_bytes);
                            }
                            ToHolder::Ping { token } => {
                                say(&mut stream, keys, &FromHolder::Pong { token });
                            }
                            ToHolder::Held { .. } | ToHolder::Dropped { .. } => {}
                        }
                    }
                }
            }
        });
        Self { own, address, thread }
    }

    /// A node whose only other one is this.
    fn victim(&self, change: impl Fn(&mut CacheNodeConfig, &mut OriginConfig)) -> World {
        let addresses = vec![self.own.at(PORT), self.address];
        let member = start(config(0, &addresses), &change);
        eventually("a link", || member.links.as_ref().unwrap().links_up() == 1);
        World {
            own: Arc::clone(&self.own),
            runtime: Runtime::new().unwrap(),
            addresses,
            members: vec![member],
        }
    }
}

#[test]
fn a_lie_about_what_was_read_here_is_noticed() {
    // Well made, with the digest of its bytes; but this node has read the document before.
    let lies = Arc::new(AtomicBool::new(false));
    let lying = Arc::clone(&lies);
    let impostor = Impostor::start(move |stream, keys, ask, size_bytes| {
        if lying.load(Ordering::SeqCst) {
            let bytes = vec![b'x'; usize::try_from(size_bytes).unwrap()];
            say(stream, keys, &FromHolder::Document { ask, digest: digest(&bytes), bytes: &bytes });
        } else {
            say(stream, keys, &FromHolder::Absent { ask });
        }
    });
    let world = impostor.victim(|_, origin| origin.cache_bytes = SIZE_BYTES as u64);
    let paths: Vec<_> = (0..40).map(|at| format!("/at{at}")).collect();
    assert!(paths.iter().all(|path| world.get(0, path) == "miss"));
    let asked = world.links(0).counts().asked;
    lies.store(true, Ordering::SeqCst);
    // The memory holds one document, so each is asked for again.
    assert!(paths.iter().all(|path| world.get(0, path) == "miss"));
    let counts = world.links(0).counts();
    assert!(asked > 0 && counts.false_documents == asked && counts.fetched == 0, "{counts:?}");
    drop(world);
    impostor.thread.join().unwrap();
}

/// Opens a link to node 0 as this node; what was sent by frames can be sent again.
fn open_link(world: &World, name: &str, key: &Key) -> Option<(TcpStream, Keys)> {
    // Nodes are known by their address.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&world.own.at(0).into()).unwrap();
    socket.connect(&world.addresses[0].into()).ok()?;
    establish(socket.into(), name, key)
}

#[test]
fn strangers_and_replays_are_refused() {
    let world = World::new(2, |_, _| {});
    let counts = || world.links(0).counts();
    let links = counts().links;
    assert!(open_link(&world, "n1", &Key::new([8; 32])).is_none(), "another key");
    eventually("a refused link", || counts().refused_links == 1);
    let link = open_link(&world, "n7", &key());
    eventually("a refused link", || counts().refused_links == 2);
    drop(link);
    // A frame that is repeated.
    let (mut stream, mut keys) = open_link(&world, "n1", &key()).unwrap();
    keys.writer.push(&ToHolder::Ping { token: 1 }).unwrap();
    let frame = keys.writer.finish().to_vec();
    stream.write_all(&frame).unwrap();
    eventually("a link", || counts().links == links + 1);
    stream.write_all(&frame).unwrap();
    eventually("a broken link", || counts().broken_links == 1);
    assert_eq!(counts().sent, 0);
}

#[test]
fn what_comes_from_memory_elsewhere_does_not_wait_for_the_disk() {
    let slow = |_: &mut CacheNodeConfig, origin: &mut OriginConfig| {
        origin.disk = Some(plimsoll_origin::DiskModel::lard98());
    };
    let world = World::new(2, slow);
    let path = world.first_fetched();
    let reads: Vec<_> = world.members.iter().map(|member| member.service.stats().reads).collect();
    assert_eq!(world.get(1, &path), "hit");
    assert_eq!(world.get(0, &path), "hit");
    let after: Vec<_> = world.members.iter().map(|member| member.service.stats().reads).collect();
    assert_eq!(reads, after, "both have it, and only its home has read it");
}
