//! What the emulator of a link costs: throughput and round trips on a lab's link without it, with it and no delay, and with a
//! delay of 10 ms. Needs root: `cargo run --release -p plimsoll-lab --example link_cost [SECONDS]`.
//!
//! Times are of the whole way through the kernel, as programs see them.

use std::error::Error;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use plimsoll_lab::{Conditions, Lab, LabConfig, Node, cpu_time_of_others};

/// Size of a request and of its answer.
const REQUEST_BYTES: usize = 100;
/// Connections with one request at a time each, where there are several.
const CONNECTIONS: usize = 16;
const DELAY: Duration = Duration::from_millis(10);

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(3.0), |text| text.parse())?;
    let time = Duration::from_secs_f64(seconds.clamp(0.1, 60.0));
    let lab = Lab::build(&LabConfig { backends: 1, ..LabConfig::default() })?;
    let others = cpu_time_of_others()?;
    let began = Instant::now();
    println!("{:<34} {:>12} {:>12}", "", "without", "emulator");
    let plain = measure(&lab, time)?;
    lab.link(Node::Client)?.set(&Conditions::delayed(Duration::ZERO))?;
    let emulated = measure(&lab, time)?;
    let row = |name: &str, show: fn(&Cost) -> String| {
        println!("{name:<34} {:>12} {:>12}", show(&plain), show(&emulated));
    };
    row("TCP stream to the client", |c| format!("{:.2} Gbit/s", c.to_client_gbit_s));
    row("TCP stream from the client", |c| format!("{:.2} Gbit/s", c.from_client_gbit_s));
    row("  CPU of the emulator's thread", |c| format!("{:.0} %", 100.0 * c.thread_cpus));
    row("requests/s, 1 connection", |c| format!("{:.0}", c.requests_s));
    row("requests/s, 16 connections", |c| format!("{:.0}", c.parallel_requests_s));
    row("datagram there and back, median", |c| micros(c.trips.at(0.5)));
    row("datagram there and back, 99 %", |c| micros(c.trips.at(0.99)));
    let added = |share| (emulated.trips.at(share).saturating_sub(plain.trips.at(share))) / 2;
    println!("added in one direction, median {}, 99 % {}", micros(added(0.5)), micros(added(0.99)));

    // Counts begin anew.
    lab.link(Node::Client)?.clear()?;
    lab.link(Node::Client)?.set(&Conditions::delayed(DELAY))?;
    let trips = trips(&lab, time)?;
    let late = |share| trips.at(share).saturating_sub(2 * DELAY) / 2;
    let of_plain = plain.trips.at(0.5) / 2;
    println!(
        "10 ms each way: a datagram arrives {} late at the median, {} at 99 % (of which {} without emulator)",
        micros(late(0.5)),
        micros(late(0.99)),
        micros(of_plain)
    );
    let statistics = lab.link(Node::Client)?.statistics()?.ok_or("no statistics")?;
    for (name, direction) in [("from", statistics.from_node), ("to", statistics.to_node)] {
        println!(
            "frames {name} the client, by the emulator's clock: {}, late by {} at the median, {} at 99 %, \
             {} dropped",
            direction.frames,
            micros(direction.lateness.median),
            micros(direction.lateness.p99),
            direction.missed + direction.overflowed + direction.undeliverable
        );
    }
    let others = cpu_time_of_others()?.saturating_sub(others).as_secs_f64() / began.elapsed().as_secs_f64();
    println!("other programs used {others:.2} CPUs meanwhile");
    Ok(())
}

fn micros(time: Duration) -> String {
    format!("{:.0} µs", 1e6 * time.as_secs_f64())
}

/// What was measured on a link.
struct Cost {
    to_client_gbit_s: f64,
    from_client_gbit_s: f64,
    thread_cpus: f64,
    requests_s: f64,
    parallel_requests_s: f64,
    trips: Trips,
}

/// Times of round trips, in order.
struct Trips(Vec<Duration>);

impl Trips {
    fn at(&self, share: f64) -> Duration {
        self.0[((self.0.len() - 1) as f64 * share) as usize]
    }
}

fn measure(lab: &Lab, time: Duration) -> Result<Cost> {
    let to_client_gbit_s = stream(lab, Node::FrontEnd, Node::Client, time)?;
    let (began, before) = (Instant::now(), thread_time()?);
    let from_client_gbit_s = stream(lab, Node::Client, Node::FrontEnd, time)?;
    let thread_cpus = thread_time()?.saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64();
    Ok(Cost {
        to_client_gbit_s,
        from_client_gbit_s,
        thread_cpus,
        requests_s: requests(lab, 1, time)?,
        parallel_requests_s: requests(lab, CONNECTIONS, time)?,
        trips: trips(lab, time)?,
    })
}

fn address(lab: &Lab, node: Node) -> Result<IpAddr> {
    Ok(lab.node(node)?.address().into())
}

/// Connections between two nodes, the connecting side first.
fn connections(lab: &Lab, from: Node, to: Node, count: usize) -> Result<Vec<(TcpStream, TcpStream)>> {
    let at: SocketAddr = (address(lab, to)?, 0).into();
    let listener = lab.node(to)?.run(|| TcpListener::bind(at))??;
    let at = listener.local_addr()?;
    let mut all = Vec::new();
    for _ in 0..count {
        let client = lab.node(from)?.run(|| TcpStream::connect(at))??;
        client.set_nodelay(true)?;
        let (server, _) = listener.accept()?;
        server.set_nodelay(true)?;
        all.push((client, server));
    }
    Ok(all)
}

/// Gigabits per second of one connection.
fn stream(lab: &Lab, from: Node, to: Node, time: Duration) -> Result<f64> {
    let (mut sender, mut receiver) = connections(lab, from, to, 1)?.remove(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let content = vec![7; 256 << 10];
            // Ends when the other side is closed.
            while sender.write_all(&content).is_ok() {}
        });
        let mut buffer = vec![0; 256 << 10];
        let mut read_for = |time: Duration| -> Result<f64> {
            let (began, mut bytes) = (Instant::now(), 0);
            while began.elapsed() < time {
                bytes += again(|| receiver.read(&mut buffer))?;
            }
            Ok(8e-9 * bytes as f64 / began.elapsed().as_secs_f64())
        };
        read_for(time / 5)?;
        let rate = read_for(time);
        drop(receiver);
        rate
    })
}

/// Requests per second on so many connections.
fn requests(lab: &Lab, count: usize, time: Duration) -> Result<f64> {
    let pairs = connections(lab, Node::Client, Node::FrontEnd, count)?;
    std::thread::scope(|scope| {
        let mut clients = Vec::new();
        for (mut client, mut server) in pairs {
            scope.spawn(move || {
                let mut bytes = [0; REQUEST_BYTES];
                while server.read_exact(&mut bytes).and_then(|()| server.write_all(&bytes)).is_ok() {}
            });
            clients.push(scope.spawn(move || -> io::Result<u64> {
                let (began, mut bytes, mut done) = (Instant::now(), [1; REQUEST_BYTES], 0);
                while began.elapsed() < time {
                    client.write_all(&bytes)?;
                    client.read_exact(&mut bytes)?;
                    done += 1;
                }
                Ok(done)
            }));
        }
        let mut total = 0;
        for client in clients {
            total += client.join().map_err(|_| "a client failed")??;
        }
        Ok(total as f64 / time.as_secs_f64())
    })
}

/// Round trips of datagrams, one after the other.
fn trips(lab: &Lab, time: Duration) -> Result<Trips> {
    let at: SocketAddr = (address(lab, Node::FrontEnd)?, 0).into();
    let server = lab.node(Node::FrontEnd)?.run(|| UdpSocket::bind(at))??;
    let client = lab.node(Node::Client)?.run(|| UdpSocket::bind("0.0.0.0:0"))??;
    client.connect(server.local_addr()?)?;
    server.set_read_timeout(Some(Duration::from_secs(1)))?;
    client.set_read_timeout(Some(Duration::from_secs(1)))?;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut bytes = [0; REQUEST_BYTES];
            while let Ok((length, peer)) = again(|| server.recv_from(&mut bytes)) {
                if server.send_to(&bytes[..length], peer).is_err() {
                    return;
                }
            }
        });
        let (began, mut bytes, mut times) = (Instant::now(), [1; REQUEST_BYTES], Vec::new());
        while began.elapsed() < time {
            let sent = Instant::now();
            client.send(&bytes)?;
            again(|| client.recv(&mut bytes))?;
            times.push(sent.elapsed());
        }
        times.sort_unstable();
        Ok(Trips(times))
    })
}

/// Repeats a call that a signal has interrupted.
fn again<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// CPU time of the threads that forward frames.
fn thread_time() -> Result<Duration> {
    let mut ns = 0;
    for task in fs::read_dir("/proc/self/task")?.flatten() {
        if fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "link\n") {
            let text = fs::read_to_string(task.path().join("schedstat"))?;
            ns += text.split_whitespace().next().unwrap_or("0").parse::<u64>()?;
        }
    }
    Ok(Duration::from_nanos(ns))
}
