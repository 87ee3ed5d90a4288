//! The file server of the study: it stands for the machine from which the paper's nodes mount their documents by NFS.
//!
//! A node that has a document neither in its memory nor, with cooperative caching, from another node asks here over the network
//! of the lab: what it gets comes in by its own link, as in the paper. How fast the server is follows from its link, and from a latency.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use plimsoll_lab::NodeHandle;
use plimsoll_origin::synthetic::{self, Synthetic};
use plimsoll_origin::{OwnMemory, PeerFetch, PeerMemory, SharedDocument};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::ExperimentError;

const PORT: u16 = 2049;
/// From a question until the server begins to send, as in the simulated study.
const LATENCY: Duration = Duration::from_millis(3);
/// After this time a read has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that are made at a time.
const CHUNK_BYTES: usize = 64 << 10;
const LONGEST_NAME_BYTES: usize = 4096;
const LARGEST_BYTES: u64 = 1 << 30;

/// A file server on a thread in a node of the lab.
pub(super) struct FileServer {
    address: SocketAddr,
    is_slow: Arc<AtomicBool>,
    sent_bytes: Arc<AtomicU64>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FileServer {
    /// Serves these documents, at first without any latency.
    pub(super) fn start(node: NodeHandle<'_>, documents: Synthetic) -> Result<Self, ExperimentError> {
        let failed = |e: io::Error| ExperimentError::Failed(format!("cannot start the file server: {e}"));
        let address = SocketAddr::from((node.address(), PORT));
        let listener = node.run(|| std::net::TcpListener::bind(address))?.map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (is_slow, sent_bytes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stop, stopped) = oneshot::channel();
        let shared = (Arc::new(documents), Arc::clone(&is_slow), Arc::clone(&sent_bytes));
        let serve = async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            let accept = async {
                while let Ok((stream, _)) = listener.accept().await {
                    let (documents, is_slow, sent) =
                        (Arc::clone(&shared.0), Arc::clone(&shared.1), Arc::clone(&shared.2));
                    tokio::spawn(async move { answer(stream, &documents, &is_slow, &sent).await });
                }
            };
            tokio::select! {
                () = accept => {}
                _ = stopped => {}
            }
        };
        let thread = std::thread::Builder::new().name("file-server".to_owned());
        let thread = thread.spawn(move || runtime.block_on(serve)).map_err(failed)?;
        Ok(Self { address, is_slow, sent_bytes, stop: Some(stop), thread: Some(thread) })
    }

    /// From now on it takes its time.
    pub(super) fn slow_down(&self) {
        self.is_slow.store(true, Ordering::Relaxed);
    }

    /// Bytes of documents that it has sent.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    /// The files as a node sees them, behind the memory of other nodes if there is one.
    pub(super) fn mount(&self, peers: Option<Arc<dyn PeerMemory>>) -> Arc<MountedFiles> {
        Arc::new(MountedFiles { server: self.address, peers, idle: Arc::default(), counts: Arc::default() })
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Answers one connection until its end: a name behind its length, then the size and the bytes; 0 bytes if there is no such document.
async fn answer(
    mut stream: TcpStream,
    documents: &Synthetic,
    is_slow: &AtomicBool,
    sent: &AtomicU64,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let length = usize::from(stream.read_u16().await?);
        let name = buffer.get_mut(..length).ok_or(io::ErrorKind::InvalidData)?;
        stream.read_exact(name).await?;
        let found = std::str::from_utf8(name).ok().and_then(|name| documents.find(name));
        if is_slow.load(Ordering::Relaxed) {
            tokio::time::sleep(LATENCY).await;
        }
        let size_bytes = found.map_or(0, |document| document.size_bytes);
        stream.write_u64(size_bytes).await?;
        let mut at = 0;
        while let Some(document) = found.filter(|_| at < size_bytes) {
            let chunk =
                &mut buffer[..CHUNK_BYTES.min(usize::try_from(size_bytes - at).unwrap_or(CHUNK_BYTES))];
            synthetic::fill(document.number, at, chunk);
            stream.write_all(chunk).await?;
            at += chunk.len() as u64;
        }
        sent.fetch_add(size_bytes, Ordering::Relaxed);
    }
}

/// What a node has read, and fetched from others.
#[derive(Debug, Default)]
pub(super) struct MountedCounts {
    pub(super) reads: AtomicU64,
    pub(super) fetched: AtomicU64,
    pub(super) failed: AtomicU64,
}

/// The server's files, mounted at a node. All connections belong to the node's only thread.
#[derive(Debug)]
pub(super) struct MountedFiles {
    server: SocketAddr,
    peers: Option<Arc<dyn PeerMemory>>,
    idle: Arc<Mutex<Vec<TcpStream>>>,
    pub(super) counts: Arc<MountedCounts>,
}

impl PeerMemory for MountedFiles {
    fn attach(&self, memory: Arc<dyn OwnMemory>) {
        if let Some(peers) = &self.peers {
            peers.attach(memory);
        }
    }

    fn fetch(&self, document: SharedDocument<'_>) -> PeerFetch {
        let asked = self.peers.as_ref().map(|peers| peers.fetch(document));
        let SharedDocument { name, size_bytes, modified_ns } = document;
        let (name, server, peers) = (name.to_owned(), self.server, self.peers.clone());
        let (idle, counts) = (Arc::clone(&self.idle), Arc::clone(&self.counts));
        Box::pin(async move {
            if let Some(asked) = asked
                && let Some(bytes) = asked.await
            {
                counts.fetched.fetch_add(1, Ordering::Relaxed);
                return Some(bytes);
            }
            counts.reads.fetch_add(1, Ordering::Relaxed);
            let lock = || idle.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = lock().pop();
            let Ok(Ok((stream, bytes))) = timeout(PATIENCE, read(waiting, server, &name)).await else {
                counts.failed.fetch_add(1, Ordering::Relaxed);
                return None;
            };
            lock().push(stream);
            if let Some(peers) = peers {
                peers.read(SharedDocument { name: &name, size_bytes, modified_ns }, &bytes);
            }
            Some(bytes)
        })
    }

    fn replicates(&self) -> bool {
        self.peers.as_ref().is_none_or(|peers| peers.replicates())
    }

    fn read(&self, document: SharedDocument<'_>, bytes: &Bytes) {
        if let Some(peers) = &self.peers {
            peers.read(document, bytes);
        }
    }

    fn held(&self, name: &str) {
        if let Some(peers) = &self.peers {
            peers.held(name);
        }
    }

    fn dropped(&self, name: &str) {
        if let Some(peers) = &self.peers {
            peers.dropped(name);
        }
    }
}

/// Reads a document over this connection, or over a new one.
async fn read(waiting: Option<TcpStream>, server: SocketAddr, name: &str) -> io::Result<(TcpStream, Bytes)> {
    let mut stream = match waiting {
        Some(stream) => stream,
        None => TcpStream::connect(server).await?,
    };
    stream.set_nodelay(true)?;
    let length = u16::try_from(name.len()).ok().filter(|length| usize::from(*length) <= LONGEST_NAME_BYTES);
    let mut question = length.ok_or(io::ErrorKind::InvalidInput)?.to_be_bytes().to_vec();
    question.extend_from_slice(name.as_bytes());
    stream.write_all(&question).await?;
    let size_bytes = stream.read_u64().await?;
    if size_bytes > LARGEST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; usize::try_from(size_bytes).unwrap_or(0)];
    stream.read_exact(&mut bytes).await?;
    Ok((stream, bytes.into()))
}
