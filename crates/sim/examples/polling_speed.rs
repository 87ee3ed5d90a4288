//! 16 FIFO back-ends at 90 % load, of which front-ends ask two for their load before each choice, with network delays and
//! discarded answers: `polling_speed [REQUESTS] [FRONT_ENDS] [LATE_SHARE] [SEED] [POLICY]` prints one JSON line with the mean response time and
//! the requests simulated per second of CPU time.

use plimsoll_policy::{AdmissionControl, BuildContext, Cluster, Core, Inquiries, Nanos, TargetId, build};
use plimsoll_sim::models::fifo::{FifoModel, FifoParams};
use plimsoll_sim::{
    Arrivals, CacheConfig, Dealing, FrontEndsSetup, LoadInformation, Partitions, PollParams, Recording,
    RunConfig, SimRequest, Simulation, Targets,
};

#[path = "../../../benches/common/cpu_time.rs"]
mod cpu_time;

const BACKENDS: usize = 16;
const LOAD: f64 = 0.9;
const SERVICE: Nanos = Nanos::from_millis(50);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let requests: usize = args.next().as_deref().unwrap_or("10000000").parse()?;
    let front_ends: u16 = args.next().as_deref().unwrap_or("1").parse()?;
    // The probability with which a busy back-end reads an inquiry late.
    let late_share: f64 = args.next().as_deref().unwrap_or("0.13").parse()?;
    let seed: u64 = args.next().as_deref().unwrap_or("1").parse()?;
    let policy = args.next().unwrap_or_else(|| "random_polling".to_owned());

    let request = SimRequest::default();
    let targets = Targets::new(vec![TargetId(0)], vec![0], &[1]);
    let config = RunConfig {
        seed,
        arrivals: Arrivals::Poisson { rate_rps: LOAD * BACKENDS as f64 / SERVICE.as_secs_f64() },
        warmup: 0,
        settles: false,
        idle_below: 1.0,
        poll_time: Nanos::ZERO,
        faults: &[],
        hot_spots: &[],
        targets: &targets,
    };
    let core = |front_end: u16| {
        let seed = seed + u64::from(front_end);
        let policy = build(&policy, &BuildContext { seed, ..BuildContext::default() }, &[]);
        let mut core = Core::new(policy?, Cluster::new(BACKENDS), AdmissionControl::UNLIMITED);
        core.set_inquiries(Some(Inquiries { size: 2, seed }));
        Ok::<_, Box<dyn std::error::Error>>(core)
    };
    let polling = PollParams { late_share, ..PollParams::default() };
    let setup = FrontEndsSetup {
        load_information: LoadInformation::Poll(polling),
        count: front_ends,
        dealing: Dealing::AtRandom,
        hop: Nanos::ZERO,
        exchange_interval: Nanos::ZERO,
        partitions: Partitions::default(),
    };
    let others = (1..front_ends).map(core).collect::<Result<Vec<Core>, _>>()?;
    let params =
        FifoParams { service_s: SERVICE, latency_s: Nanos::from_micros(258), ..FifoParams::default() };
    let model = FifoModel::new(params, BACKENDS, seed);
    let simulation = Simulation {
        config: &config,
        recording: Recording::default(),
        core: core(0)?,
        front_ends: Some((setup, others)),
        cache: CacheConfig {
            spec: &plimsoll_cache::caches::lru::SPEC,
            capacity_bytes: 0,
            object_limit_bytes: None,
        },
        source: &mut (0..requests).map(|_| Ok(request)),
        observer: &mut (),
    };

    let before_s = cpu_time::cpu_s()?;
    let outcome = simulation.run(model).map_err(|error| format!("{error:?}"))?;
    let cpu_s = cpu_time::cpu_s()? - before_s;
    let messages = outcome.load_messages;
    println!(
        r#"{{"requests":{requests},"front_ends":{front_ends},"mean_response_ms":{:.3},"discarded":{:.4},"cpu_s":{cpu_s:.4},"requests_per_cpu_s":{:.0}}}"#,
        outcome.response_ns.mean().unwrap_or(f64::NAN) / 1e6,
        messages.discarded as f64 / messages.inquiries.max(1) as f64,
        requests as f64 / cpu_s
    );
    Ok(())
}
