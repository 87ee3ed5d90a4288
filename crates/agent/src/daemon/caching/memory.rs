//! Other nodes' memory, as the origin sees it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_cache::{Cache, Lru};
use plimsoll_origin::{OwnMemory, PeerFetch, PeerMemory, SharedDocument};
use plimsoll_wire::caching::{DIGEST_BYTES, MOST_NAME_BYTES, digest, name_number};
use tokio::sync::mpsc::{Sender, error::TrySendError};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::counters::CacheCounters;

/// Most documents whose digests are remembered.
const MOST_DIGESTS: u64 = 1 << 16;

/// For the thread with the links.
#[derive(Debug)]
pub(super) enum CacheWork {
    Fetch(Wanted, oneshot::Sender<Fetched>),
    Held(u64),
    Dropped(u64),
}

/// A document that is wanted.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) size_bytes: u64,
    pub(super) modified_ns: i128,
}

impl Wanted {
    pub(super) fn shared(&self) -> SharedDocument<'_> {
        SharedDocument { name: &self.name, size_bytes: self.size_bytes, modified_ns: self.modified_ns }
    }
}

/// What came of a question.
#[derive(Debug)]
pub(super) enum Fetched {
    Document {
        bytes: Bytes,
        digest: [u8; DIGEST_BYTES],
    },
    /// The disk is to be read: this node is the home, no node is known to have it, or the one asked has it not.
    Absent,
    /// The link was lost.
    Lost,
}

/// What was read from the disk here.
struct Digests {
    known: HashMap<u64, (u64, i128, [u8; DIGEST_BYTES]), FixedState>,
    order: Lru,
    evicted: Vec<u64>,
}

/// See the module's documentation.
pub(super) struct Memory {
    work: Sender<CacheWork>,
    own: Arc<OnceLock<Arc<dyn OwnMemory>>>,
    counters: Arc<CacheCounters>,
    digests: Arc<Mutex<Digests>>,
    replicate: bool,
    fetch_timeout: Duration,
    document_bytes: u64,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("replicate", &self.replicate).finish_non_exhaustive()
    }
}

impl Memory {
    pub(super) fn new(
        config: &super::CacheNodeConfig,
        work: Sender<CacheWork>,
        own: Arc<OnceLock<Arc<dyn OwnMemory>>>,
        counters: Arc<CacheCounters>,
    ) -> Self {
        let digests =
            Digests { known: HashMap::default(), order: Lru::new(MOST_DIGESTS, None), evicted: Vec::new() };
        Self {
            work,
            own,
            counters,
            digests: Arc::new(Mutex::new(digests)),
            replicate: config.replicate,
            fetch_timeout: config.fetch_timeout,
            document_bytes: config.document_bytes as u64,
        }
    }

    fn hint(&self, hint: CacheWork) {
        if matches!(self.work.try_send(hint), Err(TrySendError::Full(_))) {
            self.counters.hints_dropped.add();
        }
    }
}

fn lock(digests: &Mutex<Digests>) -> MutexGuard<'_, Digests> {
    digests.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Digests {
    fn put(&mut self, document: SharedDocument<'_>, bytes: &[u8]) {
        let number = name_number(document.name);
        self.order.request(number, 1, &mut self.evicted);
        for old in self.evicted.drain(..) {
            self.known.remove(&old);
        }
        self.known.insert(number, (document.size_bytes, document.modified_ns, digest(bytes)));
    }

    /// Whether what came is the document, as far as this node can tell.
    fn agree(&self, document: SharedDocument<'_>, found: &[u8; DIGEST_BYTES]) -> bool {
        self.known.get(&name_number(document.name)).is_none_or(|(size_bytes, modified_ns, digest)| {
            (*size_bytes, *modified_ns) != (document.size_bytes, document.modified_ns) || digest == found
        })
    }
}

impl PeerMemory for Memory {
    fn attach(&self, memory: Arc<dyn OwnMemory>) {
        let _ = self.own.set(memory);
    }

    fn fetch(&self, document: SharedDocument<'_>) -> PeerFetch {
        if document.size_bytes > self.document_bytes || document.name.len() > MOST_NAME_BYTES {
            return Box::pin(std::future::ready(None));
        }
        let SharedDocument { name, size_bytes, modified_ns } = document;
        let wanted = Wanted { name: name.to_owned(), size_bytes, modified_ns };
        let (sender, receiver) = oneshot::channel();
        if self.work.try_send(CacheWork::Fetch(wanted.clone(), sender)).is_err() {
            return Box::pin(std::future::ready(None));
        }
        let (counters, digests) = (Arc::clone(&self.counters), Arc::clone(&self.digests));
        let limit = self.fetch_timeout;
        Box::pin(async move {
            match timeout(limit, receiver).await {
                Ok(Ok(Fetched::Document { bytes, digest: told })) => {
                    let found = digest(&bytes);
                    let good = bytes.len() as u64 == wanted.size_bytes
                        && found == told
                        && lock(&digests).agree(wanted.shared(), &found);
                    if good {
                        counters.fetched.add();
                    } else {
                        counters.false_documents.add();
                    }
                    good.then_some(bytes)
                }
                Ok(Ok(Fetched::Absent)) => None,
                Ok(Ok(Fetched::Lost) | Err(_)) => {
                    counters.lost.add();
                    None
                }
                Err(_) => {
                    counters.timed_out.add();
                    None
                }
            }
        })
    }

    fn replicates(&self) -> bool {
        self.replicate
    }

    fn read(&self, document: SharedDocument<'_>, bytes: &Bytes) {
        if document.size_bytes <= self.document_bytes {
            lock(&self.digests).put(document, bytes);
        }
    }

    fn held(&self, name: &str) {
        self.hint(CacheWork::Held(name_number(name)));
    }

    fn dropped(&self, name: &str) {
        self.hint(CacheWork::Dropped(name_number(name)));
    }
}
