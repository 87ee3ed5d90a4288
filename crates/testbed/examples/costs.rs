//! Requests of very different cost, balanced by cost and by number: live traffic to four emulated origins, of which one has half the
//! speed of the others.
//!
//! ```text
//! cargo run --release -p plimsoll-testbed --example costs -- [KEY=VALUE ...]
//!
//! origins=line|lines|threads   how requests share an origin (line)
//! load=0.8                     share of the origins' time that the requests take
//! seconds=40                   measured time; a quarter of it goes before as warm-up
//! seeds=3                      runs with different arrivals, at the same time
//! policies=NAME,NAME           `csld+classes` is `csld` with `classes`
//! classes=FILE                 a class file
//! log=FILE                     the front-end's access log in JSON, of all runs
//! ```
//!
//! Each row has means over the seeds, and in brackets the least and the greatest one. CPU spread is by how much the busiest and the
//! idlest CPU differ, as shares of the measured time.

use std::time::Duration;

use plimsoll_balancer::Balancer;
use plimsoll_config::Config;
use plimsoll_origin::synthetic::Synthetic;
use plimsoll_testbed::cluster::LoopbackConfig;
use plimsoll_testbed::load::{ArrivalPattern, OpenLoop, open_loop};

#[path = "costs/emulated_origin.rs"]
mod emulated_origin;
#[path = "costs/mixed_requests.rs"]
mod mixed_requests;
#[path = "costs/request_kind.rs"]
mod request_kind;

use emulated_origin::{EmulatedOrigin, Sharing};
use mixed_requests::KINDS;
use request_kind::mean;

type Error = Box<dyn std::error::Error + Send + Sync>;

const SPEEDS: [f64; 4] = [1.0, 1.0, 1.0, 0.5];

#[derive(Clone)]
struct Settings {
    sharing: Sharing,
    load: f64,
    seconds: f64,
    seeds: u64,
    policies: Vec<String>,
    classes: Option<String>,
    log: Option<String>,
}

impl Settings {
    fn read(args: impl Iterator<Item = String>) -> Result<Self, Error> {
        let policies = "csld+classes,csld,least_connections,peak_ewma,prequal,random_polling";
        let split = |list: &str| list.split(',').map(str::to_owned).collect();
        let mut settings = Self {
            sharing: Sharing::Line,
            load: 0.8,
            seconds: 40.0,
            seeds: 3,
            policies: split(policies),
            classes: None,
            log: None,
        };
        for arg in args {
            let (key, value) = arg.split_once('=').ok_or_else(|| format!("{arg}: give KEY=VALUE"))?;
            match key {
                "origins" => {
                    settings.sharing = match value {
                        "line" => Sharing::Line,
                        "lines" => Sharing::Lines,
                        "threads" => Sharing::Threads,
                        _ => return Err(format!("origins={value}: give line, lines or threads").into()),
                    }
                }
                "load" => settings.load = value.parse()?,
                "seconds" => settings.seconds = value.parse()?,
                "seeds" => settings.seeds = value.parse()?,
                "policies" => settings.policies = split(value),
                "classes" => settings.classes = Some(value.to_owned()),
                "log" => settings.log = Some(value.to_owned()),
                _ => return Err(format!("{key}: there is no such key").into()),
            }
        }
        if settings.classes.is_none() {
            settings.policies.retain(|policy| policy != "csld+classes");
        }
        Ok(settings)
    }

    /// Requests per second at which the busiest resource of all origins is busy for `load` of the time.
    fn rate_rps(&self) -> f64 {
        let (cpu_s, disk_s) = (mean(&KINDS, |k| k.cpu_s), mean(&KINDS, |k| k.disk_s));
        let needed_s = if self.sharing == Sharing::Line { cpu_s + disk_s } else { cpu_s.max(disk_s) };
        self.load * SPEEDS.iter().sum::<f64>() / needed_s
    }

    fn balancer(&self, policy: &str, seed: u64, origins: &[EmulatedOrigin]) -> Result<Balancer, Error> {
        let (name, with_classes) =
            policy.strip_suffix("+classes").map_or((policy, false), |name| (name, true));
        let mut more = String::new();
        if let Some(file) = self.classes.as_ref().filter(|_| with_classes) {
            more += &format!("[classes]\nfile = \"{file}\"\n");
        }
        if let Some(file) = &self.log {
            more += &format!("[access_log]\nfile = \"{file}\"\nformat = \"json\"\n");
        }
        let config = LoopbackConfig {
            seed,
            admission: "none".to_owned(),
            more,
            ..LoopbackConfig::new(name, Synthetic::table(std::iter::empty())?)
        };
        let addresses: Vec<_> = origins.iter().map(|origin| origin.address).collect();
        let config = Config::parse(&config.to_toml(&addresses), "costs").map_err(|e| e.render())?;
        Ok(Balancer::start(config)?)
    }
}

/// What one run has shown; times in milliseconds.
struct Measured {
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_spread: f64,
    failed: u64,
}

fn main() -> Result<(), Error> {
    let settings = Settings::read(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(compare(settings))
}

async fn compare(settings: Settings) -> Result<(), Error> {
    let rate = settings.rate_rps();
    println!(
        "{:?}, load {}, {rate:.0} requests/s, {} seeds",
        settings.sharing, settings.load, settings.seeds
    );
    println!(
        "| policy | mean ms | p50 ms | p99 ms | CPU spread % | failed |\n| --- | --- | --- | --- | --- | --- |"
    );
    for policy in &settings.policies {
        let run = |seed| tokio::spawn(run(settings.clone(), policy.clone(), seed));
        let runs: Vec<_> = (1..=settings.seeds).map(run).collect();
        let mut measured = Vec::new();
        for run in runs {
            measured.push(run.await??);
        }
        let cell = |of: fn(&Measured) -> f64| {
            let values: Vec<f64> = measured.iter().map(of).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let (least, most) =
                values.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(*v), b.max(*v)));
            format!("{mean:.1} ({least:.1}–{most:.1})")
        };
        println!(
            "| `{policy}` | {} | {} | {} | {} | {} |",
            cell(|m| m.mean_ms),
            cell(|m| m.p50_ms),
            cell(|m| m.p99_ms),
            cell(|m| 100.0 * m.cpu_spread),
            measured.iter().map(|m| m.failed).sum::<u64>()
        );
    }
    Ok(())
}

async fn run(settings: Settings, policy: String, seed: u64) -> Result<Measured, Error> {
    let mut origins = Vec::new();
    for (n, speed) in SPEEDS.iter().enumerate() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        origins.push(EmulatedOrigin::start(listener, settings.sharing, *speed, 100 * seed + n as u64)?);
    }
    let balancer = settings.balancer(&policy, seed, &origins)?;
    let address = *balancer.addresses().first().ok_or("no listener")?;
    let warmup_s = settings.seconds / 4.0;
    let load = open_loop(OpenLoop {
        rate_rps: settings.rate_rps(),
        arrivals: ArrivalPattern::Poisson(seed),
        seconds: warmup_s + settings.seconds,
        warmup_s,
        connections: 1024,
        timeout: Duration::from_secs(30),
        ..OpenLoop::new(address, move |number| mixed_requests::request(seed, number))
    });
    let busy = || origins.iter().map(|origin| origin.cpu_busy().as_secs_f64()).collect::<Vec<_>>();
    let warm = async {
        tokio::time::sleep(Duration::from_secs_f64(warmup_s)).await;
        let before = busy();
        tokio::time::sleep(Duration::from_secs_f64(settings.seconds)).await;
        let shares =
            busy().into_iter().zip(before).map(|(after, before)| (after - before) / settings.seconds);
        let (least, most) = shares.fold((f64::INFINITY, 0.0_f64), |(a, b), s| (a.min(s), b.max(s)));
        most - least
    };
    let (summary, cpu_spread) = tokio::join!(load, warm);
    if summary.failed() > 0 {
        eprintln!("{policy}, seed {seed}: statuses {:?}, {:?}", summary.statuses, summary.failures);
    }
    tokio::task::spawn_blocking(move || balancer.stop()).await?;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    Ok(Measured {
        mean_ms: ms(summary.mean_latency()),
        p50_ms: ms(summary.quantile(0.5)),
        p99_ms: ms(summary.quantile(0.99)),
        cpu_spread,
        failed: summary.failed(),
    })
}
