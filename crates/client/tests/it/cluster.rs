//! Eight servers, each with a pool of workers that sleep, and a responder for load inquiries.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_client::{
    Endpoint, Key, LoadGauge, LoadPolling, LoadResponder, PoolSizes, WorkerPool, WorkerPoolError,
};
use plimsoll_testkit::{Why, pace};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const LOCALHOST: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub(crate) fn key() -> Key {
    Key::new([9; 32])
}

/// Asks, and is patient: what does not answer within this time is stopped.
pub(crate) fn polling() -> LoadPolling {
    LoadPolling::new(key())
}

/// A server: every connection is one access, which takes a worker a millisecond.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) served: Arc<AtomicU64>,
    responder: Option<LoadResponder>,
    load_address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
    killed: Arc<AtomicBool>,
}

impl Server {
    pub(crate) async fn start(name: &str) -> Self {
        let listener = TcpListener::bind(LOCALHOST).await.unwrap();
        let address = listener.local_addr().unwrap();
        let gauge = LoadGauge::new();
        let responder = LoadResponder::start(LOCALHOST, &key(), gauge.clone()).unwrap();
        let load_address = responder.address();
        let pool = Arc::new(WorkerPool::new(PoolSizes { workers: 2, queue: 100 }, gauge).unwrap());
        let (served, killed) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let task = tokio::spawn(serve(listener, pool, Arc::clone(&served), Arc::clone(&killed)));
        let responder = Some(responder);
        Self { name: name.to_owned(), address, served, responder, load_address, task, killed }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(&self.name, self.address).with_load_address(self.load_address)
    }

    pub(crate) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Inquiries are not answered any more, as by a process that is stopped.
    pub(crate) fn stop_answering(&mut self) {
        self.responder = None;
    }

    /// Connections that come are refused, and those that are there closed without an answer.
    pub(crate) fn kill(&mut self) {
        self.killed.store(true, Ordering::Relaxed);
        self.task.abort();
        self.responder = None;
    }
}

async fn serve(
    listener: TcpListener,
    pool: Arc<WorkerPool>,
    served: Arc<AtomicU64>,
    killed: Arc<AtomicBool>,
) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        let (pool, served, killed) = (Arc::clone(&pool), Arc::clone(&served), Arc::clone(&killed));
        tokio::spawn(async move {
            let mut asked = [0; 1];
            if stream.read_exact(&mut asked).await.is_err() {
                return;
            }
            let work = pool.run(|| pace(Duration::from_millis(1), Why::SlowPeer)).await;
            if killed.load(Ordering::Relaxed) {
                return;
            }
            let answer = if work == Err(WorkerPoolError::Full) { b'-' } else { b'+' };
            served.fetch_add(1, Ordering::Relaxed);
            // Who asked may have gone away.
            drop(stream.write_all(&[answer]).await);
        });
    }
}

/// Eight of them.
pub(crate) async fn eight() -> Vec<Server> {
    let mut servers = Vec::new();
    for number in 0..8 {
        servers.push(Server::start(&format!("server-{number}")).await);
    }
    servers
}

pub(crate) fn endpoints(servers: &[Server]) -> Vec<Endpoint> {
    servers.iter().map(Server::endpoint).collect()
}

/// One access by TCP.
pub(crate) async fn ask(endpoint: Endpoint) -> io::Result<()> {
    let mut stream = TcpStream::connect(endpoint.address()).await?;
    stream.write_all(b"?").await?;
    let mut answer = [0; 1];
    stream.read_exact(&mut answer).await?;
    match answer {
        [b'+'] => Ok(()),
        _ => Err(io::Error::other("refused")),
    }
}
