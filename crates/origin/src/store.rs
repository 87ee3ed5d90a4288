//! The memory cache with the bodies in it, and the reads that fill it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_cache::{Cache, UnknownCache};
use tokio::sync::{Semaphore, watch};

use super::emulate::{DiskModel, Resource};
use super::object::{ContentError, Object, Version};
use super::peers::PeerMemory;
use super::stats::{Counters, OriginStats};

/// Most files read at the same time. Each takes a thread, and memory for its bytes until they are in the cache.
const READS_AT_ONCE: usize = 32;

/// Where a body came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Served {
    /// It was in memory.
    Hit,
    /// It was read for this request.
    Miss,
    /// It was read for another request, whose read was under way.
    Joined,
    /// It came from another node's memory.
    Peer,
    /// It is streamed and never put into memory as a whole.
    Bypass,
}

/// Why a body could not be fetched.
#[derive(Debug)]
pub(crate) enum FetchError {
    Read(ContentError),
    /// Too many reads wait already.
    Busy,
}

/// Who had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Disk,
    Peer,
}

/// What a read has come to; `None` as long as it is under way.
type Outcome = Option<Result<(Bytes, From), ContentError>>;

/// The memory cache, with the reads that fill it.
pub(crate) struct Store {
    shelf: Mutex<Shelf>,
    /// The largest file that is cached, in bytes.
    limit_bytes: u64,
    disk: Option<(DiskModel, Resource)>,
    readers: Semaphore,
    /// Most reads that wait or run.
    most_reads: usize,
    counters: Arc<Counters>,
    peers: Option<Arc<dyn PeerMemory>>,
}

/// What is in memory, and what is about to come.
struct Shelf {
    cache: Box<dyn Cache>,
    /// The bodies of exactly the objects in `cache`. Looked up only, never iterated.
    bodies: HashMap<u64, Body, FixedState>,
    /// Reads under way. Looked up only, never iterated.
    reads: HashMap<(u64, Version), watch::Receiver<Outcome>, FixedState>,
    evicted: Vec<u64>,
    /// Is told what the memory gets and loses.
    peers: Option<Arc<dyn PeerMemory>>,
}

struct Body {
    version: Version,
    /// As other nodes know it; kept only where there are any.
    name: Option<Box<str>>,
    bytes: Bytes,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("limit_bytes", &self.limit_bytes).finish_non_exhaustive()
    }
}

impl Store {
    /// An empty store. At most `most_reads` reads wait or run at once.
    pub(crate) fn new(
        cache_policy: &str,
        cache_bytes: u64,
        object_limit_bytes: Option<u64>,
        disk: Option<DiskModel>,
        most_reads: usize,
        counters: Arc<Counters>,
    ) -> Result<Self, UnknownCache> {
        let limit_bytes = object_limit_bytes.map_or(cache_bytes, |limit| limit.min(cache_bytes));
        let shelf = Shelf {
            cache: plimsoll_cache::build(cache_policy, cache_bytes, object_limit_bytes)?,
            bodies: HashMap::default(),
            reads: HashMap::default(),
            evicted: Vec::new(),
            peers: None,
        };
        Ok(Self {
            shelf: Mutex::new(shelf),
            limit_bytes,
            disk: disk.map(|model| (model, Resource::default())),
            readers: Semaphore::new(READS_AT_ONCE),
            most_reads,
            counters,
            peers: None,
        })
    }

    /// The same, with the memory of other nodes.
    pub(crate) fn with_peers(mut self, peers: Option<Arc<dyn PeerMemory>>) -> Self {
        self.shelf.get_mut().unwrap_or_else(PoisonError::into_inner).peers.clone_from(&peers);
        self.peers = peers;
        self
    }

    /// Whether files of this size are cached.
    pub(crate) fn takes(&self, size_bytes: u64) -> bool {
        size_bytes <= self.limit_bytes
    }

    /// Bytes that the disk reads at a time when it is emulated.
    pub(crate) fn disk_block_bytes(&self) -> Option<u64> {
        self.disk.as_ref().map(|(model, _)| model.block_bytes.max(1))
    }

    /// Waits until the disk has read one block of a file that is streamed.
    pub(crate) async fn wait_for_block(&self, first: bool, bytes: u64) {
        if let Some((model, queue)) = &self.disk {
            queue.visit(model.block_time(first, bytes)).await;
        }
    }

    /// The body, if it is in memory. The cache counts this as a use.
    pub(crate) fn hit(&self, object: &Object) -> Option<Bytes> {
        self.shelf().hit(object)
    }

    /// The body, from memory, from another node's, or read. When several requests want the same version of an object, the
    /// first starts a read and the others wait for it. A read goes on when its request is given up.
    pub(crate) async fn fetch(self: &Arc<Self>, object: &Arc<Object>) -> Result<(Bytes, Served), FetchError> {
        self.fetch_from(object, self.peers.clone()).await
    }

    /// The same, without other nodes.
    pub(crate) async fn fetch_here(
        self: &Arc<Self>,
        object: &Arc<Object>,
    ) -> Result<(Bytes, Served), FetchError> {
        self.fetch_from(object, None).await
    }

    async fn fetch_from(
        self: &Arc<Self>,
        object: &Arc<Object>,
        peers: Option<Arc<dyn PeerMemory>>,
    ) -> Result<(Bytes, Served), FetchError> {
        let (mut outcome, joined) = {
            let mut shelf = self.shelf();
            if let Some(bytes) = shelf.hit(object) {
                return Ok((bytes, Served::Hit));
            }
            let key = (object.id, object.version);
            if let Some(read) = shelf.reads.get(&key) {
                (read.clone(), true)
            } else if shelf.reads.len() >= self.most_reads {
                return Err(FetchError::Busy);
            } else {
                let (sender, receiver) = watch::channel(None);
                shelf.reads.insert(key, receiver.clone());
                // Under the lock, so that the disk takes reads in the order of their requests.
                let turn = if peers.is_none() { self.turn(object) } else { None };
                let (store, object) = (Arc::clone(self), Arc::clone(object));
                tokio::spawn(async move {
                    match peers {
                        Some(peers) if store.ask(&*peers, &object, &sender).await => return,
                        Some(_) => {
                            if let Some(turn) = store.turn(&object) {
                                turn.await;
                            }
                        }
                        None => {
                            if let Some(turn) = turn {
                                turn.await;
                            }
                        }
                    }
                    store.read(object, &sender).await;
                });
                (receiver, false)
            }
        };
        let result = match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone(),
            Err(_) => None,
        };
        match result {
            Some(Ok((bytes, _))) if joined => Ok((bytes, Served::Joined)),
            Some(Ok((bytes, From::Disk))) => Ok((bytes, Served::Miss)),
            Some(Ok((bytes, From::Peer))) => Ok((bytes, Served::Peer)),
            Some(Err(error)) => Err(FetchError::Read(error)),
            None => Err(FetchError::Read(io::Error::other("the read was given up").into())),
        }
    }

    /// Takes a turn at the emulated disk, which begins now.
    fn turn(&self, object: &Object) -> Option<impl Future<Output = ()> + Send + use<>> {
        self.disk.as_ref().map(|(model, queue)| queue.visit(model.read_time(object.size_bytes)))
    }

    /// Has the document from another node, if one has it.
    async fn ask(&self, peers: &dyn PeerMemory, object: &Object, sender: &watch::Sender<Outcome>) -> bool {
        let Some(document) = object.shared() else { return false };
        let Some(bytes) = peers.fetch(document).await else { return false };
        if bytes.len() as u64 != object.size_bytes {
            return false;
        }
        let mut shelf = self.shelf();
        shelf.reads.remove(&(object.id, object.version));
        if peers.replicates() {
            shelf.put(object, &bytes);
        }
        drop(shelf);
        sender.send_replace(Some(Ok((bytes, From::Peer))));
        true
    }

    async fn read(&self, object: Arc<Object>, sender: &watch::Sender<Outcome>) {
        self.counters.reads.add(1);
        // The semaphore is never closed, so this is a permit. It is held until the bytes are in the cache.
        let _permit = self.readers.acquire().await;
        let to_read = Arc::clone(&object);
        let read = tokio::task::spawn_blocking(move || to_read.read_whole()).await;
        let result = read.unwrap_or_else(|error| Err(io::Error::other(error).into()));
        if let (Ok(bytes), Some(peers), Some(document)) = (&result, &self.peers, object.shared()) {
            peers.read(document, bytes);
        }
        let mut shelf = self.shelf();
        shelf.reads.remove(&(object.id, object.version));
        if let Ok(bytes) = &result {
            shelf.put(&object, bytes);
        }
        drop(shelf);
        sender.send_replace(Some(result.map(|bytes| (bytes, From::Disk))));
    }

    /// The counts so far, and how much is in memory.
    pub(crate) fn stats(&self) -> OriginStats {
        let (used_bytes, objects) = {
            let shelf = self.shelf();
            (shelf.cache.used_bytes(), shelf.cache.len() as u64)
        };
        self.counters.snapshot(used_bytes, objects)
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn hit(&mut self, object: &Object) -> Option<Bytes> {
        let body = self.bodies.get(&object.id)?;
        if body.version != object.version {
            self.cache.remove(object.id);
            self.forget(object.id);
            return None;
        }
        self.cache.access(object.id);
        Some(body.bytes.clone())
    }

    fn put(&mut self, object: &Object, bytes: &Bytes) {
        let (id, version) = (object.id, object.version);
        // Removed first, because the cache tells versions apart by size alone.
        if self.bodies.get(&id).is_some_and(|body| body.version != version) {
            self.cache.remove(id);
            self.forget(id);
        }
        if self.cache.insert(id, object.size_bytes, &mut self.evicted) {
            let name = self.peers.as_ref().and(object.shared_name.clone());
            if let (Some(peers), Some(name)) = (&self.peers, &name) {
                peers.held(name);
            }
            self.bodies.insert(id, Body { version, name, bytes: bytes.clone() });
        }
        for id in std::mem::take(&mut self.evicted) {
            self.forget(id);
        }
    }

    /// Drops the body of an object that the cache has no more.
    fn forget(&mut self, id: u64) {
        let body = self.bodies.remove(&id);
        if let (Some(peers), Some(name)) = (&self.peers, body.and_then(|body| body.name)) {
            peers.dropped(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(policy: &str, cache_bytes: u64) -> Arc<Store> {
        let counters = Arc::new(Counters::default());
        Arc::new(Store::new(policy, cache_bytes, None, None, 100, counters).unwrap())
    }

    /// What is in memory is what the cache says, and no more than there is room for.
    fn check(store: &Store) {
        let shelf = store.shelf();
        assert!(shelf.cache.used_bytes() <= shelf.cache.capacity_bytes());
        assert_eq!(shelf.cache.len(), shelf.bodies.len());
        let held: usize = shelf.bodies.values().map(|body| body.bytes.len()).sum();
        assert_eq!(held as u64, shelf.cache.used_bytes());
    }

    #[tokio::test]
    async fn hits_are_those_of_the_cache_alone() {
        for spec in plimsoll_cache::REGISTRY {
            let store = store(spec.name, 10_000);
            let mut alone = plimsoll_cache::build(spec.name, 10_000, None).unwrap();
            let mut seed = 1u64;
            for step in 0..3000 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let number = (seed >> 33) % 40;
                let size_bytes = 1 + number * number % 997;
                let object = Arc::new(Object::generated("/", number, size_bytes));
                let (bytes, served) = store.fetch(&object).await.unwrap();
                assert_eq!(bytes.len() as u64, size_bytes);
                let hit = alone.request(number, size_bytes, &mut Vec::new());
                assert_eq!(served == Served::Hit, hit, "{} step {step}", spec.name);
                check(&store);
            }
            assert!(!store.takes(10_001));
        }
    }

    #[tokio::test]
    async fn another_version_replaces_the_one_in_memory() {
        let store = store("lru", 1000);
        let get = async |number, size_bytes| {
            let object = Arc::new(Object::generated("/", number, size_bytes));
            let (bytes, served) = store.fetch(&object).await.unwrap();
            check(&store);
            (bytes.len(), served)
        };
        assert_eq!(get(1, 100).await, (100, Served::Miss));
        assert_eq!(get(1, 100).await, (100, Served::Hit));
        assert_eq!(get(1, 200).await, (200, Served::Miss));
        assert_eq!(get(1, 200).await, (200, Served::Hit));
        assert_eq!(store.stats().cache_used_bytes, 200);
    }

    #[tokio::test]
    async fn waiting_reads_are_bounded() {
        let counters = Arc::new(Counters::default());
        let store = Store::new("lru", 1000, None, Some(DiskModel::lard98()), 2, counters).unwrap();
        let store = Arc::new(store);
        let objects: Vec<_> = (0..3).map(|n| Arc::new(Object::generated("/", n, 10))).collect();
        let first: Vec<_> = objects[..2]
            .iter()
            .map(|object| {
                let (store, object) = (Arc::clone(&store), Arc::clone(object));
                tokio::spawn(async move { store.fetch(&object).await.map(|(_, served)| served) })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(matches!(store.fetch(&objects[2]).await, Err(FetchError::Busy)));
        for task in first {
            assert_eq!(task.await.unwrap().unwrap(), Served::Miss);
        }
        assert_eq!(store.fetch(&objects[2]).await.unwrap().1, Served::Miss);
    }
}
