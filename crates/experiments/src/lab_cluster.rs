//! The processes of a cluster on a lab: a front-end, and an agent or origin on each back-end.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_config::MechanismKind;
use plimsoll_datapath::Vip;
use plimsoll_lab::{CpuLimit, Lab, Node, NodeHandle, Process};
use plimsoll_origin::synthetic;
use plimsoll_wire::Key;

use crate::ExperimentError;

mod clones;
mod load;
mod mechanism;
mod metrics;

pub use clones::CloneCounts;
pub use load::ClientLoad;
pub use mechanism::LabMechanism;
use metrics::ADMIN;

/// The port that clients connect to, at the virtual address.
const PORT: u16 = 80;
/// The port of back-ends for proxied requests.
const BACKEND_PORT: u16 = 80;
/// The port at which agents take handoffs.
const AGENT_PORT: u16 = 7400;
/// How long everything may take to start.
const STARTING: Duration = Duration::from_secs(20);
/// Memory for the documents of one back-end.
const DOCUMENT_BYTES: u64 = 64 << 20;
const MOST_DOCUMENTS: u64 = 64;

/// The configuration of a cluster.
pub struct LabClusterConfig {
    /// The `plimsoll` program, which runs as front-end, agents and origins.
    pub program: PathBuf,
    /// How a chosen back-end gets the request.
    pub mechanism: LabMechanism,
    /// Number of back-ends; the lab has at least as many.
    pub backends: usize,
    /// Policy of the front-end, by name.
    pub policy: String,
    /// Its seed.
    pub seed: u64,
    /// Admission limit: `none` or a number.
    pub admission: String,
    /// The contents of back-ends.
    pub contents: Contents,
    /// Further arguments of the origins, such as `--cache`.
    pub origin: Vec<String>,
}

/// The contents of back-ends.
pub enum Contents {
    /// Files `/0`, `/1` and so on of this many bytes: as many as [`documents`] says.
    Files(u64),
    /// Generated, as after `plimsoll origin --synthetic`.
    Synthetic(String),
}

impl LabClusterConfig {
    /// A cluster of `backends` back-ends with these contents and without an admission limit.
    #[must_use]
    pub fn new(
        program: &Path,
        mechanism: impl Into<LabMechanism>,
        backends: usize,
        policy: &str,
        contents: Contents,
    ) -> Self {
        Self {
            program: program.to_owned(),
            mechanism: mechanism.into(),
            backends,
            policy: policy.to_owned(),
            seed: 1,
            admission: "none".to_owned(),
            contents,
            origin: Vec::new(),
        }
    }
}

/// Number of documents of this size.
#[must_use]
pub fn documents(size_bytes: u64) -> u64 {
    (DOCUMENT_BYTES / size_bytes.max(1)).clamp(1, MOST_DOCUMENTS)
}

/// A running cluster on a lab. Dropping it kills all its processes.
pub struct LabCluster<'a> {
    mechanism: LabMechanism,
    front_end: NodeHandle<'a>,
    /// Name, node and process; the front-end first to be stopped.
    processes: Vec<(String, NodeHandle<'a>, Process)>,
    /// The address that clients connect to.
    pub target: SocketAddr,
}

impl<'a> LabCluster<'a> {
    /// Starts back-ends and front-end, and waits until they answer.
    ///
    /// # Errors
    /// When a process does not start or does not answer in time; the text ends with the processes' last
    /// output.
    pub async fn start(lab: &'a Lab, config: &LabClusterConfig) -> Result<Self, ExperimentError> {
        let front_end = lab.node(Node::FrontEnd)?;
        let target = (lab.virtual_address(), PORT).into();
        let mut cluster = Self { mechanism: config.mechanism, front_end, processes: Vec::new(), target };
        let (key, front_end_mechanism) = (key()?, config.mechanism.of_front_end());
        for number in 0..config.backends {
            let node = lab.node(Node::Backend(number))?;
            if let Contents::Files(size_bytes) = config.contents {
                write_documents(node, size_bytes)?;
            }
            write_secret(node, &key)?;
            if config.mechanism == MechanismKind::Direct.into() {
                // Packets come with this address, and answers leave with it.
                let vip = lab.virtual_address().into();
                node.run(|| Vip::add(vip, "eth0").map(Vip::leave))?.map_err(|e| {
                    ExperimentError::Failed(format!("{}: no virtual address: {e}", node.node()))
                })?;
            }
            cluster.start_process(node, backend(lab, node, config)?)?;
        }
        for number in 0..config.backends {
            cluster.wait_until_it_answers(front_end, checked_address(lab, config, number)?).await?;
        }
        write_secret(front_end, &key)?;
        write(front_end, "run/plimsoll.toml", toml(lab, config)?.as_bytes())?;
        let mut command = front_end.command(&config.program);
        command.args(["balance", "--no-watch", "--config", "/run/plimsoll.toml"]);
        cluster.start_process(front_end, command)?;
        cluster.wait_until_it_answers(lab.node(Node::Client)?, target).await?;
        if front_end_mechanism.hands_off() {
            let lack = "the front-end has no link to every agent";
            cluster.wait_for_metric("plimsoll_links", config.backends as f64, lack).await?;
        }
        if front_end_mechanism == MechanismKind::Direct {
            // Until then the hash places connections.
            let lack = "the policy of the front-end has made no choice";
            cluster.wait_for_metric("plimsoll_switch_choices", 1.0, lack).await?;
        }
        Ok(cluster)
    }

    /// Limits the CPU time of the processes, each by one of these: first the back-ends, then the front-end. The others have none.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn limit_cpus(&self, limits: &[CpuLimit]) -> Result<(), ExperimentError> {
        let pairs = self.processes.iter().zip(limits);
        Ok(pairs.into_iter().try_for_each(|((_, _, process), limit)| limit.add_process(process.id()))?)
    }

    fn start_process(&mut self, node: NodeHandle<'a>, mut command: Command) -> Result<(), ExperimentError> {
        let name = node.node().to_string();
        let log = node.root().join("run/log");
        let file = File::create(&log).map_err(|e| ExperimentError::writing(&log, e))?;
        let said = node.root().join("run/said");
        let stdout = File::create(&said).map_err(|e| ExperimentError::writing(&said, e))?;
        command.stdin(Stdio::null()).stdout(stdout).stderr(file);
        let process = node.spawn(&mut command)?;
        self.processes.push((name, node, process));
        Ok(())
    }

    async fn wait_until_it_answers(
        &mut self,
        from: NodeHandle<'_>,
        to: SocketAddr,
    ) -> Result<(), ExperimentError> {
        let end = Instant::now() + STARTING;
        while from.run(|| TcpStream::connect_timeout(&to, Duration::from_secs(1)))?.is_err() {
            self.go_on_waiting(&format!("nothing answers at {to}"), end).await?;
        }
        Ok(())
    }

    /// Waits until a metric of the front-end is as high as this; `lack` says what is so until then.
    async fn wait_for_metric(&mut self, name: &str, wanted: f64, lack: &str) -> Result<(), ExperimentError> {
        let end = Instant::now() + STARTING;
        while self.metric(name).unwrap_or(0.0) < wanted {
            self.go_on_waiting(lack, end).await?;
        }
        Ok(())
    }

    /// Fails at the deadline, or when a process has ended.
    async fn go_on_waiting(&mut self, what: &str, end: Instant) -> Result<(), ExperimentError> {
        let ended = self.processes.iter_mut().any(|(_, _, process)| !process.is_running());
        if ended || Instant::now() > end {
            return Err(ExperimentError::Failed(format!("{what}\n{}", self.last_words())));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(())
    }

    /// Stops everything in good order, and adds up what nodes of Socket Cloning have counted; 0 without them.
    ///
    /// # Errors
    /// When a process does not end in good order.
    pub fn stop(mut self) -> Result<CloneCounts, ExperimentError> {
        let mut counts = CloneCounts::default();
        // The front-end was started last.
        self.processes.pop();
        if self.mechanism == LabMechanism::Clone {
            for (_, node, process) in self.processes.drain(..) {
                counts.add(node, process)?;
            }
        }
        Ok(counts)
    }

    /// The processes' last output, for errors.
    #[must_use]
    pub fn last_words(&self) -> String {
        let mut text = String::new();
        for (name, node, _) in &self.processes {
            let log = fs::read_to_string(node.root().join("run/log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            for line in &lines[lines.len().saturating_sub(10)..] {
                text += &format!("  {name}: {line}\n");
            }
        }
        text.trim_end().to_owned()
    }

    /// The sum of a metric of the front-end over its labels; `None` when it has none of this name. A name with labels,
    /// such as `x_total{a="b"}`, is that one alone.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<f64> {
        let page = self.front_end.run(metrics::page).ok()?.ok()?;
        metrics::sum_of(&page, name)
    }
}

impl Drop for LabCluster<'_> {
    fn drop(&mut self) {
        // The front-end was started last and stops first, so that it sees no back-end fail.
        while self.processes.pop().is_some() {}
    }
}

/// The address of a back-end's origin.
///
/// # Errors
/// When the lab has no such back-end.
pub fn backend_address(lab: &Lab, number: usize) -> Result<SocketAddr, ExperimentError> {
    Ok((lab.node(Node::Backend(number))?.address(), BACKEND_PORT).into())
}

/// Where the front-end checks a back-end: nodes of Socket Cloning take links, and connections to the virtual address alone.
fn checked_address(
    lab: &Lab,
    config: &LabClusterConfig,
    number: usize,
) -> Result<SocketAddr, ExperimentError> {
    let mut address = backend_address(lab, number)?;
    if config.mechanism == LabMechanism::Clone {
        address.set_port(AGENT_PORT);
    }
    Ok(address)
}

/// The command of a back-end.
fn backend(lab: &Lab, node: NodeHandle<'_>, config: &LabClusterConfig) -> Result<Command, ExperimentError> {
    let mut command = node.command(&config.program);
    let (name, own) = (node.node().to_string(), node.address());
    let origin = format!("{own}:{BACKEND_PORT}");
    let (option, contents) = match &config.contents {
        Contents::Files(_) => ("--root", "/run/www".to_owned()),
        Contents::Synthetic(what) => ("--synthetic", what.clone()),
    };
    let clones = config.mechanism == LabMechanism::Clone;
    if clones || config.mechanism.of_front_end().hands_off() {
        let address = format!("{}:{PORT}", lab.virtual_address());
        let kind = if option == "--root" { "origin" } else { "origin:synthetic" };
        command.args(["agent", "--listen", &format!("{own}:{AGENT_PORT}"), "--key", "/run/key"]);
        command.args(["--name", &name, "--interface", "eth0", "--vip", &address]);
        command.args(["--serve", &format!("{kind}:{contents}")]);
    } else {
        // With `direct` connections come to the virtual address.
        let all = format!("0.0.0.0:{BACKEND_PORT}");
        let is_direct = config.mechanism == MechanismKind::Direct.into();
        let listen = if is_direct { &all } else { &origin };
        command.args(["origin", option, &contents, "--listen", listen, "--name", &name]);
    }
    if clones {
        command.arg("--json-stats");
        for number in 0..config.backends {
            let peer = lab.node(Node::Backend(number))?;
            if peer.node() != node.node() {
                let peer = format!("{}={}:{AGENT_PORT}", peer.node(), peer.address());
                command.args(["--clone-peer", &peer]);
            }
        }
    } else if config.mechanism.of_front_end().hands_off() {
        let front_end = format!("front-end={}", lab.node(Node::FrontEnd)?.address());
        command.args(["--front-end", &front_end, "--origin-listen", &origin]);
    }
    command.args(&config.origin);
    Ok(command)
}

/// The front-end's configuration.
fn toml(lab: &Lab, config: &LabClusterConfig) -> Result<String, ExperimentError> {
    let admission = match config.admission.as_str() {
        "none" => "\"none\"",
        number => number,
    };
    let mechanism = config.mechanism.of_front_end();
    let mut text = format!(
        "mechanism = \"{}\"\nworkers = 1\n[[listener]]\naddress = \"{}:{PORT}\"\n[policy]\nname = \"{}\"\nseed = \
         {}\n[admission]\nlimit = {admission}\nqueue = 4096\nqueue_timeout = \"60s\"\n[health]\nprobe = \
         \"tcp\"\n[admin]\naddress = \"{ADMIN}\"\n",
        mechanism,
        lab.virtual_address(),
        config.policy,
        config.seed
    );
    for number in 0..config.backends {
        let node = lab.node(Node::Backend(number))?;
        let address = checked_address(lab, config, number)?;
        text += &format!("[[backend]]\nname = \"{}\"\naddress = \"{address}\"\n", node.node());
        if mechanism.hands_off() {
            text += &format!("agent = \"{}:{AGENT_PORT}\"\n", node.address());
        }
    }
    if mechanism.hands_off() {
        text += "[handoff]\nkey_file = \"/run/key\"\ninterfaces = [\"eth0\"]\n";
    }
    if mechanism == MechanismKind::Handoff {
        // By default small answers at the end of a connection are proxied; here all must be handed off.
        text += "min_size = 0\n";
    }
    if mechanism == MechanismKind::Direct {
        text += "[direct]\ninterfaces = [\"eth0\"]\n";
    }
    Ok(text)
}

/// A new key that front-end and agents share, as 64 hexadecimal digits.
fn key() -> Result<String, ExperimentError> {
    let key = Key::generate();
    key.map(|key| key.to_hex()).map_err(|e| ExperimentError::Failed(format!("cannot make a key: {e}")))
}

fn write_secret(node: NodeHandle<'_>, key: &str) -> Result<(), ExperimentError> {
    let path = node.root().join("run/key");
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
    file.and_then(|mut file| writeln!(file, "{key}")).map_err(|e| ExperimentError::writing(&path, e))
}

/// Writes a file of the node, in its own memory.
fn write(node: NodeHandle<'_>, name: &str, bytes: &[u8]) -> Result<(), ExperimentError> {
    let path = node.root().join(name);
    fs::write(&path, bytes).map_err(|e| ExperimentError::writing(&path, e))
}

fn write_documents(node: NodeHandle<'_>, size_bytes: u64) -> Result<(), ExperimentError> {
    let directory = node.root().join("run/www");
    fs::create_dir(&directory).map_err(|e| ExperimentError::writing(&directory, e))?;
    let mut bytes = vec![0; usize::try_from(size_bytes).unwrap_or(0)];
    for number in 0..documents(size_bytes) {
        synthetic::fill(number, 0, &mut bytes);
        write(node, &format!("run/www/{number}"), &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_fit_into_memory() {
        assert_eq!(documents(1), 64);
        assert_eq!(documents(100 << 10), 64);
        assert_eq!(documents(64 << 20), 1);
    }
}
