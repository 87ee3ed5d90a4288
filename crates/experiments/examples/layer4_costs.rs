//! Connections distributed at layer 4 to four emulated origins on a lab: documents, large
//! files and computed pages, one connection for each request, with and without round trips of the clients.
//!
//! ```text
//! cargo build --release -p plimsoll-cli
//! cargo run --release -p plimsoll-experiments --example layer4_costs -- PLIMSOLL [KEY=VALUE ...]
//!
//! load=0.8             share of the origins' time that the requests take
//! seconds=20           measured time; a quarter of it goes before as warm-up
//! seeds=2              runs with different arrivals, one after the other
//! policies=NAME,NAME   csld,round_robin,least_connections,weighted_round_robin_host
//! round_trips=0,20,150 mean round trips in milliseconds, Pareto with shape 1.6, 3 s at most, drawn for each packet
//! last=1               speed of the last origin beside the others
//! told=false           whether the front-end is told that speed, as the origin's `weight`
//! csld=KEY:VALUE,...   parameters of csld
//! log=DIR              the decision logs, for `plimsoll replay`
//! ```
//!
//! Needs root. Each figure is the mean over the seeds; in brackets the least and the greatest.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_datapath::Vip;
use plimsoll_lab::{Conditions, Lab, LabConfig, LinkDelay, Node, NodeHandle, Process};
use plimsoll_testbed::load::{ArrivalPattern, LoadSummary, OpenLoop, open_loop};
use plimsoll_wire::Key;
use plimsoll_wire::load::{AnswerLimits, BootId, HostFigures, LoadAnswerer, LoadKeys, asks_for_host};

#[path = "../../testbed/examples/costs/emulated_origin.rs"]
#[allow(dead_code, reason = "the other example uses more of it")]
mod emulated_origin;
#[path = "layer4_costs/mixed_requests.rs"]
mod mixed_requests;
#[path = "../../testbed/examples/costs/request_kind.rs"]
mod request_kind;
#[path = "layer4_costs/settings.rs"]
mod settings;

use emulated_origin::{EmulatedOrigin, Sharing};
use mixed_requests::KINDS;
use settings::Settings;

type Error = Box<dyn std::error::Error + Send + Sync>;

const ORIGINS: usize = 4;
const AGENT_PORT: u16 = 7401;
/// How long the front-end may take to begin.
const STARTING: Duration = Duration::from_secs(20);

/// What one run has shown; times in milliseconds.
struct Measured {
    mean_ms: f64,
    p99_ms: f64,
    /// Of each kind.
    kinds_ms: Vec<f64>,
    cpu_spread: f64,
    failed: u64,
}

fn main() -> Result<(), Error> {
    let settings = Settings::read(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    println!(
        "load {}, {:.0} requests/s, {} s, {} seeds, last origin with speed {}",
        settings.load,
        settings.rate_rps(),
        settings.seconds,
        settings.seeds,
        settings.last
    );
    for &round_trip_ms in &settings.round_trips_ms {
        println!("\nround trips of {round_trip_ms} ms\n");
        let kinds: String = KINDS.iter().map(|kind| format!(" {} ms |", kind.name)).collect();
        println!("| policy | mean ms | p99 ms |{kinds} CPU spread % | failed |");
        println!("| --- | --- | --- |{} --- | --- |", " --- |".repeat(KINDS.len()));
        for policy in &settings.policies {
            let runs = (1..=settings.seeds).map(|seed| run(&runtime, &settings, policy, round_trip_ms, seed));
            println!("{}", row(policy, &runs.collect::<Result<Vec<_>, _>>()?));
        }
    }
    Ok(())
}

fn row(policy: &str, measured: &[Measured]) -> String {
    let cell = |of: &dyn Fn(&Measured) -> f64| {
        let values: Vec<f64> = measured.iter().map(of).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let (least, most) = values.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(*v), b.max(*v)));
        format!("{mean:.1} ({least:.1}–{most:.1})")
    };
    let kinds: String = (0..KINDS.len()).map(|n| format!(" {} |", cell(&move |m| m.kinds_ms[n]))).collect();
    format!(
        "| `{policy}` | {} | {} |{kinds} {} | {} |",
        cell(&|m| m.mean_ms),
        cell(&|m| m.p99_ms),
        cell(&|m| 100.0 * m.cpu_spread),
        measured.iter().map(|m| m.failed).sum::<u64>()
    )
}

/// The link of the clients: each way half of the round trip.
fn conditions(round_trip_ms: f64) -> Conditions {
    let mean = Duration::from_secs_f64(round_trip_ms / 2e3);
    let delay = LinkDelay::Pareto { mean, shape: 1.6, longest: Duration::from_millis(1500) };
    Conditions { delay: (round_trip_ms > 0.0).then_some(delay), independent: true, ..Conditions::default() }
}

fn run(
    runtime: &tokio::runtime::Runtime,
    settings: &Settings,
    policy: &str,
    round_trip_ms: f64,
    seed: u64,
) -> Result<Measured, Error> {
    let lab = Lab::build(&LabConfig { backends: ORIGINS, seed, ..LabConfig::default() })?;
    let key = Key::generate()?;
    let mut origins = Vec::new();
    for number in 0..ORIGINS {
        let speed = settings.speed(number);
        let node = lab.node(Node::Backend(number))?;
        let vip = lab.virtual_address().into();
        node.run(|| Vip::add(vip, "eth0").map(Vip::leave))??;
        let listener = node.run(|| TcpListener::bind("0.0.0.0:80"))??;
        let _inside = runtime.enter();
        let origin = EmulatedOrigin::start(listener, Sharing::Threads, speed, 100 * seed + number as u64)?;
        answer_inquiries(node, &key, origin.under_way())?;
        origins.push(origin);
    }
    let front_end = lab.node(Node::FrontEnd)?;
    let mut process = start_front_end(&lab, front_end, settings, policy, seed, &key)?;
    let target = SocketAddr::from((lab.virtual_address(), 80));
    wait_until_it_answers(lab.node(Node::Client)?, target, &mut process)?;
    lab.link(Node::Client)?.set(&conditions(round_trip_ms))?;
    let measured = measure(&lab, settings, (seed, target), &origins);
    process.stop_within(STARTING)?;
    if let Some(to) = &settings.log {
        let to = to.join(format!("{policy}-{round_trip_ms}-{seed}"));
        fs::create_dir_all(&to)?;
        for file in fs::read_dir(front_end.root().join("run/decisions"))? {
            let file = file?;
            fs::copy(file.path(), to.join(file.file_name()))?;
        }
    }
    measured
}

/// Tells host metrics as an agent does, of the emulated machine.
fn answer_inquiries(
    node: NodeHandle<'_>,
    key: &Key,
    under_way: impl Fn() -> [u32; 3] + Send + 'static,
) -> Result<(), Error> {
    let socket = node.run(|| UdpSocket::bind(("0.0.0.0", AGENT_PORT)))??;
    let (boot, seed) = (BootId::new(plimsoll_wire::random()?), u64::from_le_bytes(plimsoll_wire::random()?));
    let mut answerer = LoadAnswerer::new(LoadKeys::new(key), boot, AnswerLimits::default(), seed);
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    let began = Instant::now();
    // Ends when nobody has asked for a while: then the run is over.
    std::thread::spawn(move || {
        let mut buffer = [0; 128];
        while let Ok((bytes, source)) = socket.recv_from(&mut buffer) {
            let now_ns = began.elapsed().as_nanos() as u64;
            let datagram = &buffer[..bytes];
            let figures = || {
                let [at_disk, serving_static, serving_dynamic] = under_way().map(|n| n as u16);
                HostFigures { pending: 0, at_disk, serving_static, serving_dynamic }
            };
            let reply = match asks_for_host(datagram) {
                true => answerer.answer_host(source.ip(), datagram, now_ns, figures),
                false => None,
            };
            let _ = reply.map(|reply| socket.send_to(&reply, source));
        }
    });
    Ok(())
}

fn start_front_end(
    lab: &Lab,
    node: NodeHandle<'_>,
    settings: &Settings,
    policy: &str,
    seed: u64,
    key: &Key,
) -> Result<Process, Error> {
    let run = node.root().join("run");
    fs::write(run.join("classes.toml"), mixed_requests::classes())?;
    fs::write(run.join("files.list"), mixed_requests::file_list())?;
    fs::write(run.join("key"), key.to_hex() + "\n")?;
    fs::set_permissions(run.join("key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let mut text = format!(
        "mechanism = \"direct\"\nworkers = 1\n[[listener]]\naddress = \"{}:80\"\n[policy]\nname = \"{policy}\"\nseed = {seed}\n{}\
         [classes]\nfile = \"/run/classes.toml\"\n[direct]\ninterfaces = [\"eth0\"]\nfile_list = \"/run/files.list\"\n\
         [admission]\nlimit = \"none\"\n[health]\nprobe = \"tcp\"\n[admin]\naddress = \"127.0.0.1:9090\"\n\
         [load_information]\nkey_file = \"/run/key\"\n",
        lab.virtual_address(),
        if policy == "csld" { &*settings.csld } else { "" },
    );
    if settings.log.is_some() {
        fs::create_dir(run.join("decisions"))?;
        text += "[decision_log]\ndirectory = \"/run/decisions\"\n";
    }
    for number in 0..ORIGINS {
        let backend = lab.node(Node::Backend(number))?;
        text +=
            &format!("[[backend]]\nname = \"{}\"\naddress = \"{}:80\"\n", backend.node(), backend.address());
        if settings.told {
            text += &format!("weight = {}\n", settings.speed(number));
        }
    }
    fs::write(run.join("plimsoll.toml"), text)?;
    let mut command = node.command(&settings.program);
    command.args(["balance", "--no-watch", "--config", "/run/plimsoll.toml"]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(fs::File::create(run.join("log"))?);
    Ok(node.spawn(&mut command)?)
}

fn wait_until_it_answers(
    client: NodeHandle<'_>,
    target: SocketAddr,
    process: &mut Process,
) -> Result<(), Error> {
    let end = Instant::now() + STARTING;
    while client.run(|| TcpStream::connect_timeout(&target, Duration::from_secs(1)))?.is_err() {
        if Instant::now() > end || !process.is_running() {
            return Err("the front-end does not begin".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    // Until the policy's choices are there, the hash places connections.
    std::thread::sleep(Duration::from_secs(1));
    Ok(())
}

/// Latencies of one kind, in seconds.
type Latencies = Arc<Mutex<Vec<Vec<f64>>>>;

fn measure(
    lab: &Lab,
    settings: &Settings,
    (seed, target): (u64, SocketAddr),
    origins: &[EmulatedOrigin],
) -> Result<Measured, Error> {
    let warmup_s = settings.seconds / 4.0;
    let latencies: Latencies = Arc::new(Mutex::new(vec![Vec::new(); KINDS.len()]));
    let seen = Arc::clone(&latencies);
    let load = OpenLoop {
        rate_rps: settings.rate_rps(),
        arrivals: ArrivalPattern::Poisson(seed),
        seconds: warmup_s + settings.seconds,
        warmup_s,
        connections: 4096,
        keep_alive: false,
        timeout: Duration::from_secs(30),
        observer: Some(Arc::new(move |number, sample| {
            if sample.due.as_secs_f64() >= warmup_s && sample.succeeded() {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen[mixed_requests::kind_number(seed, number)].push(sample.latency.as_secs_f64());
            }
        })),
        ..OpenLoop::new(target, move |number| mixed_requests::request(seed, number))
    };
    let entry = lab.node(Node::Client)?.entry()?;
    let loading = std::thread::spawn(move || -> Result<LoadSummary, Error> {
        entry.enter()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(open_loop(load)))
    });
    let busy = || origins.iter().map(|origin| origin.cpu_busy().as_secs_f64()).collect::<Vec<_>>();
    std::thread::sleep(Duration::from_secs_f64(warmup_s));
    let before = busy();
    std::thread::sleep(Duration::from_secs_f64(settings.seconds));
    let shares = busy().into_iter().zip(before).map(|(after, before)| (after - before) / settings.seconds);
    let (least, most) = shares.fold((f64::INFINITY, 0.0_f64), |(a, b), s| (a.min(s), b.max(s)));
    let summary = loading.join().map_err(|_| "the load ended by a panic")??;
    if summary.failed() > 0 {
        eprintln!("seed {seed}: statuses {:?}, {:?}", summary.statuses, summary.failures);
    }
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let latencies = latencies.lock().unwrap_or_else(PoisonError::into_inner);
    let mean_ms = |of: &Vec<f64>| 1e3 * of.iter().sum::<f64>() / of.len().max(1) as f64;
    Ok(Measured {
        mean_ms: ms(summary.mean_latency()),
        p99_ms: ms(summary.quantile(0.99)),
        kinds_ms: latencies.iter().map(mean_ms).collect(),
        cpu_spread: most - least,
        failed: summary.failed(),
    })
}

/// The program, as it is found from any directory.
pub(crate) fn program(path: &str) -> Result<PathBuf, Error> {
    Path::new(path).canonicalize().map_err(|error| format!("{path}: {error}").into())
}
