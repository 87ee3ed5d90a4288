//! Prints what inquiries cost an agent, and how long they take while all CPUs are busy, beside a bare UDP echo:
//! `cargo run --release -p plimsoll-agent --example inquiry_speed target/release/plimsoll`.
//!
//! With the path of `plimsoll` it measures `plimsoll agent`, a process of its own that has given away what it needs no more; without it,
//! the same threads in this process.
#![allow(clippy::unwrap_used, reason = "a measurement, not a service")]

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_agent::load::{LoadConfig, LoadRole, LoadService, PreparedLoad};
use plimsoll_wire::Key;
use plimsoll_wire::load::{DATAGRAM_BYTES, InquiryLimits, LoadGauge, LoadInquirer, LoadKeys, LoadTaken};

/// Inquiries of which the cost is measured, and those that are sent at once.
const INQUIRIES: u64 = 400_000;
const AT_ONCE: u64 = 32;
/// Round trips of each kind on the busy machine.
const ROUND_TRIPS: usize = 5000;

struct Asker {
    socket: UdpSocket,
    inquirer: LoadInquirer,
    origin: Instant,
}

impl Asker {
    fn new(key: &Key, agent: SocketAddr) -> Self {
        let inquirer = LoadInquirer::new(LoadKeys::new(key), [1; 8], InquiryLimits::default());
        Self { socket: connected(agent), inquirer, origin: Instant::now() }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap()
    }

    fn send(&mut self) {
        let (_, inquiry) = self.inquirer.ask(0, self.now_ns()).unwrap();
        self.socket.send(&inquiry).unwrap();
    }

    /// Whether a load came.
    fn receive(&mut self) -> bool {
        let mut reply = [0; 100];
        let bytes = self.socket.recv(&mut reply).unwrap();
        matches!(self.inquirer.take(&reply[..bytes], self.now_ns()), Ok(LoadTaken::Load { .. }))
    }
}

fn connected(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

/// A thread that sends back what comes, until `stop`.
fn echo(stop: &Arc<AtomicBool>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (address, stop) = (socket.local_addr().unwrap(), Arc::clone(stop));
    let run = move || {
        let mut buffer = [0; 100];
        while !stop.load(Ordering::Relaxed) {
            if let Ok((bytes, source)) = socket.recv_from(&mut buffer) {
                socket.send_to(&buffer[..bytes], source).unwrap();
            }
        }
    };
    std::thread::Builder::new().name("echo".to_owned()).spawn(run).unwrap();
    address
}

/// The agent that is measured.
enum Measured {
    Here(LoadService),
    Process(Child),
}

impl Measured {
    /// In this process, or by the program at this path; with its address.
    fn start(key: &Key, program: Option<String>) -> (Self, SocketAddr) {
        let Some(program) = program else {
            let role = LoadRole::Answer(LoadGauge::new());
            let mut config = LoadConfig::new("127.0.0.1:0".parse().unwrap(), key.clone(), role);
            config.limits.per_source_s = 10_000_000;
            let service = PreparedLoad::new(config).unwrap().start().unwrap();
            let address = service.address();
            return (Self::Here(service), address);
        };
        let file = std::env::temp_dir().join(format!("inquiry_speed.{}.key", std::process::id()));
        std::fs::write(&file, key.to_hex()).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let mut child = Command::new(program)
            .args(["agent", "--load-listen", "127.0.0.1:0", "--load-rate", "10000000", "--key"])
            .arg(&file)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "the agent has ended");
            if let Some((_, address)) = line.trim_end().split_once("telling the load at ") {
                break address.parse().unwrap();
            }
        };
        std::fs::remove_file(&file).unwrap();
        // What it says further is not waited for.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        (Self::Process(child), address)
    }

    fn pid(&self) -> u32 {
        match self {
            Self::Here(_) => std::process::id(),
            Self::Process(child) => child.id(),
        }
    }

    fn stop(self) {
        match self {
            Self::Here(service) => service.stop(),
            Self::Process(mut child) => {
                child.kill().unwrap();
                child.wait().unwrap();
            }
        }
    }
}

/// The path of the thread of this name below `/proc`.
fn thread(pid: u32, name: &str) -> std::path::PathBuf {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|entry| entry.unwrap().path());
    let of_name = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name)
    };
    threads.into_iter().find(of_name).unwrap()
}

/// CPU time of the thread of this name, in seconds.
fn cpu_s(pid: u32, name: &str) -> f64 {
    let stat = std::fs::read_to_string(thread(pid, name).join("schedstat")).unwrap();
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// The priority ("nice") of the thread of this name.
fn nice(pid: u32, name: &str) -> i32 {
    let stat = std::fs::read_to_string(thread(pid, name).join("stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(16).unwrap().parse().unwrap()
}

/// CPU time that a datagram takes that nobody with the key has made, in microseconds.
fn forged_us(pid: u32, asker: &mut Asker) -> f64 {
    let (_, mut forged) = asker.inquirer.ask(0, asker.now_ns()).unwrap();
    forged[DATAGRAM_BYTES - 1] ^= 1;
    let before_s = cpu_s(pid, "load-answer");
    for _ in 0..INQUIRIES / AT_ONCE {
        for _ in 0..AT_ONCE - 1 {
            asker.socket.send(&forged).unwrap();
        }
        // Its answer shows that what came before was read.
        asker.send();
        assert!(asker.receive());
    }
    (cpu_s(pid, "load-answer") - before_s) * 1e6 / INQUIRIES as f64
}

/// The 99th percentile, in microseconds.
fn p99_us(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[(times.len() - 1) * 99 / 100].as_secs_f64() * 1e6
}

fn main() {
    let key = Key::generate().unwrap();
    let (measured, address) = Measured::start(&key, std::env::args().nth(1));
    let (pid, own) = (measured.pid(), std::process::id());
    let stop = Arc::new(AtomicBool::new(false));
    let echo_at = connected(echo(&stop));
    let mut asker = Asker::new(&key, address);
    asker.send();
    asker.receive();

    let before_s = cpu_s(pid, "load-answer");
    for _ in 0..INQUIRIES / AT_ONCE {
        (0..AT_ONCE).for_each(|_| asker.send());
        assert!((0..AT_ONCE).all(|_| asker.receive()));
    }
    let agent_s = cpu_s(pid, "load-answer") - before_s;
    let before_s = cpu_s(own, "echo");
    let (sent, mut got) = ([7; DATAGRAM_BYTES], [0; 100]);
    for _ in 0..INQUIRIES / AT_ONCE {
        for _ in 0..AT_ONCE {
            echo_at.send(&sent).unwrap();
        }
        for _ in 0..AT_ONCE {
            echo_at.recv(&mut got).unwrap();
        }
    }
    let echo_s = cpu_s(own, "echo") - before_s;
    let rate = |cpu_s: f64| INQUIRIES as f64 / cpu_s;

    // All CPUs are busy at the ordinary priority; this thread is at the agent's, so that it measures the others.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), -20);
    for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) * 2 {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 0);
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
    }
    let (mut agent, mut echo) = (Vec::new(), Vec::new());
    for _ in 0..ROUND_TRIPS {
        let began = Instant::now();
        asker.send();
        asker.receive();
        agent.push(began.elapsed());
        let began = Instant::now();
        echo_at.send(&sent).unwrap();
        echo_at.recv(&mut got).unwrap();
        echo.push(began.elapsed());
    }
    let nice = nice(pid, "load-answer");
    stop.store(true, Ordering::Relaxed);
    let forged_us = forged_us(pid, &mut asker);
    println!(
        "{{\"inquiries_per_cpu_s\":{:.0},\"echoes_per_cpu_s\":{:.0},\"busy_p99_us\":{:.1},\"busy_echo_p99_us\":{:.1},\"forged_us\":{forged_us:.2},\"nice\":{nice}}}",
        rate(agent_s),
        rate(echo_s),
        p99_us(agent),
        p99_us(echo),
    );
    measured.stop();
}
