//! Requests that must not be carried out twice, while back-ends die.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_testbed::load::{OpenLoop, Req, open_loop};
use plimsoll_testkit::{OwnLoopback, Why, pace, pace_async};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::processes::{FrontEnd, run};

type Executed = Arc<Mutex<BTreeMap<String, u32>>>;

/// A back-end that counts how often each POST is carried out; all its sockets close when it is killed.
struct Counting {
    address: SocketAddr,
    executed: Executed,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Counting {
    fn start(address: SocketAddr, executed: &Executed) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind(address)).unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::clone(executed);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&counts)));
            }
        });
        Self { address, executed: Arc::clone(executed), runtime: Some(runtime) }
    }

    fn kill(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }

    fn restart(&mut self) {
        *self = Self::start(self.address, &self.executed);
    }
}

async fn answer(mut stream: TcpStream, executed: Executed) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            stream.read_buf(&mut bytes).await.ok().filter(|&n| n > 0)?;
        };
        let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let length: usize = head
            .lines()
            .find_map(|l| l.strip_prefix("Content-Length: "))
            .map_or(0, |length| length.parse().unwrap());
        while bytes.len() < end + length {
            stream.read_buf(&mut bytes).await.ok().filter(|&n| n > 0)?;
        }
        if head.starts_with("POST ") {
            *executed.lock().unwrap().entry(head.split(' ').nth(1)?.to_owned()).or_default() += 1;
        }
        bytes.drain(..end + length);
        // Long enough for some to be under way when the process dies.
        pace_async(Duration::from_millis(3), Why::SlowPeer).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.ok()?;
    }
}

#[test]
fn no_post_is_carried_out_twice_and_only_those_under_way_fail() {
    const RATE_RPS: f64 = 1000.0;
    let executed = Executed::default();
    let own = OwnLoopback::new();
    let mut backends: Vec<Counting> =
        (8000..8004).map(|port| Counting::start(own.at(port), &executed)).collect();
    let addresses: Vec<_> = backends.iter().map(|b| b.address).collect();
    let mut front_end = FrontEnd::start(&addresses, "");
    let load = OpenLoop {
        rate_rps: RATE_RPS,
        seconds: 10.0,
        connections: 64,
        ..OpenLoop::new(front_end.address, |n| Req::post(format!("/{n}"), "body"))
    };
    let thread = std::thread::spawn(move || {
        for backend in &mut backends {
            pace(Duration::from_millis(1000), Why::UnderLoad);
            backend.kill();
            pace(Duration::from_millis(1000), Why::UnderLoad);
            backend.restart();
        }
        // They live until the load is over.
        backends
    });
    let summary = run(open_loop(load));
    drop(thread.join().unwrap());
    front_end.stop();
    let executed = executed.lock().unwrap();
    let twice: Vec<_> = executed.iter().filter(|&(_, &n)| n > 1).collect();
    assert!(twice.is_empty(), "carried out more than once: {twice:?}");
    assert_eq!(summary.requests, 10_000);
    assert!(executed.len() as u64 >= summary.succeeded);
    // Four kills; about four requests are under way at a back-end at any time, more when the machine is busy.
    let failed = summary.requests - summary.succeeded;
    println!("{failed} of 10,000 failed: {:?} {:?}", summary.failures, summary.statuses);
    assert!(failed <= 4 * 64, "{failed} failed: {:?} {:?}", summary.failures, summary.statuses);
    let bad_gateway = summary.statuses.get(&502).copied().unwrap_or(0);
    assert_eq!(
        failed, bad_gateway,
        "only what was under way fails: {:?} {:?}",
        summary.failures, summary.statuses
    );
}
