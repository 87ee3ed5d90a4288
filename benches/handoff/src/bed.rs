//! A lab with everything on it that one kind of front-end needs.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use plimsoll_lab::{CpuPlan, Lab, LabConfig, Node, Process};

use crate::configs::{self, FrontEnd};
use crate::documents::{self, DOCUMENTS, path};
use crate::http::{Client, metrics, sum};
use crate::least;

/// How long everything may take to start.
const STARTING: Duration = Duration::from_secs(20);

/// What runs on a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// HAProxy, nginx and Plimsoll as proxies, nginx as back-ends.
    Proxies,
    /// Plimsoll hands off to agents with the origin.
    Origin,
    /// Plimsoll hands off to agents, beside each of which is an nginx with the shim.
    Shim,
    /// Plimsoll distributes connections at layer 4.
    Direct,
    /// The same with a policy that has what passes read.
    Sniffed,
    /// HAProxy in TCP mode.
    Tcp,
    /// Address translation by nftables.
    Nat,
    /// The least that distributes at layer 4, see `least.rs`.
    Least,
}

impl Kind {
    fn has_agents(self) -> bool {
        matches!(self, Self::Origin | Self::Shim)
    }

    /// Whether back-ends have the virtual address.
    fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::Sniffed | Self::Least)
    }

    /// Whether Plimsoll is there, which has counters.
    pub fn has_metrics(self) -> bool {
        !matches!(self, Self::Tcp | Self::Nat | Self::Least)
    }
}

/// A running lab. Dropping it ends everything on it.
pub struct Bed {
    kind: Kind,
    plan: CpuPlan,
    /// The node that has a CPU to itself.
    measured: Node,
    plimsoll: PathBuf,
    processes: Vec<(String, PathBuf, Process)>,
    lab: Lab,
}

impl Bed {
    /// Builds it and waits until everything answers. The node `measured` gets the CPU that is measured.
    pub fn start(
        kind: Kind,
        plimsoll: &Path,
        plan: &CpuPlan,
        measured: Node,
        backends: usize,
    ) -> Result<Self> {
        let lab = Lab::build(&LabConfig { backends, cpus: Some(plan.clone()), ..LabConfig::default() })?;
        let (plan, plimsoll) = (plan.clone(), plimsoll.to_path_buf());
        let mut bed = Self { kind, plan, measured, plimsoll, processes: Vec::new(), lab };
        bed.prepare()?;
        bed.start_backends()?;
        bed.start_front_ends()?;
        bed.wait_until_ready(backends)?;
        Ok(bed)
    }

    /// What is on it.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The lab.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The process of the first program that runs in the front-end's node.
    pub fn front_end_process(&self) -> Option<u32> {
        let found = self.processes.iter().find(|(name, ..)| name.ends_with(" in front-end"));
        found.map(|(_, _, process)| process.id())
    }

    /// Where clients connect at this port.
    pub fn target(&self, port: u16) -> SocketAddr {
        (self.lab.virtual_address(), port).into()
    }

    /// A command in a node, on the CPU that the node has here.
    pub fn command(&self, node: Node, program: &str) -> Result<std::process::Command> {
        let mut command = self.lab.node(node)?.command("taskset");
        let cpus: Vec<String> = self.cpus(node).iter().map(usize::to_string).collect();
        command.args(["--cpu-list", &cpus.join(","), program]);
        Ok(command)
    }

    fn cpus(&self, node: Node) -> &[usize] {
        if node == self.measured { self.plan.of(Node::FrontEnd) } else { self.plan.of(Node::Client) }
    }

    /// The counters of Plimsoll's front-end with this port.
    pub fn metrics(&self, port: u16) -> Result<String> {
        self.lab.node(Node::FrontEnd)?.run(|| metrics(configs::admin(port)))?
    }

    /// Plimsoll's front-ends.
    fn front_ends(&self) -> &'static [FrontEnd] {
        match self.kind {
            Kind::Proxies => &configs::BESIDE_PROXIES,
            Kind::Origin => &configs::BEFORE_AGENTS,
            Kind::Shim => &configs::BEFORE_AGENTS[..1],
            Kind::Direct => &configs::AT_LAYER_4[..1],
            Kind::Sniffed => &configs::AT_LAYER_4[1..],
            Kind::Tcp | Kind::Nat | Kind::Least => &[],
        }
    }

    fn backends(&self) -> Result<Vec<(String, Ipv4Addr)>> {
        let all = 0..self.lab.config().backends;
        all.map(|n| Ok((Node::Backend(n).to_string(), self.lab.node(Node::Backend(n))?.address()))).collect()
    }

    /// Key and documents in every node, packets to the right CPU, and ports enough for many connections.
    fn prepare(&self) -> Result<()> {
        let key = key()?;
        for node in self.lab.nodes() {
            let path = node.root().join("run/key");
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            writeln!(file, "{key}")?;
            if matches!(node.node(), Node::Backend(_) | Node::FrontEnd) {
                documents::write(node)?;
            }
            if self.measured != Node::FrontEnd {
                let first = self.cpus(node.node()).iter().filter(|cpu| **cpu < 32);
                let mask: u32 = first.map(|cpu| 1 << cpu).sum();
                let steering = node.root().join("sys/class/net/eth0/queues/rx-0/rps_cpus");
                if steering.exists() {
                    fs::write(steering, format!("{mask:x}"))?;
                }
            }
        }
        let range = || fs::write("/proc/sys/net/ipv4/ip_local_port_range", "2000 65000");
        self.lab.node(Node::Client)?.run(range)?.context("widen the range of the client's ports")
    }

    fn start_backends(&mut self) -> Result<()> {
        for (number, (name, own)) in self.backends()?.into_iter().enumerate() {
            let node = Node::Backend(number);
            if self.kind.is_direct() {
                // Packets come with this address, and answers leave with it; only the front-end says who has it.
                let vip = format!("{}/32", self.lab.virtual_address());
                self.system(
                    node,
                    &["sysctl", "-qw", "net.ipv4.conf.all.arp_ignore=1", "net.ipv4.conf.all.arp_announce=2"],
                )?;
                self.system(node, &["ip", "address", "add", &vip, "dev", "lo"])?;
            }
            if self.kind != Kind::Origin {
                let own = if self.kind.is_direct() { Ipv4Addr::UNSPECIFIED } else { own };
                let text = configs::nginx_backend(&name, own, self.kind == Kind::Shim);
                self.write(node, "nginx.conf", &text)?;
                let mut nginx = "nginx";
                let mut arguments = vec!["-e", "/run/nginx.err", "-c", "/run/nginx.conf"];
                if self.kind == Kind::Shim {
                    self.make_shim(node)?;
                    arguments.splice(0..0, ["LD_PRELOAD=/run/shim.so", "nginx"]);
                    nginx = "env";
                }
                self.spawn(node, nginx, &arguments)?;
            }
            if self.kind.has_agents() {
                self.start_agent(node, &name, own)?;
            }
        }
        Ok(())
    }

    fn make_shim(&self, node: Node) -> Result<()> {
        let done = self
            .command(node, self.program())?
            .args(["shim", "/run/shim.so"])
            .stdout(Stdio::null())
            .status()?;
        if done.success() { Ok(()) } else { bail!("plimsoll shim: {done}") }
    }

    fn program(&self) -> &str {
        self.plimsoll.to_str().unwrap_or("plimsoll")
    }

    fn start_agent(&mut self, node: Node, name: &str, own: Ipv4Addr) -> Result<()> {
        let of_front_ends = self.front_ends().iter().filter(|f| f.hands_off()).map(|front_end| {
            let from = format!("{}={}", front_end.name, self.lab.node(Node::FrontEnd)?.address());
            Ok([from, format!("{}:{}", self.lab.virtual_address(), front_end.port)])
        });
        let of_front_ends: Vec<[String; 2]> = of_front_ends.collect::<Result<_>>()?;
        let listen = format!("{own}:{}", configs::AGENT_PORT);
        let origin = format!("{own}:{}", configs::BACKEND_PORT);
        let mut arguments = vec!["agent", "--listen", &listen, "--key", "/run/key", "--name", name];
        arguments.extend(["--interface", "eth0", "--threads", "1"]);
        for [from, vip] in &of_front_ends {
            arguments.extend(["--front-end", from, "--vip", vip]);
        }
        match self.kind {
            Kind::Shim => arguments.extend(["--serve", "shim:/run/nginx.sock"]),
            _ => arguments.extend(["--serve", "origin:/run/www", "--origin-listen", &origin]),
        }
        let program = self.program().to_owned();
        self.spawn(node, &program, &arguments)
    }

    fn start_front_ends(&mut self) -> Result<()> {
        let (address, backends, node) = (self.lab.virtual_address(), self.backends()?, Node::FrontEnd);
        if self.kind == Kind::Proxies {
            self.write(node, "nginx.conf", &configs::nginx_proxy(address, &backends))?;
            self.write(node, "haproxy.cfg", &configs::haproxy(address, &backends))?;
            self.spawn(node, "nginx", &["-e", "/run/nginx.err", "-c", "/run/nginx.conf"])?;
            self.spawn(node, "haproxy", &["-db", "-f", "/run/haproxy.cfg"])?;
        }
        if self.kind == Kind::Tcp {
            self.write(node, "haproxy.cfg", &configs::haproxy_tcp(address, &backends))?;
            self.spawn(node, "haproxy", &["-db", "-f", "/run/haproxy.cfg"])?;
        }
        if self.kind == Kind::Nat {
            self.write(node, "nat.nft", &configs::nat(address, &backends))?;
            self.system(node, &["sysctl", "-qw", "net.ipv4.ip_forward=1"])?;
            self.system(node, &["nft", "-f", "/run/nat.nft"])?;
        }
        if self.kind == Kind::Least {
            least::attach(&self.lab)?;
        }
        let program = self.program().to_owned();
        for front_end in self.front_ends() {
            let file = format!("{}.toml", front_end.name);
            self.write(node, &file, &configs::plimsoll(front_end, address, &backends))?;
            self.spawn(node, &program, &["balance", "--no-watch", "--config", &format!("/run/{file}")])?;
        }
        Ok(())
    }

    fn write(&self, node: Node, name: &str, text: &str) -> Result<()> {
        let path = self.lab.node(node)?.root().join("run").join(name);
        fs::write(&path, text).with_context(|| format!("write {name} of {node}"))
    }

    /// Runs a command of the system in a node to its end.
    fn system(&self, node: Node, words: &[&str]) -> Result<()> {
        let output = self.lab.node(node)?.command(words[0]).args(&words[1..]).output()?;
        if !output.status.success() {
            bail!("{} in {node}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    fn spawn(&mut self, node: Node, program: &str, arguments: &[&str]) -> Result<()> {
        let log = self.lab.node(node)?.root().join(format!("run/log{}", self.processes.len()));
        let mut command = self.command(node, program)?;
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        let process = Process::start(&mut command)?;
        self.processes.push((format!("{program} in {node}"), log, process));
        Ok(())
    }

    fn wait_until_ready(&mut self, backends: usize) -> Result<()> {
        let end = Instant::now() + STARTING;
        loop {
            let Err(error) = self.check(backends) else { return Ok(()) };
            let ended = self.processes.iter_mut().any(|(_, _, process)| !process.is_running());
            if ended || Instant::now() > end {
                return Err(error.context(self.last_words()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether every document of every size comes whole, over one connection, from every front-end of this lab.
    pub fn check(&self, backends: usize) -> Result<()> {
        let mut ports: Vec<u16> = self.front_ends().iter().map(|front_end| front_end.port).collect();
        if self.kind == Kind::Proxies {
            ports.extend([configs::HAPROXY_PORT, configs::NGINX_PORT, configs::ITSELF_PORT]);
        }
        if !self.kind.has_metrics() {
            ports.push(configs::PLIMSOLL_PORT);
        }
        if self.kind.is_direct()
            && self.kind.has_metrics()
            && sum(&self.metrics(configs::PLIMSOLL_PORT)?, "plimsoll_switch_choices", "") < 1.0
        {
            bail!("the policy has made no choice");
        }
        for front_end in self.front_ends().iter().filter(|f| f.hands_off()) {
            if sum(&self.metrics(front_end.port)?, "plimsoll_links", "") < backends as f64 {
                bail!("the front-end {} has no link to every agent", front_end.name);
            }
        }
        let node = self.lab.node(Node::Client)?;
        for port in ports {
            let target = self.target(port);
            node.run(|| documents::check(target))?.with_context(|| format!("check {target}"))?;
        }
        Ok(())
    }

    /// Two documents of a size for which the policy chooses different back-ends, where there are two.
    pub fn paths(&self, size_bytes: usize) -> Result<[String; 2]> {
        let target = self.target(configs::PLIMSOLL_PORT);
        let ask = || {
            let mut client = Client::connect(target)?;
            (0..DOCUMENTS).map(|n| Ok(client.get(&path(size_bytes, n))?.backend)).collect::<Result<Vec<_>>>()
        };
        let backends = self.lab.node(Node::Client)?.run(ask)??;
        let other = backends.iter().position(|name| *name != backends[0]);
        if other.is_none() && self.kind.has_agents() && self.lab.config().backends > 1 {
            bail!("the policy chooses {} for all documents of {size_bytes} bytes", backends[0]);
        }
        Ok([path(size_bytes, 0), path(size_bytes, other.unwrap_or(1))])
    }

    /// What the processes said last, for errors.
    pub fn last_words(&self) -> String {
        let mut text = format!("{:?}:", self.kind);
        for (name, log, _) in &self.processes {
            let log = fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            for line in &lines[lines.len().saturating_sub(5)..] {
                text += &format!("\n  {name}: {line}");
            }
        }
        text
    }
}

fn key() -> Result<String> {
    let mut bytes = [0_u8; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
