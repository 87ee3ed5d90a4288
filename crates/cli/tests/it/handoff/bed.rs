//! A lab with agents and a front-end that hands connections off to them.

mod far;
mod kernel;
mod said;
mod stop;

use plimsoll_lab::{Lab, LabConfig, Node, Process};
use plimsoll_testkit::{PATIENCE, eventually, is_stopped, uninterrupted};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub(super) use far::move_client;

use super::http::{ask_admin, metric_of};
use crate::common::{Turn, alone, beside_others};
use crate::rights::{as_user, command_in, open_directory};

/// Where clients connect.
const PORT: u16 = 80;
/// Where agents take handoffs.
const AGENT_PORT: u16 = 7400;
// Where back-ends are checked, and get what is proxied.
pub(super) use crate::nginx::ORIGIN_PORT;
const WORKERS: usize = 2;

/// What is different from the usual.
#[derive(Clone)]
pub(super) struct Options {
    pub(super) backends: usize,
    /// Text behind the usual configuration of the front-end.
    pub(super) config: String,
    /// Lines of its table `[handoff]`.
    pub(super) handoff: String,
    pub(super) mechanism: &'static str,
    pub(super) policy: &'static str,
    /// Arguments of agents beyond the usual.
    pub(super) agent: Vec<String>,
    /// What agents serve by; by default the origin with the files of the bed.
    pub(super) serve: Option<String>,
    /// Whether it mostly waits, so that another such lab may run beside it.
    pub(super) is_quiet: bool,
    /// Whether clients are far away, over a link that loses and reorders.
    pub(super) is_far: bool,
    /// Whose the files are. Without, they are root's; as the key is too, the front-end then stays root, and agents become
    /// `nobody`.
    pub(super) owner: Option<u32>,
    /// Whether the owner of the files starts the processes, with capabilities and nothing else; otherwise root does.
    pub(super) is_plain: bool,
    /// The mode of the nodes' BPF file systems.
    pub(super) bpf_mode: &'static str,
    /// Whether agents publish themselves, by multicast in the lab, instead of being configured.
    pub(super) is_discovered: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            backends: 2,
            config: String::new(),
            handoff: String::new(),
            mechanism: "handoff",
            policy: "round_robin",
            agent: Vec::new(),
            serve: None,
            is_quiet: false,
            is_far: false,
            owner: None,
            is_plain: false,
            bpf_mode: "1777",
            is_discovered: false,
        }
    }
}

/// What a front-end and an agent need, of a plain user.
const CAPABILITIES: [&str; 4] = ["net_admin", "bpf", "perfmon", "net_bind_service"];

pub(super) struct Bed {
    pub(super) agents: Vec<Option<Process>>,
    servers: Vec<Process>,
    pub(super) front_end: Option<Process>,
    was_killed: bool,
    pub(super) lab: Lab,
    pub(super) directory: TempDir,
    options: Options,
    _turn: Turn,
}

impl Drop for Bed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}\n{}", self.said(), self.counted());
        }
    }
}

impl Bed {
    /// Everything up and linked; `files` are what the origins serve.
    pub(super) fn new(options: Options, files: &[(&str, Vec<u8>)]) -> Self {
        Self::new_with(options, files, |_, _| Vec::new())
    }

    /// The same, with servers that are started before the agents, which `DIRECTORY`, `ADDRESS` and `INDEX` in what they
    /// serve by can name.
    pub(super) fn new_with(
        options: Options,
        files: &[(&str, Vec<u8>)],
        servers: impl FnOnce(&Lab, &Path) -> Vec<Process>,
    ) -> Self {
        let turn = if options.is_quiet { beside_others() } else { alone() };
        let lab = Lab::build(&LabConfig { backends: options.backends, ..LabConfig::default() })
            .unwrap_or_else(|error| panic!("these tests need root, and a kernel that allows labs: {error}"));
        let directory = options.owner.map_or_else(|| tempfile::tempdir().unwrap(), open_directory);
        std::fs::create_dir(directory.path().join("www")).unwrap();
        std::fs::write(directory.path().join("www/index.html"), "hello\n").unwrap();
        for (name, content) in files {
            std::fs::write(directory.path().join("www").join(name), content).unwrap();
        }
        let key = directory.path().join("key");
        std::fs::write(&key, format!("{:064x}\n", u64::from(std::process::id()))).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&key, options.owner, options.owner).unwrap();
        for node in lab.nodes() {
            let mut chmod = node.command("chmod");
            assert!(chmod.args([options.bpf_mode, "/sys/fs/bpf"]).status().unwrap().success());
        }
        let agents = (0..options.backends).map(|_| None).collect();
        let servers = servers(&lab, directory.path());
        let mut bed = Self {
            servers,
            agents,
            front_end: None,
            was_killed: false,
            lab,
            directory,
            options,
            _turn: turn,
        };
        for index in 0..bed.options.backends {
            bed.start_agent(index);
        }
        bed.wait_for_backends();
        bed.start_front_end();
        bed.wait_for_links(bed.options.backends);
        bed.move_client();
        bed
    }

    /// What runs the command in a node.
    fn command(&self, node: Node) -> Command {
        let node = self.lab.node(node).unwrap();
        let Some(owner) = self.options.owner else {
            return node.command(env!("CARGO_BIN_EXE_plimsoll"));
        };
        let program = self.path("plimsoll");
        if !program.exists() {
            command_in(self.directory.path());
        }
        if !self.options.is_plain {
            return node.command(program);
        }
        let all = as_user(owner, &CAPABILITIES, program);
        let mut command = node.command(&all[0]);
        command.args(&all[1..]);
        command
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Where clients connect.
    pub(super) fn vip(&self) -> SocketAddr {
        (self.lab.virtual_address(), PORT).into()
    }

    /// The same, IPv6.
    pub(super) fn vip_v6(&self) -> SocketAddr {
        (self.lab.virtual_address_v6(), PORT).into()
    }

    fn address(&self, node: Node) -> IpAddr {
        self.lab.node(node).unwrap().address().into()
    }

    /// Where an agent takes links.
    pub(super) fn agent_address(&self, index: usize) -> SocketAddr {
        (self.address(Node::Backend(index)), AGENT_PORT).into()
    }

    pub(super) fn start_agent(&mut self, index: usize) {
        let node = self.lab.node(Node::Backend(index)).unwrap();
        let own = node.address();
        let mut command = self.agent_command(index, &format!("b{index}"), AGENT_PORT);
        if self.options.serve.as_ref().is_none_or(|serve| serve.starts_with("origin:")) {
            command.args(["--origin-listen", &format!("{own}:{ORIGIN_PORT}")]);
        }
        command.stderr(self.log(&format!("b{index}.log")));
        self.agents[index] = Some(node.spawn(&mut command).unwrap());
    }

    /// What runs an agent of this name beside a back-end.
    pub(super) fn agent_command(&self, index: usize, name: &str, port: u16) -> Command {
        let mut command = self.command(Node::Backend(index));
        let own = self.lab.node(Node::Backend(index)).unwrap().address();
        let serve = self.options.serve.as_deref().unwrap_or("origin:DIRECTORY/www");
        let serve = serve.replace("DIRECTORY", &self.directory.path().display().to_string());
        let serve = serve.replace("ADDRESS", &own.to_string()).replace("INDEX", &index.to_string());
        command.args(["agent", "--listen", &format!("{own}:{port}"), "--interface", "eth0"]);
        command.args(["--name", name, "--serve", &serve]).arg("--key").arg(self.path("key"));
        command.args(["--front-end", &format!("front-end={}", self.address(Node::FrontEnd))]);
        command.args(["--vip", &self.vip().to_string(), "--vip", &self.vip_v6().to_string()]);
        if self.options.is_discovered {
            command.args(["--publish", "album", "--publish-name", name]);
            command.args(["--directory-interface", "eth0", "--ttl", "2"]);
        }
        command.args(&self.options.agent);
        command
    }

    pub(super) fn kill_agent(&mut self, index: usize) {
        self.agents[index].take().unwrap().kill();
    }

    /// Stops this agent from running, and waits until every thread of it stands still.
    pub(super) fn pause_agent(&self, index: usize) {
        let agent = self.agents[index].as_ref().unwrap();
        agent.pause().unwrap();
        eventually("the agent to stand still", || is_stopped(agent.id()));
    }

    /// Kills the server behind this agent.
    pub(super) fn kill_server(&mut self, index: usize) {
        self.servers.remove(index).kill();
    }

    /// Stops the server behind this agent from running, until [`Bed::resume_server`].
    pub(super) fn pause_server(&self, index: usize) {
        let server = &self.servers[index];
        server.pause().unwrap();
        eventually("the server to stand still", || is_stopped(server.id()));
    }

    /// Lets a paused server run again.
    pub(super) fn resume_server(&self, index: usize) {
        self.servers[index].resume().unwrap();
    }

    /// Nothing passes between the front-end and this agent from now on, but clients' packets do; `Lab::pass_frames` ends it.
    pub(super) fn interrupt_link(&self, index: usize) {
        let agent = self.address(Node::Backend(index));
        self.lab.drop_frames(&format!("ip daddr {agent} tcp dport {AGENT_PORT}")).unwrap();
        self.lab.drop_frames(&format!("ip saddr {agent} tcp sport {AGENT_PORT}")).unwrap();
    }

    pub(super) fn config_text(&self) -> String {
        let mut text = format!(
            "workers = {WORKERS}\nmechanism = \"{}\"\n[[listener]]\naddress = \"{}\"\n[[listener]]\naddress = \"{}\"\n\
             [policy]\nname = \"{}\"\n[access_log]\nfile = \"access.log\"\nformat = \"json\"\n\
             [decision_log]\ndirectory = \"decisions\"\n[handoff]\nkey_file = \"key\"\ninterfaces = [\"eth0\"]\n{}\n",
            self.options.mechanism,
            self.vip(),
            self.vip_v6(),
            self.options.policy,
            self.options.handoff,
        );
        if self.options.is_discovered {
            text +=
                "[discovery]\nservice = \"album\"\nkey_file = \"key\"\ninterface = \"eth0\"\nttl = \"2s\"\n";
        }
        let configured = if self.options.is_discovered { 0 } else { self.options.backends };
        for index in 0..configured {
            let own = self.address(Node::Backend(index));
            text += &format!(
                "[[backend]]\nname = \"b{index}\"\naddress = \"{own}:{ORIGIN_PORT}\"\nagent = \"{own}:{AGENT_PORT}\"\n"
            );
        }
        if !self.options.config.contains("[health]") {
            // A check of a back-end on a busy machine may take longer than the default allows.
            text += "[health]\ntimeout = \"2s\"\n";
        }
        text + &self.options.config
    }

    pub(super) fn start_front_end(&mut self) {
        let file = self.path("plimsoll.toml");
        std::fs::write(&file, self.config_text()).unwrap();
        let node = self.lab.node(Node::FrontEnd).unwrap();
        let mut command = self.command(Node::FrontEnd);
        command.args(["balance", "--no-watch", "--config"]).arg(&file);
        command.stderr(self.log("front-end.log"));
        self.front_end = Some(node.spawn(&mut command).unwrap());
    }

    /// Gives the front-end this configuration, and waits until it is in force.
    pub(super) fn reload(&self, text: &str) {
        std::fs::write(self.path("plimsoll.toml"), text).unwrap();
        let log = || std::fs::read_to_string(self.path("front-end.log")).unwrap();
        let before = log().matches(" again").count();
        let pid = self.front_end.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
        eventually("the new configuration", || log().matches(" again").count() > before);
    }

    pub(super) fn kill_front_end(&mut self) {
        self.was_killed = true;
        self.front_end.take().unwrap().kill();
    }

    fn log(&self, name: &str) -> File {
        File::options().create(true).append(true).open(self.path(name)).unwrap()
    }

    /// The lines of the access log, once there are as many: they are written by a thread of their own.
    pub(super) fn access_log(&self, lines: usize) -> Vec<serde_json::Value> {
        eventually("lines of the access log", || self.log_now().len() >= lines);
        let log = self.log_now();
        assert_eq!(log.len(), lines);
        log
    }

    /// The lines so far.
    pub(super) fn log_now(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.path("access.log")).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until each back-end answers: the front-end takes one that does not for down.
    fn wait_for_backends(&self) {
        let answers = |address: SocketAddr| -> std::io::Result<bool> {
            let mut stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(b"GET / HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n")?;
            uninterrupted(|| stream.read(&mut [0])).map(|n| n > 0)
        };
        for index in 0..self.options.backends {
            let address = SocketAddr::from((self.address(Node::Backend(index)), ORIGIN_PORT));
            let front_end = self.lab.node(Node::FrontEnd).unwrap();
            eventually("back-ends that answer", || {
                front_end.run(|| answers(address).unwrap_or(false)).unwrap()
            });
        }
    }

    /// Waits until each worker has a link to this many agents.
    pub(super) fn wait_for_links(&self, agents: usize) {
        let wanted = (agents * WORKERS) as f64;
        eventually("links", || self.metric("plimsoll_links") == Some(wanted));
    }

    /// Does something as the client.
    pub(super) fn client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.lab.node(Node::Client).unwrap().run(work).unwrap()
    }

    /// What the front-end's admin API answers, if it does.
    pub(super) fn admin(&self, path: &str) -> Option<String> {
        self.lab.node(Node::FrontEnd).unwrap().run(|| ask_admin(path)).unwrap().ok()
    }

    /// The value of a metric: the name with labels as `/metrics` shows it.
    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        metric_of(&self.admin("/metrics")?, name)
    }

    /// Nothing is left of what was served: loads, flows, connections; and the decisions replay.
    pub(super) fn assert_quiet(&self) {
        eventually("end of all flows", || self.metric("plimsoll_flows") == Some(0.0));
        let loads = || -> Vec<u64> {
            let backends: serde_json::Value =
                serde_json::from_str(&self.admin("/backends").unwrap()).unwrap();
            backends.as_array().unwrap().iter().map(|b| b["load"].as_u64().unwrap()).collect()
        };
        eventually("end of all load", || loads().iter().all(|&load| load == 0));
        eventually("end of all connections", || self.metric("plimsoll_connections_open") == Some(0.0));
    }
}
