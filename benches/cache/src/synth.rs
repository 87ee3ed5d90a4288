//! A trace of independent, Zipf-distributed requests of objects with lognormal sizes.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::Args;
use rand::SeedableRng;
use rand_distr::{Distribution, LogNormal, Zipf};
use rand_pcg::Pcg64Mcg;

use crate::trace::{self, Request};

/// What the trace is to look like.
#[derive(Args)]
pub struct Shape {
    /// How many requests.
    #[arg(long, default_value_t = 10_000_000)]
    pub requests: u32,
    /// Of how many objects.
    #[arg(long, default_value_t = 1_000_000)]
    pub objects: u32,
    /// Zipf exponent of their popularity.
    #[arg(long, default_value_t = 0.9)]
    pub exponent: f64,
    /// Median size in bytes.
    #[arg(long, default_value_t = 4000.0)]
    pub median_bytes: f64,
    /// Standard deviation of the logarithm of the size.
    #[arg(long, default_value_t = 1.3)]
    pub sigma: f64,
    /// Seed.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Writes the trace: same shape, same bytes.
pub fn write(path: &Path, shape: &Shape) -> Result<()> {
    ensure!(shape.objects > 0, "--objects must be at least 1");
    let mut rng = Pcg64Mcg::seed_from_u64(shape.seed);
    let zipf = Zipf::new(f64::from(shape.objects), shape.exponent).context("--exponent")?;
    let size = LogNormal::new(shape.median_bytes.ln(), shape.sigma).context("--sigma")?;
    let size_bytes: Vec<u32> =
        (0..shape.objects).map(|_| size.sample(&mut rng).clamp(1.0, 1e9) as u32).collect();
    let ranks: Vec<u32> = (0..shape.requests).map(|_| zipf.sample(&mut rng) as u32 - 1).collect();
    let mut next = vec![-1; ranks.len()];
    let mut seen = vec![-1; size_bytes.len()];
    for (at, &rank) in ranks.iter().enumerate().rev() {
        next[at] = seen[rank as usize];
        seen[rank as usize] = at as i64;
    }
    let requests = ranks.iter().zip(next).enumerate().map(|(at, (&rank, next))| Request {
        time_s: (at / 1000) as u32,
        id: scatter(u64::from(rank)),
        size_bytes: size_bytes[rank as usize],
        next,
    });
    trace::write(path, requests)
}

/// A number that says nothing of the rank, one to one: objects in real traces come as hashes.
/// (The finishing steps of the `SplitMix64` generator, whose every step can be undone.)
fn scatter(rank: u64) -> u64 {
    let mut x = rank.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
