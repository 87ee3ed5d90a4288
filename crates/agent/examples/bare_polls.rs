//! Prints what polls of two cost a process that does nothing else: datagrams to two of eight bare UDP echoes and back, without
//! authentication, and how long one takes. What a front-end's polls cost on this machine can only be more:
//! `cargo run --release -p plimsoll-agent --example bare_polls`.
#![allow(clippy::unwrap_used, reason = "a measurement, not a service")]

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_testkit::cpu_time_of;
use plimsoll_wire::load::DATAGRAM_BYTES;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const ECHOES: usize = 8;
const POLLS: usize = 100_000;
const ROUND_TRIPS: usize = 5_000;

/// Where threads run.
#[derive(Clone, Copy, PartialEq)]
enum Cpus {
    /// Where the system likes. A thread that wakes another one often gets it to its own CPU, where a round trip is short.
    Any,
    /// Who asks on the first CPU, the echoes on the others: as far apart as a front-end and an agent on one machine can be.
    Apart,
}

/// Keeps this thread on the first CPU that it may use, or away from it; where there is one alone, it stays there.
fn keep_to(first: bool) {
    let allowed = sched_getaffinity(None).unwrap();
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).peekable();
    let one = cpus.next().unwrap();
    let mut set = CpuSet::new();
    if first || cpus.peek().is_none() {
        set.set(one);
    }
    cpus.filter(|_| !first).for_each(|cpu| set.set(cpu));
    sched_setaffinity(None, &set).unwrap();
}

/// A thread that sends back what comes, until `stop`.
fn echo(stop: &Arc<AtomicBool>, cpus: Cpus) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (address, stop) = (socket.local_addr().unwrap(), Arc::clone(stop));
    std::thread::spawn(move || {
        if cpus == Cpus::Apart {
            keep_to(false);
        }
        let mut buffer = [0; 100];
        while !stop.load(Ordering::Relaxed) {
            if let Ok((bytes, source)) = socket.recv_from(&mut buffer) {
                socket.send_to(&buffer[..bytes], source).unwrap();
            }
        }
    });
    address
}

/// Polls, of which so many are always under way; in the order in which back-ends come.
fn poll(socket: &UdpSocket, echoes: &[SocketAddr], under_way: usize) {
    let (sent, mut got) = ([7; DATAGRAM_BYTES], [0; 100]);
    let mut next = (0..2 * POLLS).map(|number| echoes[(number * 5 + number / 8) % ECHOES]);
    for to in next.by_ref().take(2 * under_way) {
        socket.send_to(&sent, to).unwrap();
    }
    for _ in 0..2 * POLLS {
        socket.recv_from(&mut got).unwrap();
        if let Some(to) = next.next() {
            socket.send_to(&sent, to).unwrap();
        }
    }
}

/// How long it takes until as many echoes as are asked at once have answered, with pauses in which CPUs fall asleep.
fn lone_polls(socket: &UdpSocket, echoes: &[SocketAddr], asked: usize, pause: Duration) -> Vec<Duration> {
    let poll = |number: usize| {
        std::thread::sleep(pause);
        let began = Instant::now();
        for echo in (0..asked).map(|k| (number + 3 * k) % ECHOES) {
            socket.send_to(&[7; DATAGRAM_BYTES], echoes[echo]).unwrap();
        }
        for _ in 0..asked {
            socket.recv_from(&mut [0; 100]).unwrap();
        }
        began.elapsed()
    };
    (0..ROUND_TRIPS).map(poll).collect()
}

fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn main() {
    let stop = Arc::new(AtomicBool::new(false));
    let echoes = |cpus| -> Vec<SocketAddr> { (0..ECHOES).map(|_| echo(&stop, cpus)).collect() };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    for (cpus, name) in [(Cpus::Any, "any"), (Cpus::Apart, "apart")] {
        let echoes = echoes(cpus);
        for (pause, asked) in [0, 100].into_iter().flat_map(|us| [1, 2].map(|asked| (us, asked))) {
            let pausing = Duration::from_micros(pause);
            let all = std::thread::scope(|scope| {
                let asking = scope.spawn(|| {
                    if cpus == Cpus::Apart {
                        keep_to(true);
                    }
                    lone_polls(&socket, &echoes, asked, pausing)
                });
                asking.join().unwrap()
            });
            let us = median_us(all);
            println!(
                "{{\"cpus\":\"{name}\",\"asked\":{asked},\"pause_us\":{pause},\"round_trip_us\":{us:.1}}}"
            );
        }
    }
    let echoes = echoes(Cpus::Any);
    for under_way in [1, 16] {
        let ((), cpu) = cpu_time_of(|| poll(&socket, &echoes, under_way));
        let cpu_us = cpu.as_secs_f64() * 1e6 / POLLS as f64;
        println!("{{\"under_way\":{under_way},\"cpu_us_per_poll\":{cpu_us:.2}}}");
    }
    stop.store(true, Ordering::Relaxed);
}
