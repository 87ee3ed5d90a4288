//! Clients that choose by the client library: processes of their own, and eight agents with servers.
//!
//! The test starts itself as a client: the library has no program.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_client::{Endpoint, LoadPolling, RetryBudget, ServiceAccess, ServiceClient};
use plimsoll_testkit::{eventually, is_stopped};
use plimsoll_wire::Key;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::load_information::{KEY, KeyFile, Told};

const SERVERS: usize = 8;
/// Accesses of a client before and after the trouble.
const CALLS: u64 = 300;
const TASKS: u64 = 4;
/// Addresses of the servers and their agents, in a process that is a client.
const CLIENT_OF: &str = "PLIMSOLL_TEST_CLIENT_OF";
const TEST: &str = "live::client_processes::two_clients_lose_no_call_to_agents_that_stop_and_die";

/// A stopped server takes connections and does not answer them.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

async fn get(endpoint: Endpoint) -> io::Result<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(endpoint.address()).await?;
        stream.write_all(b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        match answer.starts_with(b"HTTP/1.1 200 ") {
            true => Ok(endpoint.name().to_owned()),
            false => Err(io::Error::other("no answer")),
        }
    };
    tokio::time::timeout(ANSWER_WITHIN, exchange).await?
}

/// Makes accesses until `is_over`, and [`CALLS`] more; tells which servers answered how many of these.
async fn call_all(client: &ServiceClient, is_over: &Arc<AtomicBool>) -> Value {
    let served: Arc<Vec<AtomicU64>> = Arc::new((0..SERVERS).map(|_| AtomicU64::new(0)).collect());
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (client, served, is_over) = (client.clone(), Arc::clone(&served), Arc::clone(is_over));
            tokio::spawn(async move {
                let call = || client.call(ServiceAccess::to("").repeatable(), get);
                while !is_over.load(Ordering::Relaxed) {
                    // It counts itself.
                    let _ = call().await;
                }
                for _ in 0..CALLS / TASKS {
                    let answered = call().await;
                    if let Some(number) = answered.ok().and_then(|name| name[1..].parse::<usize>().ok()) {
                        served[number].fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let (counts, asked) = (client.counts(), client.ask_counts());
    let served: Vec<u64> = served.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    json!({
        "served": served, "calls": counts.calls, "attempts": counts.attempts, "retries": counts.retries,
        "denied": counts.denied, "failed": counts.failed, "answers": asked.taken, "discarded": asked.discarded,
    })
}

/// A client: tells on its standard output what it did before the trouble, goes on until it reads a line, and tells what it did after.
#[tokio::main(flavor = "current_thread")]
async fn be_client(servers: &str) {
    let endpoints = servers.split(' ').enumerate().map(|(number, pair)| {
        let (server, agent) = pair.split_once('=').unwrap();
        Endpoint::new(format!("b{number}"), server.parse().unwrap())
            .with_load_address(agent.parse::<SocketAddr>().unwrap())
    });
    let client = ServiceClient::builder()
        .service("image_store")
        .policy("random_polling:size=3")
        .load_polling(LoadPolling::new(Key::new(KEY)))
        .endpoints(endpoints)
        .budget(RetryBudget { share: 0.5, least_per_s: 100.0 })
        .build()
        .unwrap();
    let is_over = Arc::new(AtomicBool::new(true));
    println!("told: {}", call_all(&client, &is_over).await);
    is_over.store(false, Ordering::Relaxed);
    let told = Arc::clone(&is_over);
    std::thread::spawn(move || {
        io::stdin().read_line(&mut String::new()).unwrap();
        told.store(true, Ordering::Relaxed);
    });
    println!("told: {}", call_all(&client, &is_over).await);
}

/// A client in a process of its own.
struct ClientProcess {
    child: Child,
    lines: io::Lines<BufReader<ChildStdout>>,
}

impl ClientProcess {
    fn start(servers: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env(CLIENT_OF, servers)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn told(&mut self) -> Value {
        let told = self.lines.by_ref().find_map(|line| {
            let line = line.unwrap();
            line.split_once("told: ").map(|(_, json)| serde_json::from_str(json).unwrap())
        });
        told.expect("the client has failed")
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn count(told: &Value, name: &str) -> u64 {
    told[name].as_u64().unwrap()
}

fn served(told: &Value) -> Vec<u64> {
    told["served"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect()
}

#[test]
fn two_clients_lose_no_call_to_agents_that_stop_and_die() {
    if let Some(servers) = std::env::var_os(CLIENT_OF) {
        be_client(servers.to_str().unwrap());
        return;
    }
    let key = KeyFile::new();
    let mut agents: Vec<Told> = (0..SERVERS).map(|n| Told::start(&key, &format!("b{n}"), &[])).collect();
    let pairs: Vec<String> = agents.iter().map(|agent| format!("{}={}", agent.origin, agent.load)).collect();
    let mut clients: Vec<ClientProcess> = (0..2).map(|_| ClientProcess::start(&pairs.join(" "))).collect();
    for client in &mut clients {
        let told = client.told();
        assert_eq!((count(&told, "calls"), count(&told, "failed")), (CALLS, 0), "{told}");
        assert!(served(&told).iter().all(|count| *count > 0), "{told}");
        assert!(count(&told, "answers") >= 2 * CALLS, "{told}");
        println!("before: {told}");
    }
    // All in the midst of calls.
    agents[0].process.signal("-STOP");
    eventually("it is stopped", || is_stopped(agents[0].process.pid()));
    agents[1].process.kill();
    clients.iter_mut().for_each(ClientProcess::go_on);
    for client in &mut clients {
        let told = client.told();
        println!("after: {told}");
        assert!(count(&told, "calls") >= 2 * CALLS, "{told}");
        assert_eq!((count(&told, "failed"), count(&told, "denied")), (0, 0), "{told}");
        assert_eq!(count(&told, "attempts"), count(&told, "calls") + count(&told, "retries"), "{told}");
        assert!(count(&told, "discarded") > 0, "{told}");
        let served = served(&told);
        assert_eq!((served[0], served[1], served.iter().sum()), (0, 0, CALLS), "{told}");
    }
    agents[0].process.signal("-CONT");
}
