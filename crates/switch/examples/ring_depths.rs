//! How evenly a policy spreads connections whose choices are made ahead: open connections of eight back-ends, for rings of 1 to 64
//! choices, by the real packet program. Needs root; sends nothing.
//!
//! ```text
//! cargo run --release -p plimsoll-switch --example ring_depths [connections [seeds]]
//! ```
//!
//! Connections begin one after the other at one CPU and last for exponential times, in random order by a seed; 400 are open at a
//! time. "Apart": a connection begins once the ring is full again. "At once": as soon as there is a choice, so that rings run empty. What
//! is told is how many more than the mean the fullest back-end has, in percent of the mean, averaged over beginnings.

#![allow(clippy::print_stdout, reason = "it prints its results")]

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use plimsoll_datapath::NextHop;
use plimsoll_datapath::switch::{ChoiceRings, FrameTag, Switch, SwitchConfig, SwitchHook, Transport};
use plimsoll_policy::{BackendId, Rng};
use plimsoll_switch::{
    ConnTimes, SwitchBackend, SwitchBackendState, SwitchCommand, SwitchLoop, SwitchOptions,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

#[path = "ring_depths/own_core.rs"]
mod own_core;

use own_core::OwnCore;

const BACKENDS: u8 = 8;
const OPEN: f64 = 400.0;
const DEPTHS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const PATIENCE: Duration = Duration::from_secs(5);

const SYN: u8 = 2;
const ACK: u8 = 0x10;
const FIN_ACK: u8 = 0x11;

type Failure = Box<dyn Error + Send + Sync>;

fn frame(number: u32, flags: u8, seq: u32) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend((0x0b00_0000 + number).to_be_bytes());
    frame.extend([10, 0, 0, 1, 0x12, 0x34, 0, 80]);
    frame.extend(seq.to_be_bytes());
    frame.extend([0, 0, 0, 0, 0x50, flags, 0x20, 0, 0, 0, 0, 0]);
    frame
}

/// A packet program before eight back-ends, at no interface.
struct Bed {
    switch: Arc<Switch>,
    rings: ChoiceRings,
    cpu: usize,
}

impl Bed {
    fn send(&self, number: u32, flags: u8, seq: u32) -> Result<u8, Failure> {
        let trial = self.switch.try_frame(SwitchHook::Tc, &frame(number, flags, seq), 1)?;
        trial.frame.get(5).copied().filter(|backend| *backend < BACKENDS).ok_or("no back-end got it".into())
    }

    /// Waits until the ring has so many choices.
    fn wait(&self, choices: usize) -> Result<(), Failure> {
        let begun = Instant::now();
        while self.rings.len(self.cpu) < choices {
            if begun.elapsed() > PATIENCE {
                return Err("the ring is not filled".into());
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Begins connections, each once the ring has `needed` choices, and ends them. Returns by how much the fullest back-end exceeds the
    /// mean, in percent.
    fn run(&self, connections: u32, seed: u64, needed: usize) -> Result<f64, Failure> {
        let mut random = Rng::new(seed, 0);
        let (mut ends, mut open) = (BTreeMap::new(), [0_u32; BACKENDS as usize]);
        let (mut now, mut excess, mut measured) = (0.0, 0.0, 0_u32);
        for number in 0..connections {
            now += random.exponential();
            while let Some((&at, &(ending, backend))) = ends.first_key_value()
                && f64::from_bits(at) <= now
            {
                ends.remove(&at);
                self.send(ending, FIN_ACK, 101)?;
                open[usize::from(backend)] -= 1;
            }
            // A ring is as deep as it may be once connections begin at its CPU.
            self.wait(if number == 0 { 1 } else { needed })?;
            let backend = self.send(number, SYN, 100)?;
            self.send(number, ACK, 101)?;
            open[usize::from(backend)] += 1;
            // Times above 0 are in the order of their bits.
            ends.insert((now + OPEN * random.exponential()).to_bits(), (number, backend));
            if f64::from(number) > 3.0 * OPEN {
                let mean = f64::from(open.iter().sum::<u32>()) / f64::from(BACKENDS);
                excess += f64::from(open.into_iter().max().unwrap_or(0)) / mean - 1.0;
                measured += 1;
            }
        }
        for (ending, _) in ends.into_values() {
            self.send(ending, FIN_ACK, 101)?;
        }
        if self.switch.counters()?.hashed > 0 {
            return Err("the hash placed a connection".into());
        }
        Ok(100.0 * excess / f64::from(measured.max(1)))
    }
}

fn backends() -> Vec<SwitchBackend> {
    let one = |backend: u8| SwitchBackend {
        id: BackendId::new(backend.into()),
        key: u64::from(backend) + 1,
        weight: 1000,
        state: SwitchBackendState::Up,
        next_hop: Some(NextHop { ifindex: 1, mac: [2, 0, 0, 0, 0, backend], own_mac: [2, 0, 0, 0, 1, 0] }),
        tunnel: None,
        tag: FrameTag::Kept,
    };
    (0..BACKENDS).map(one).collect()
}

/// Frames are tried on one CPU, whose ring is used; the loop has all of them.
struct Cpus {
    all: CpuSet,
    one: CpuSet,
    number: usize,
}

impl Cpus {
    fn find() -> Result<Self, Failure> {
        let all = sched_getaffinity(None)?;
        let number = (0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu)).ok_or("no CPU")?;
        let mut one = CpuSet::new();
        one.set(number);
        Ok(Self { all, one, number })
    }
}

/// The mean over the seeds of what [`Bed::run`] tells.
fn measured(
    cpus: &Cpus,
    (policy, depth, apart): (&str, usize, bool),
    (connections, seeds): (u32, u64),
) -> Result<f64, Failure> {
    let config = SwitchConfig {
        instance: format!("rings{}", std::process::id()),
        interfaces: Vec::new(),
        hook: SwitchHook::Auto,
        connections: 100_000,
        opening: 10_000,
        sample_bytes: 0,
    };
    let mut mean = 0.0;
    for seed in 1..=seeds {
        let switch = Arc::new(Switch::open_for(&config, None)?);
        let options = SwitchOptions { depth, times: ConnTimes::default(), seed };
        let (sender, receiver) = channel();
        let service: SocketAddr = ([10, 0, 0, 1], 80).into();
        sender.send(SwitchCommand::Services(vec![(service, Transport::Tcp)]))?;
        sender.send(SwitchCommand::Backends(backends()))?;
        let running = SwitchLoop::new(Arc::clone(&switch), OwnCore::new(policy, BACKENDS.into())?, options)?;
        sched_setaffinity(None, &cpus.all)?;
        let thread = std::thread::spawn(move || running.run(&receiver, |_| {}));
        sched_setaffinity(None, &cpus.one)?;
        let bed = Bed { rings: switch.choices()?, switch, cpu: cpus.number };
        let found = bed.run(connections, seed, if apart { depth } else { 1 });
        drop(sender);
        thread.join().map_err(|_| "the loop panicked")??;
        bed.switch.clear_and_detach()?;
        mean += found? / seeds as f64;
    }
    Ok(mean)
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let connections = arguments.next().map_or(Ok(6000), |text| text.parse())?;
    let seeds: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let (size, cpus) = ((connections, seeds), Cpus::find()?);
    println!("| Choices | Apart | At once |\n| --- | --- | --- |");
    for depth in DEPTHS {
        let apart = measured(&cpus, ("least_connections", depth, true), size)?;
        let at_once = measured(&cpus, ("least_connections", depth, false), size)?;
        println!("| {depth} | {apart:.1} % | {at_once:.1} % |");
    }
    let turn = measured(&cpus, ("round_robin", 8, true), size)?;
    println!("round_robin: {turn:.1} %");
    Ok(())
}
