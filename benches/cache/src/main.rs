//! Writes a Zipf trace in libCacheSim's oracleGeneral format, and runs Plimsoll's caches over
//! such a trace.

mod synth;
mod trace;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Parser;
use plimsoll_cache::{Cache, Fifo, GreedyDualSize, GreedyDualSizeFrequency, Lfu, Lru, find};
use rustix::time::{ClockId, clock_gettime};

/// The cache crate on an oracleGeneral trace.
#[derive(Parser)]
enum Command {
    /// Write a trace of Zipf-distributed requests.
    Synth {
        /// The file to write.
        path: PathBuf,
        #[command(flatten)]
        shape: synth::Shape,
    },
    /// Run one cache over a trace and print requests, misses and requests per CPU-second.
    Run {
        /// The kind of cache.
        cache: String,
        /// Its capacity in bytes.
        capacity_bytes: u64,
        /// The trace.
        path: PathBuf,
    },
}

fn main() -> Result<()> {
    match Command::parse() {
        Command::Synth { path, shape } => synth::write(&path, &shape),
        Command::Run { cache, capacity_bytes, path } => run(&cache, capacity_bytes, &path),
    }
}

/// Measures all there is: opening and reading the file, building the cache and every request.
fn run(name: &str, capacity_bytes: u64, path: &Path) -> Result<()> {
    let name = find(name)?.name;
    let start_s = cpu_s();
    let (requests, misses) = match name {
        "lru" => replay(Lru::new(capacity_bytes, None), path)?,
        "fifo" => replay(Fifo::new(capacity_bytes, None), path)?,
        "lfu" => replay(Lfu::new(capacity_bytes, None), path)?,
        "gds" => replay(GreedyDualSize::new(capacity_bytes, None), path)?,
        "gdsf" => replay(GreedyDualSizeFrequency::new(capacity_bytes, None), path)?,
        other => bail!("this benchmark does not know the cache \"{other}\""),
    };
    let spent_s = cpu_s() - start_s;
    let per_s = requests as f64 / spent_s;
    println!("{name} {requests} {misses} {spent_s:.4} {per_s:.0}");
    Ok(())
}

fn replay(mut cache: impl Cache, path: &Path) -> Result<(u64, u64)> {
    let (mut requests, mut misses) = (0, 0);
    let mut evicted = Vec::new();
    trace::for_each(path, |id, size_bytes| {
        requests += 1;
        misses += u64::from(!cache.request(id, u64::from(size_bytes), &mut evicted));
        evicted.clear();
    })?;
    Ok((requests, misses))
}

/// CPU time of this process in seconds.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
