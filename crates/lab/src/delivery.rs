//! Ways in which packets come to the front-end's CPU and leave it, and the settings that choose among them: for measurements that are
//! not to depend on an interrupt for each packet, of which network cards raise one for many.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::commands;
use crate::{CpuPlan, Lab, LabError, Node};

/// One way.
#[derive(Debug, Clone, Copy)]
pub struct Delivery {
    /// What it is called.
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

const ARRIVING_LATER: Delivery =
    Delivery { name: "arriving ones each 100 us", arriving_ns: LATER_NS, ..THREADS };
const ALL_LATER: Delivery =
    Delivery { name: "all each 100 us", arriving_ns: LATER_NS, leaving_ns: LATER_NS, ..THREADS };

/// An interrupt for each packet, and for groups of packets, as from a network card that coalesces interrupts.
pub const DELIVERIES_ONE_AND_MANY: [Delivery; 3] = [RPS, ARRIVING_LATER, ALL_LATER];

/// The first one is that to which others are compared.
const DELIVERIES: [Delivery; 7] = [
    RPS,
    CABLE,
    THREADS,
    ARRIVING_LATER,
    ALL_LATER,
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
#[derive(Debug)]
pub struct KernelSetting {
    file: PathBuf,
    before: String,
}

impl KernelSetting {
    fn of(file: impl Into<PathBuf>) -> Result<Self, LabError> {
        let file = file.into();
        let before = fs::read_to_string(&file)
            .map_err(|error| LabError::system(format!("read {}", file.display()), error))?;
        Ok(Self { file, before })
    }

    fn set(&self, text: &str) -> Result<(), LabError> {
        write(&self.file, text)
    }
}

impl Drop for KernelSetting {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.file, &self.before) {
            eprintln!("{} is not {} again: {error}", self.file.display(), self.before.trim());
        }
    }
}

fn write(file: &Path, text: &str) -> Result<(), LabError> {
    fs::write(file, text)
        .map_err(|error| LabError::system(format!("write {text} to {}", file.display()), error))
}

/// Has programs that start from now on share CPUs one by one and not by session: the kernel's threads are in none, and
/// would share a CPU with all others together, those included that only wait there.
///
/// # Errors
/// The system's.
pub fn ungroup() -> Result<KernelSetting, LabError> {
    let setting = KernelSetting::of(AUTOGROUP)?;
    setting.set("0")?;
    Ok(setting)
}

/// Puts deliveries in force on labs, for the node of the front-end. Dropping it sets the machine's settings back; the labs are not for
/// use afterwards.
#[derive(Debug)]
pub struct Deliverer<'a> {
    ports: Vec<CableEnd<'a>>,
    busy_poll: KernelSetting,
    /// Machines that are not virtual have none.
    halt_poll: Option<KernelSetting>,
}

impl<'a> Deliverer<'a> {
    /// For labs that were built with this plan.
    ///
    /// # Errors
    /// The system's, and that `ethtool` or `taskset` is missing.
    pub fn new(labs: impl IntoIterator<Item = &'a Lab>, plan: &CpuPlan) -> Result<Self, LabError> {
        commands::need("ethtool")?;
        commands::need("taskset")?;
        let mut ports = Vec::new();
        for lab in labs {
            ports.push(CableEnd::new(lab, Node::FrontEnd, "eth0", plan.front_end)?);
            ports.push(CableEnd::new(lab, Node::Switch, "front-end", plan.others[0])?);
        }
        Ok(Self {
            ports,
            busy_poll: KernelSetting::of(BUSY_POLL)?,
            halt_poll: KernelSetting::of(HALT_POLL).ok(),
        })
    }

    /// The deliveries that this machine has.
    #[must_use]
    pub fn deliveries(&self) -> Vec<&'static Delivery> {
        DELIVERIES.iter().filter(|delivery| delivery.halt_poll_ns == 0 || self.halt_poll.is_some()).collect()
    }

    /// Puts this one in force.
    ///
    /// # Errors
    /// The system's.
    pub fn apply(&self, delivery: &Delivery) -> Result<(), LabError> {
        for port in &self.ports {
            port.apply(delivery)?;
        }
        self.busy_poll.set(&delivery.busy_poll_us.to_string())?;
        self.halt_poll.as_ref().map_or(Ok(()), |setting| setting.set(&delivery.halt_poll_ns.to_string()))
    }
}

/// One end of the front-end's cable.
#[derive(Debug)]
struct CableEnd<'a> {
    lab: &'a Lab,
    node: Node,
    name: &'static str,
    /// On which its packets arrive.
    cpu: usize,
    steering: KernelSetting,
}

impl<'a> CableEnd<'a> {
    fn new(lab: &'a Lab, node: Node, name: &'static str, cpu: usize) -> Result<Self, LabError> {
        let files = lab.node(node)?.root().join("sys/class/net").join(name);
        Ok(Self { lab, node, name, cpu, steering: KernelSetting::of(files.join("queues/rx-0/rps_cpus"))? })
    }

    fn apply(&self, delivery: &Delivery) -> Result<(), LabError> {
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
        let files = self.lab.node(self.node)?.root().join("sys/class/net").join(self.name);
        write(&files.join("threaded"), "1")?;
        for thread in napi_threads()?.difference(&before) {
            let mut pin = Command::new("taskset");
            commands::run(pin.args(["--cpu-list", "--pid", &self.cpu.to_string(), thread]), "")?;
        }
        let again_ns = if self.node == Node::FrontEnd { delivery.arriving_ns } else { delivery.leaving_ns };
        write(&files.join("gro_flush_timeout"), &again_ns.to_string())?;
        write(&files.join("napi_defer_hard_irqs"), if again_ns > 0 { "2" } else { "0" })
    }

    fn ethtool(&self, features: &[&str]) -> Result<(), LabError> {
        let mut command = self.lab.node(self.node)?.command("ethtool");
        commands::run(command.args(["-K", self.name]).args(features), "").map(drop)
    }
}

/// The process ids of the kernel's threads that fetch packets.
fn napi_threads() -> Result<BTreeSet<String>, LabError> {
    let failed = |error| LabError::system("list /proc", error);
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc").map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        // A process may end meanwhile.
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        if name.starts_with("napi/") {
            found.extend(path.file_name().map(|id| id.to_string_lossy().into_owned()));
        }
    }
    Ok(found)
}
