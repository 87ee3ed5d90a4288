//! CPU time per call of the client library, beside a direct call and tower's p2c with peak EWMA.
//!
//! A call does what takes no time of its own: it yields to the runtime once. So what is measured is the choice, its counts and its
//! end; for polls, also the datagrams. Sixteen replicas; they answer inquiries in a process of their own, whose CPU time does not
//! count. `plimsoll-bench-client CALLS` prints a line of JSON for each form.

use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use plimsoll_client::{
    Endpoint, ErrorClass, Key, LoadGauge, LoadPolling, LoadResponder, PlimsollBalance, ServiceClient,
};
use tower::Service;
use tower::balance::p2c::Balance;
use tower::discover::ServiceList;
use tower::load::{CompleteOnResponse, PeakEwma};

/// The outcome of anything that can go wrong here.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const REPLICAS: usize = 16;
/// Calls under way at a time.
const AT_ONCE: usize = 64;

fn key() -> Key {
    Key::new([7; 32])
}

fn main() -> Outcome<()> {
    let argument = std::env::args().nth(1).unwrap_or_default();
    if argument == "replicas" {
        return replicas();
    }
    let calls: usize = argument.parse().map_err(|_| "usage: plimsoll-bench-client CALLS")?;
    let (mut child, endpoints) = start_replicas()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measured = runtime.block_on(measure(calls, &endpoints));
    child.kill()?;
    child.wait()?;
    measured
}

/// Answers inquiries until standard input ends.
fn replicas() -> Outcome<()> {
    let mut running = Vec::new();
    for _ in 0..REPLICAS {
        running.push(LoadResponder::start("127.0.0.1:0".parse()?, &key(), LoadGauge::new())?);
    }
    let addresses: Vec<String> = running.iter().map(|responder| responder.address().to_string()).collect();
    println!("{}", addresses.join(" "));
    std::io::stdout().flush()?;
    std::io::stdin().lines().for_each(drop);
    Ok(())
}

fn start_replicas() -> Outcome<(Child, Vec<Endpoint>)> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("replicas")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let endpoint = |(number, address): (usize, &str)| -> Outcome<Endpoint> {
        let address = address.parse()?;
        Ok(Endpoint::new(format!("replica-{number}"), address).with_load_address(address))
    };
    let endpoints = line.split_whitespace().enumerate().map(endpoint).collect::<Outcome<Vec<_>>>()?;
    Ok((child, endpoints))
}

async fn work() -> Result<(), Infallible> {
    tokio::task::yield_now().await;
    Ok(())
}

async fn measure(calls: usize, endpoints: &[Endpoint]) -> Outcome<()> {
    let client = |policy: &str, polling: Option<LoadPolling>| {
        let builder = ServiceClient::builder().policy(policy).endpoints(endpoints.iter().cloned()).seed(1);
        match polling {
            Some(polling) => builder.load_polling(polling).build(),
            None => builder.build(),
        }
    };
    let direct = run("direct", calls, None, || async { work().await.is_ok() }).await;
    for policy in ["least_connections", "p2c", "peak_ewma"] {
        let client = client(policy, None)?;
        let call = || async { client.call_classified("", |_| ErrorClass::Lost, |_| work()).await.is_ok() };
        run(&format!("own counts, {policy}"), calls, Some(direct), call).await;
    }
    let mut polling = LoadPolling::new(key());
    polling.discard_after = Duration::from_millis(100);
    let client = client("random_polling:size=2", Some(polling))?;
    let call = || async { client.call_classified("", |_| ErrorClass::Lost, |_| work()).await.is_ok() };
    run("polls, random_polling:size=2", calls / 4, Some(direct), call).await;
    if client.ask_counts().discarded * 100 > client.ask_counts().taken {
        return Err(format!("more than 1 % of the answers were late: {:?}", client.ask_counts()).into());
    }

    // Both as they are used behind `&mut`: readiness, then the call.
    let services = || {
        let service = || tower::service_fn(|()| work());
        let ewma = |_| {
            let (start, decay) = (Duration::from_millis(1), Duration::from_secs(10));
            PeakEwma::new(service(), start, decay.as_secs_f64() * 1e9, CompleteOnResponse::default())
        };
        (0..REPLICAS).map(ewma).collect::<Vec<_>>()
    };
    let mut p2c = Balance::<_, ()>::new(ServiceList::new::<()>(services()));
    run_service("tower p2c + PeakEwma", calls, direct, &mut p2c).await?;
    let plain: Vec<_> = (0..REPLICAS).map(|_| tower::service_fn(|()| work())).collect();
    let policy = "p2c".parse().map_err(|error| format!("{error}"))?;
    let mut ours = PlimsollBalance::<_, ()>::new(ServiceList::new::<()>(plain), &policy, 1)?;
    run_service("PlimsollBalance, p2c", calls, direct, &mut ours).await?;
    Ok(())
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn print(name: &str, calls: usize, failed: usize, cpu: Duration, wall: Duration, direct: Option<f64>) -> f64 {
    let us = cpu.as_secs_f64() * 1e6 / calls as f64;
    let above = us - direct.unwrap_or(us);
    let rate = calls as f64 / wall.as_secs_f64();
    println!(
        "{{\"form\": \"{name}\", \"calls\": {calls}, \"failed\": {failed}, \"cpu_us_per_call\": {us:.3}, \
         \"above_direct_us\": {above:.3}, \"calls_per_s\": {rate:.0}}}"
    );
    us
}

/// Makes calls, [`AT_ONCE`] at a time; CPU time per call in microseconds.
async fn run<F: Future<Output = bool>>(
    name: &str,
    calls: usize,
    direct: Option<f64>,
    call: impl Fn() -> F,
) -> f64 {
    let (began, wall) = (cpu_time(), Instant::now());
    let (mut under_way, mut begun, mut failed) = (FuturesUnordered::new(), 0, 0);
    while begun < calls || !under_way.is_empty() {
        while begun < calls && under_way.len() < AT_ONCE {
            under_way.push(call());
            begun += 1;
        }
        failed += usize::from(under_way.next().await == Some(false));
    }
    print(name, calls, failed, cpu_time() - began, wall.elapsed(), direct)
}

async fn run_service<S>(name: &str, calls: usize, direct: f64, service: &mut S) -> Outcome<()>
where
    S: Service<(), Error = tower::BoxError>,
{
    let (began, wall) = (cpu_time(), Instant::now());
    let (mut under_way, mut begun, mut failed) = (FuturesUnordered::new(), 0, 0);
    while begun < calls || !under_way.is_empty() {
        while begun < calls && under_way.len() < AT_ONCE {
            std::future::poll_fn(|context| service.poll_ready(context)).await?;
            under_way.push(service.call(()));
            begun += 1;
        }
        failed += usize::from(under_way.next().await.is_some_and(|result| result.is_err()));
    }
    print(name, calls, failed, cpu_time() - began, wall.elapsed(), Some(direct));
    Ok(())
}
