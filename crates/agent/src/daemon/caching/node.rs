//! Starts and stops the thread that has the links.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use plimsoll_origin::{OwnMemory, PeerMemory};
use plimsoll_wire::caching::{ToHolder, name_number};
use tokio::sync::mpsc::{Receiver, channel, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::spawn_local;

use super::super::accepting::{accept_links, serve_links};
use super::super::config::AgentError;
use super::super::setup::listen;
use super::super::spawn::{spawn_with_runtime, told_to_stop};
use super::asking::AskingLink;
use super::config::{CacheLocation, CacheNodeConfig};
use super::counters::{CacheCounters, CacheCounts};
use super::holding;
use super::memory::{CacheWork, Fetched, Memory};
use super::place::CachePlaces;
use super::state::CacheState;

/// Most questions and hints that wait for the thread.
const MOST_WORK: usize = 16_384;
/// Links that a node may have here at once: a new one while an old one is not yet known to be lost.
const LINKS_PER_PEER: usize = 4;
/// Most hints that go out together.
const MOST_TOGETHER: usize = 1024;

/// A node whose listener is bound and which has no thread yet, so that the process can give its privileges away.
#[derive(Debug)]
pub struct PreparedCacheNode {
    config: CacheNodeConfig,
    listener: TcpListener,
    memory: Arc<Memory>,
    work: Receiver<CacheWork>,
    own: Arc<OnceLock<Arc<dyn OwnMemory>>>,
    counters: Arc<CacheCounters>,
}

/// A node that fetches documents from others, and sends them its own.
#[derive(Debug)]
pub struct CacheNode {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
    counters: Arc<CacheCounters>,
    links_up: Arc<AtomicUsize>,
}

/// The thread's state, and its links.
struct CacheThread {
    state: Rc<CacheState>,
    links: Vec<Rc<AskingLink>>,
}

impl PreparedCacheNode {
    /// Listens.
    ///
    /// # Errors
    /// When the configuration is invalid, or the address cannot be listened on.
    pub fn new(config: CacheNodeConfig) -> Result<Self, AgentError> {
        config.check()?;
        let address = config.listen;
        let listener = listen(address).map_err(|error| AgentError::Listen { address, error })?;
        let (sender, work) = channel(MOST_WORK);
        let own = Arc::new(OnceLock::new());
        let counters = Arc::new(CacheCounters::default());
        let memory = Arc::new(Memory::new(&config, sender, Arc::clone(&own), Arc::clone(&counters)));
        Ok(Self { config, listener, memory, work, own, counters })
    }

    /// The memory of the other nodes, for the settings of an origin.
    #[must_use]
    pub fn memory(&self) -> Arc<dyn PeerMemory> {
        Arc::<Memory>::clone(&self.memory)
    }

    /// Takes and opens links.
    ///
    /// # Errors
    /// When the system provides no thread.
    pub fn start(self) -> Result<CacheNode, AgentError> {
        let Self { config, listener, work, own, counters, .. } = self;
        let address =
            listener.local_addr().map_err(|error| AgentError::Listen { address: config.listen, error })?;
        let links_up = Arc::new(AtomicUsize::new(0));
        let (stop, stopped) = oneshot::channel();
        let (counted, up) = (Arc::clone(&counters), Arc::clone(&links_up));
        let run = move || async move {
            let names = config.peers.iter().map(|peer| peer.name.as_str());
            let places = CachePlaces::new(config.location, &config.name, names);
            let links = (0..config.peers.len()).map(|peer| Rc::new(AskingLink::new(peer))).collect();
            let state = Rc::new(CacheState::new(config, places, own, (counted, up)));
            let thread = CacheThread { state, links };
            tokio::select! {
                () = thread.run(listener, work) => {}
                () = told_to_stop(stopped) => {}
            }
        };
        let thread = spawn_with_runtime("agent-caching".to_owned(), run)?;
        Ok(CacheNode { address, stop, thread, counters, links_up })
    }
}

impl CacheThread {
    async fn run(&self, listener: TcpListener, work: Receiver<CacheWork>) {
        for link in &self.links {
            spawn_local(Rc::clone(link).keep(Rc::clone(&self.state)));
        }
        let (sender, accepted) = unbounded_channel();
        let most = self.state.config.peers.len() * LINKS_PER_PEER;
        let senders = [sender];
        let accept = accept_links(&*self.state, listener, most, &senders);
        let serve =
            serve_links(accepted, |stream, source| holding::serve(Rc::clone(&self.state), stream, source));
        tokio::join!(accept, serve, self.work(work));
    }

    async fn work(&self, mut work: Receiver<CacheWork>) {
        let mut together = Vec::new();
        while work.recv_many(&mut together, MOST_TOGETHER).await > 0 {
            let (mut held, mut dropped) = (BTreeSet::new(), BTreeSet::new());
            for item in together.drain(..) {
                match item {
                    CacheWork::Fetch(wanted, sender) => self.fetch(&wanted, sender),
                    CacheWork::Held(number) => {
                        dropped.remove(&number);
                        held.insert(number);
                    }
                    CacheWork::Dropped(number) => {
                        held.remove(&number);
                        dropped.insert(number);
                    }
                }
            }
            if self.state.config.location == CacheLocation::Hints {
                self.tell(held, dropped);
            }
        }
    }

    fn fetch(&self, wanted: &super::memory::Wanted, sender: oneshot::Sender<Fetched>) {
        let number = name_number(&wanted.name);
        let is_up = |peer: usize| self.links.get(peer).is_some_and(|link| link.is_up());
        let place = self.state.places.borrow().of(number, is_up);
        match place.and_then(|peer| self.links.get(peer)) {
            Some(link) => {
                self.state.counters.asked.add();
                link.ask(wanted, self.state.config.location == CacheLocation::Hints, sender);
            }
            None => drop(sender.send(Fetched::Absent)),
        }
    }

    fn tell(&self, held: BTreeSet<u64>, dropped: BTreeSet<u64>) {
        let mut all = self.state.held.borrow_mut();
        all.extend(&held);
        all.retain(|number| !dropped.contains(number));
        let dropped = ToHolder::Dropped { numbers: dropped.into_iter().collect() };
        let held = ToHolder::Held { numbers: held.into_iter().collect() };
        for link in &self.links {
            for message in [&held, &dropped] {
                if !matches!(message, ToHolder::Held { numbers } | ToHolder::Dropped { numbers } if numbers.is_empty())
                {
                    link.tell(message);
                }
            }
        }
    }
}

impl CacheNode {
    /// Where it takes links, with the real port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many other nodes can be asked.
    #[must_use]
    pub fn links_up(&self) -> usize {
        self.links_up.load(Ordering::Relaxed)
    }

    /// What it has counted so far.
    #[must_use]
    pub fn counts(&self) -> CacheCounts {
        self.counters.snapshot()
    }

    /// Closes all links. The origin reads from its disk then.
    pub fn stop(self) -> CacheCounts {
        let _ = self.stop.send(());
        if self.thread.join().is_err() {
            tracing::error!("the thread that fetches documents has failed");
        }
        self.counters.snapshot()
    }
}
