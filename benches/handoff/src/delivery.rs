//! Ways in which packets come to the front-end's CPU and leave it, and the settings that choose among them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use plimsoll_lab::{CpuPlan, Node};

use crate::bed::Bed;
use crate::cost::Beds;

/// One way.
#[derive(Debug, Clone, Copy)]
pub struct Delivery {
    pub name: &'static str,
    /// Packets have checksums and the size that a cable allows: only then do these interfaces have NAPI for TCP.
    as_on_cable: bool,
    /// Kernel threads (threaded NAPI) fetch packets, one on the front-end's CPU and one on another, instead of RPS.
    threads: bool,
    /// After its last packet, the thread for packets that arrive looks again after this time, twice, before it has to be
    /// woken.
    arriving_ns: u32,
    /// The same for packets that leave the front-end.
    leaving_ns: u32,
    /// For so long a process that waits for events asks the interface for packets itself.
    busy_poll_us: u32,
    /// For so long a CPU that has nothing to do waits for work before it sleeps.
    halt_poll_ns: u32,
}

/// As everywhere else here.
const RPS: Delivery = Delivery {
    name: "RPS",
    as_on_cable: false,
    threads: false,
    arriving_ns: 0,
    leaving_ns: 0,
    busy_poll_us: 0,
    halt_poll_ns: 0,
};
const CABLE: Delivery = Delivery { name: "RPS, packets as on a cable", as_on_cable: true, ..RPS };
const THREADS: Delivery = Delivery { name: "threads", threads: true, ..CABLE };
const LATER_NS: u32 = 100_000;

/// The first one is that to which others are compared.
const DELIVERIES: [Delivery; 7] = [
    RPS,
    CABLE,
    THREADS,
    Delivery { name: "arriving ones each 100 us", arriving_ns: LATER_NS, ..THREADS },
    Delivery { name: "all each 100 us", arriving_ns: LATER_NS, leaving_ns: LATER_NS, ..THREADS },
    Delivery {
        name: "the same, busy polling 50 us",
        arriving_ns: LATER_NS,
        leaving_ns: LATER_NS,
        busy_poll_us: 50,
        ..THREADS
    },
    Delivery { name: "RPS, CPUs poll before sleep", halt_poll_ns: 200_000, ..RPS },
];

const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";
const BUSY_POLL: &str = "/proc/sys/net/core/busy_poll";
const HALT_POLL: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";

/// A setting of the kernel, set back when this is dropped.
pub struct Setting {
    file: PathBuf,
    before: String,
}

impl Setting {
    fn of(file: impl Into<PathBuf>) -> Result<Self> {
        let file = file.into();
        let before = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        Ok(Self { file, before })
    }

    fn set(&self, text: &str) -> Result<()> {
        write(&self.file, text)
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.file, &self.before) {
            eprintln!("{} is not {} again: {error}", self.file.display(), self.before.trim());
        }
    }
}

fn write(file: &PathBuf, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("write {text} to {}", file.display()))
}

/// Has programs that start from now on share CPUs one by one and not by session: the kernel's threads are in none, and
/// would share a CPU with all others together, those included that only wait there.
pub fn ungroup() -> Result<Setting> {
    let setting = Setting::of(AUTOGROUP)?;
    setting.set("0")?;
    Ok(setting)
}

/// Puts deliveries in force on labs. Dropping it sets the machine's settings back; the labs are not for use afterwards.
pub struct Deliverer<'a> {
    ports: Vec<Port<'a>>,
    busy_poll: Setting,
    /// Machines that are not virtual have none.
    halt_poll: Option<Setting>,
}

impl<'a> Deliverer<'a> {
    pub fn new(beds: &'a Beds, plan: &CpuPlan) -> Result<Self> {
        let mut ports = Vec::new();
        for bed in beds.values() {
            ports.push(Port::new(bed, Node::FrontEnd, "eth0", plan.front_end)?);
            ports.push(Port::new(bed, Node::Switch, "front-end", plan.others[0])?);
        }
        Ok(Self { ports, busy_poll: Setting::of(BUSY_POLL)?, halt_poll: Setting::of(HALT_POLL).ok() })
    }

    /// The deliveries that this machine has.
    pub fn deliveries(&self) -> Vec<&'static Delivery> {
        DELIVERIES.iter().filter(|delivery| delivery.halt_poll_ns == 0 || self.halt_poll.is_some()).collect()
    }

    pub fn apply(&self, delivery: &Delivery) -> Result<()> {
        for port in &self.ports {
            port.apply(delivery).with_context(|| delivery.name)?;
        }
        self.busy_poll.set(&delivery.busy_poll_us.to_string())?;
        self.halt_poll.as_ref().map_or(Ok(()), |setting| setting.set(&delivery.halt_poll_ns.to_string()))
    }
}

/// One end of the front-end's cable.
struct Port<'a> {
    bed: &'a Bed,
    node: Node,
    name: &'static str,
    /// On which its packets arrive.
    cpu: usize,
    steering: Setting,
}

impl<'a> Port<'a> {
    fn new(bed: &'a Bed, node: Node, name: &'static str, cpu: usize) -> Result<Self> {
        let files = bed.lab().node(node)?.root().join("sys/class/net").join(name);
        Ok(Self { bed, node, name, cpu, steering: Setting::of(files.join("queues/rx-0/rps_cpus"))? })
    }

    fn apply(&self, delivery: &Delivery) -> Result<()> {
        // An interface of this kind has NAPI as long as it has GRO, for packets that the other end has cut already.
        self.ethtool(&["gro", "off"])?;
        if delivery.as_on_cable {
            self.ethtool(&["tx", "off"])?;
        } else {
            self.ethtool(&["tx", "on", "tso", "on", "gso", "on"])?;
        }
        if !delivery.threads {
            return self.steering.set(&self.steering.before);
        }
        self.steering.set("0")?;
        let before = napi_threads()?;
        self.ethtool(&["gro", "on"])?;
        let files = self.bed.lab().node(self.node)?.root().join("sys/class/net").join(self.name);
        write(&files.join("threaded"), "1")?;
        for thread in napi_threads()?.difference(&before) {
            run(Command::new("taskset").args(["--cpu-list", "--pid", &self.cpu.to_string(), thread]))?;
        }
        let again_ns = if self.node == Node::FrontEnd { delivery.arriving_ns } else { delivery.leaving_ns };
        write(&files.join("gro_flush_timeout"), &again_ns.to_string())?;
        write(&files.join("napi_defer_hard_irqs"), if again_ns > 0 { "2" } else { "0" })
    }

    fn ethtool(&self, features: &[&str]) -> Result<()> {
        run(self.bed.lab().node(self.node)?.command("ethtool").args(["-K", self.name]).args(features))
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The process ids of the kernel's threads that fetch packets.
fn napi_threads() -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        // A process may end meanwhile.
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        if name.starts_with("napi/") {
            found.extend(path.file_name().map(|id| id.to_string_lossy().into_owned()));
        }
    }
    Ok(found)
}
