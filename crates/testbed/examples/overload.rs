//! The front-end under three times the load that its back-ends can answer, and the time that faults of back-ends cost clients.
//!
//! ```text
//! cargo run --release -p plimsoll-testbed --example overload -- PLIMSOLL [ROUNDS]
//! ```
//!
//! `PLIMSOLL` is the program. Four of its origins, with an emulated CPU that answers some 270 requests a second, stand behind its
//! front-end with the default configuration. Each round prints its figures; the end prints their medians beside the goals:
//!
//! - Under overload, 0.9 of the peak is answered within a second, and 99 % of refusals come within 300 ms.
//! - While a back-end hangs, each answer comes within 3 s.
//! - A back-end that is restarted answers its first request within 1 s.
//!
//! A missed goal is shown. These end the run: under overload an answer other than 200 and 503, or no refusal; in the other
//! parts any request that fails.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_testbed::load::{ClosedLoop, LoadSummary, OpenLoop, Req, RequestSample, closed_loop, open_loop};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// What a client waits for an answer: later ones are worth nothing.
const WORTH: Duration = Duration::from_secs(1);
const BACKENDS: u16 = 4;

/// A process that ends with this program.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn signal(&self, signal: &str) -> Result<(), Error> {
        let status = Command::new("kill").args([signal, &self.0.id().to_string()]).status()?;
        if status.success() { Ok(()) } else { Err(format!("kill {signal}: {status}").into()) }
    }

    /// Waits until it accepts connections there.
    fn wait_for(&mut self, address: SocketAddr) -> Result<(), Error> {
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = self.0.try_wait()? {
                return Err(format!("the process that should listen at {address} has ended: {status}").into());
            }
            if began.elapsed() > Duration::from_secs(10) {
                return Err(format!("nothing listens at {address}").into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// What one round measured.
struct Figures {
    good_share: f64,
    refusals_p99_ms: f64,
    hang_longest_s: f64,
    restart_s: f64,
}

/// Every request of a load, those too that end after its time.
#[derive(Default)]
struct Seen {
    longest: Duration,
    failed: u64,
}

impl Seen {
    fn add(&mut self, sample: &RequestSample) {
        self.longest = self.longest.max(sample.latency);
        self.failed += u64::from(!sample.succeeded());
    }

    /// The longest answer, if none failed.
    fn longest_s(&self) -> Result<f64, Error> {
        if self.failed > 0 {
            return Err(format!("{} requests failed", self.failed).into());
        }
        Ok(self.longest.as_secs_f64())
    }
}

/// What an observer has seen so far.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Cluster {
    program: String,
    origins: Vec<Running>,
    front_end: SocketAddr,
    _front_end: Running,
    _directory: tempfile::TempDir,
}

fn address(index: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 18_080 + index))
}

fn start_origin(program: &str, index: u16) -> Result<Running, Error> {
    // Somebody else's server must not be measured.
    TcpListener::bind(address(index)).map_err(|error| format!("{}: {error}", address(index)))?;
    let mut command = Command::new(program);
    command.args(["origin", "--synthetic", "fixed:1KB", "--cpu-delay", "lard98", "--cpu-speed", "0.1"]);
    command.args(["--name", &format!("b{index}"), "--listen", &address(index).to_string()]);
    let mut origin = Running(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?);
    origin.wait_for(address(index))?;
    Ok(origin)
}

impl Cluster {
    fn start(program: &str) -> Result<Self, Error> {
        let origins = (0..BACKENDS).map(|index| start_origin(program, index)).collect::<Result<_, _>>()?;
        let directory = tempfile::tempdir()?;
        let front_end = address(BACKENDS);
        let mut text = format!("[[listener]]\naddress = \"{front_end}\"\n");
        for index in 0..BACKENDS {
            text += &format!("[[backend]]\nname = \"b{index}\"\naddress = \"{}\"\n", address(index));
        }
        let file = directory.path().join("plimsoll.toml");
        std::fs::write(&file, text)?;
        let mut command = Command::new(program);
        command.args(["balance", "--no-watch", "--config"]).arg(&file).stderr(Stdio::null());
        let mut running = Running(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
        running.wait_for(front_end)?;
        Ok(Self {
            program: program.to_owned(),
            origins,
            front_end,
            _front_end: running,
            _directory: directory,
        })
    }

    /// Requests per second that 128 clients get answered, one after the other.
    async fn peak_rps(&self, seconds: f64) -> Result<f64, Error> {
        let load = ClosedLoop {
            connections: 128,
            seconds,
            warmup_s: 1.0,
            ..ClosedLoop::new(self.front_end, |n| Req::get(format!("/{n}")))
        };
        let peak = closed_loop(load).await;
        none_failed(&peak)?;
        Ok(peak.throughput_rps())
    }

    /// Share of the peak that is answered in time under overload, and the 99th percentile of refusals in milliseconds.
    async fn overload(&self) -> Result<(f64, f64), Error> {
        let before_rps = self.peak_rps(4.0).await?;
        let refusals: Arc<Mutex<Vec<Duration>>> = Arc::default();
        let seen = Arc::clone(&refusals);
        let over = open_loop(OpenLoop {
            rate_rps: 3.0 * before_rps,
            seconds: 7.0,
            warmup_s: 1.0,
            connections: 3000,
            timeout: WORTH,
            observer: Some(Arc::new(move |_, sample: &RequestSample| {
                if sample.status == Some(503) {
                    locked(&seen).push(sample.latency - sample.lateness);
                }
            })),
            ..OpenLoop::new(self.front_end, |n| Req::get(format!("/{n}")))
        })
        .await;
        if over.statuses.keys().any(|status| ![200, 503].contains(status)) {
            return Err(format!("statuses under overload: {:?}", over.statuses).into());
        }
        let after_rps = self.peak_rps(3.0).await?;
        let mut refusals = std::mem::take(&mut *locked(&refusals));
        refusals.sort_unstable();
        let p99 = refusals.get(refusals.len() * 99 / 100).ok_or("nothing was refused under overload")?;
        let p99_ms = 1e3 * p99.as_secs_f64();
        let good_rps = over.succeeded as f64 / over.measured.as_secs_f64();
        println!(
            "overload: peak {before_rps:.0}/s before, {after_rps:.0}/s after; in time {good_rps:.0}/s; \
             99 % of refusals within {p99_ms:.0} ms; of {} requests statuses {:?}, failures {:?}",
            over.requests, over.statuses, over.failures,
        );
        Ok((good_rps / before_rps, p99_ms))
    }

    /// The longest answer in seconds while one back-end stands still.
    async fn hang(&self) -> Result<f64, Error> {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let observed = Arc::clone(&seen);
        let load = ClosedLoop {
            connections: 16,
            seconds: 8.0,
            observer: Some(Arc::new(move |_, sample: &RequestSample| locked(&observed).add(sample))),
            ..ClosedLoop::new(self.front_end, |n| Req::get(format!("/{n}")))
        };
        let stopped = &self.origins[1];
        let (_, stop) = tokio::join!(closed_loop(load), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            stopped.signal("-STOP")
        });
        stopped.signal("-CONT")?;
        stop?;
        let longest_s = locked(&seen).longest_s()?;
        println!("a back-end hangs: longest answer {longest_s:.2} s, none failed");
        Ok(longest_s)
    }

    /// From the restart of a back-end to its first answer, in seconds.
    async fn restart(&mut self) -> Result<f64, Error> {
        let seen: Arc<Mutex<(Seen, Option<Instant>)>> = Arc::default();
        let restarted: Arc<Mutex<Option<Instant>>> = Arc::default();
        let (observed, is_restarted) = (Arc::clone(&seen), Arc::clone(&restarted));
        let load = ClosedLoop {
            connections: 64,
            seconds: 14.0,
            observer: Some(Arc::new(move |_, sample: &RequestSample| {
                let mut observed = locked(&observed);
                observed.0.add(sample);
                if locked(&is_restarted).is_some() && sample.backend.as_deref() == Some("b2") {
                    observed.1.get_or_insert_with(Instant::now);
                }
            })),
            ..ClosedLoop::new(self.front_end, |n| Req::get(format!("/{n}")))
        };
        let (_, origin) = tokio::join!(closed_loop(load), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.origins[2].0.kill()?;
            self.origins[2].0.wait()?;
            tokio::time::sleep(Duration::from_secs(5)).await;
            let origin = start_origin(&self.program, 2);
            *locked(&restarted) = Some(Instant::now());
            origin
        });
        self.origins[2] = origin?;
        let (longest_s, first) = {
            let seen = locked(&seen);
            (seen.0.longest_s()?, seen.1)
        };
        let restarted = locked(&restarted).ok_or("it was not restarted")?;
        let first = first.ok_or("the restarted back-end answered nothing in 8 s")?;
        let after_s = (first - restarted).as_secs_f64();
        println!(
            "a back-end is killed and restarted: its first answer {after_s:.2} s after it listens, longest answer {longest_s:.2} s, none failed"
        );
        Ok(after_s)
    }

    async fn round(&mut self) -> Result<Figures, Error> {
        let (good_share, refusals_p99_ms) = self.overload().await?;
        Ok(Figures {
            good_share,
            refusals_p99_ms,
            hang_longest_s: self.hang().await?,
            restart_s: self.restart().await?,
        })
    }
}

fn none_failed(summary: &LoadSummary) -> Result<(), Error> {
    if summary.succeeded == summary.requests {
        return Ok(());
    }
    Err(format!("requests failed: {:?}, statuses {:?}", summary.failures, summary.statuses).into())
}

fn median(figures: &[Figures], of: impl Fn(&Figures) -> f64) -> f64 {
    let mut all: Vec<f64> = figures.iter().map(of).collect();
    all.sort_unstable_by(f64::total_cmp);
    all[all.len() / 2]
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let program = args.first().ok_or("give the program `plimsoll`")?;
    let rounds: u32 = args.get(1).map_or(Ok(1), |text| text.parse())?;
    if let Some(most) = plimsoll_balancer::raise_open_file_limit().filter(|&most| most < 7000) {
        return Err(format!("7000 open files are needed, {most} allowed (`ulimit -Hn`)").into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let mut cluster = Cluster::start(program)?;
    let figures =
        (0..rounds.max(1)).map(|_| runtime.block_on(cluster.round())).collect::<Result<Vec<_>, _>>()?;
    let share = median(&figures, |f| f.good_share);
    println!("answered in time under overload, of the peak  {share:.2}     0.9: {}", met(share >= 0.9));
    let p99_ms = median(&figures, |f| f.refusals_p99_ms);
    println!(
        "99 % of refusals within                       {p99_ms:.0} ms   300 ms: {}",
        met(p99_ms <= 300.0)
    );
    let hang_s = median(&figures, |f| f.hang_longest_s);
    println!("longest answer while a back-end hangs         {hang_s:.2} s   3 s: {}", met(hang_s <= 3.0));
    let restart_s = median(&figures, |f| f.restart_s);
    println!(
        "first answer of a restarted back-end          {restart_s:.2} s   1 s: {}",
        met(restart_s <= 1.0)
    );
    Ok(())
}
