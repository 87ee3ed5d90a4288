//! A lab with two machines for front-ends, of which keepalived gives one the virtual address, and two back-ends.

use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use plimsoll_lab::{Lab, LabConfig, Node, Process};
use plimsoll_testkit::{PATIENCE, eventually, is_stopped};
use tempfile::TempDir;

use super::super::http::{ask_admin, metric_of};
use crate::common::{Turn, alone};

/// The machines of the two front-ends. The second one is a back-end's in other tests.
pub(super) const MACHINES: [Node; 2] = [Node::FrontEnd, Node::Backend(2)];
const BACKENDS: usize = 2;
const WORKERS: usize = 2;
const AGENT_PORT: u16 = 7400;
const ORIGIN_PORT: u16 = 8080;

pub(super) struct Pair {
    agents: Vec<Process>,
    pub(super) front_ends: [Option<Process>; 2],
    keepaliveds: [Option<Process>; 2],
    pub(super) lab: Lab,
    directory: TempDir,
    /// Back-ends without an agent, from the last one on.
    proxied: usize,
    _turn: Turn,
}

impl Drop for Pair {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.said());
        }
    }
}

impl Pair {
    /// Everything up, the first front-end active, and the second one a standby.
    pub(super) fn new(files: &[(&str, Vec<u8>)]) -> Self {
        Self::with_proxied(files, 0)
    }

    /// The same, where so many back-ends have no agent.
    pub(super) fn with_proxied(files: &[(&str, Vec<u8>)], proxied: usize) -> Self {
        let turn = alone();
        let lab = Lab::build(&LabConfig { backends: BACKENDS + 1, ..LabConfig::default() })
            .unwrap_or_else(|error| panic!("these tests need root, and a kernel that allows labs: {error}"));
        let directory = tempfile::tempdir().unwrap();
        let www = directory.path().join("www");
        std::fs::create_dir(&www).unwrap();
        std::fs::write(www.join("index.html"), "hello\n").unwrap();
        files.iter().for_each(|(name, content)| std::fs::write(www.join(name), content).unwrap());
        let key = directory.path().join("key");
        std::fs::write(&key, format!("{:064x}\n", u64::from(std::process::id()))).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let mut pair = Self {
            agents: Vec::new(),
            front_ends: [None, None],
            keepaliveds: [None, None],
            lab,
            directory,
            proxied,
            _turn: turn,
        };
        // The lab gives the addresses to the first machine; here that is keepalived's to do.
        for vip in [format!("{}/32", pair.vip().ip()), format!("{}/128", pair.lab.virtual_address_v6())] {
            let mut ip = pair.lab.node(MACHINES[0]).unwrap().command("ip");
            assert!(ip.args(["address", "del", &vip, "dev", "eth0"]).status().unwrap().success());
        }
        pair.agents = (0..BACKENDS).map(|index| pair.start_agent(index)).collect();
        for machine in 0..2 {
            pair.start_front_end(machine);
        }
        for machine in 0..2 {
            pair.start_keepalived(machine);
            pair.wait_until_active(0);
        }
        pair.wait_for_links(0);
        pair.wait_for_links(1);
        assert_eq!(pair.metric(1, "plimsoll_front_end_active"), Some(0.0));
        pair
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Where clients connect.
    pub(super) fn vip(&self) -> SocketAddr {
        (self.lab.virtual_address(), 80).into()
    }

    /// Where this one of many connects: one in four by IPv6.
    pub(super) fn vip_of(&self, client: usize) -> SocketAddr {
        if client.is_multiple_of(4) { (self.lab.virtual_address_v6(), 80).into() } else { self.vip() }
    }

    fn address(&self, node: Node) -> IpAddr {
        self.lab.node(node).unwrap().address().into()
    }

    fn log(&self, name: &str) -> File {
        File::options().create(true).append(true).open(self.path(name)).unwrap()
    }

    fn start_agent(&self, index: usize) -> Process {
        let node = self.lab.node(Node::Backend(index)).unwrap();
        let own = node.address();
        let mut command = node.command(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["agent", "--listen", &format!("{own}:{AGENT_PORT}"), "--interface", "eth0"]);
        command.args(["--name", &format!("b{index}"), "--vip", &self.vip().to_string()]);
        command.args(["--vip", &self.vip_of(0).to_string()]);
        command.arg("--key").arg(self.path("key")).arg("--serve");
        command.arg(format!("origin:{}", self.path("www").display()));
        command.args(["--origin-listen", &format!("{own}:{ORIGIN_PORT}"), "--drain-timeout", "1"]);
        for machine in MACHINES {
            command.args(["--front-end", &format!("front-end={}", self.address(machine))]);
        }
        command.stderr(self.log(&format!("b{index}.log")));
        node.spawn(&mut command).unwrap()
    }

    /// Agents have long to take a connection over: on a busy machine they may need more than the default, and what the
    /// front-end then serves itself ends with it.
    fn config_text(&self) -> String {
        let vip = self.vip();
        let mut text = format!(
            "workers = {WORKERS}\nmechanism = \"handoff\"\n[[listener]]\naddress = \"{vip}\"\n\
             [[listener]]\naddress = \"{}\"\n\
             [policy]\nname = \"round_robin\"\n[handoff]\nkey_file = \"key\"\ninterfaces = [\"eth0\"]\n\
             take_over_timeout = \"20s\"\n\
             [failover]\naddress = \"{}\"\nsettle_timeout = \"20s\"\n[admission]\nlimit = 10000\n[health]\ntimeout = \"2s\"\n[timeouts]\ndrain = \"1s\"\n",
            self.vip_of(0),
            vip.ip()
        );
        for index in 0..BACKENDS {
            let own = self.address(Node::Backend(index));
            text += &format!("[[backend]]\nname = \"b{index}\"\naddress = \"{own}:{ORIGIN_PORT}\"\n");
            if index < BACKENDS - self.proxied {
                text += &format!("agent = \"{own}:{AGENT_PORT}\"\n");
            }
        }
        text
    }

    pub(super) fn start_front_end(&mut self, machine: usize) {
        let file = self.path(&format!("front-end-{machine}.toml"));
        std::fs::write(&file, self.config_text()).unwrap();
        let node = self.lab.node(MACHINES[machine]).unwrap();
        let mut command = node.command(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["balance", "--no-watch", "--config"]).arg(&file);
        command.stderr(self.log(&format!("front-end-{machine}.log")));
        self.front_ends[machine] = Some(node.spawn(&mut command).unwrap());
        eventually("the front-end", || self.metric(machine, "plimsoll_front_end_active").is_some());
    }

    /// As in `packaging/keepalived`, but for what takes the first network namespace of a machine: `track_process`.
    fn start_keepalived(&mut self, machine: usize) {
        let file = self.path(&format!("keepalived-{machine}.conf"));
        let text = format!(
            "global_defs {{\n  vrrp_version 3\n  script_user root\n  enable_script_security\n}}\n\
             vrrp_script plimsoll {{\n  script \"/usr/bin/curl -fs -o /dev/null -m 5 http://127.0.0.1:9090/healthz\"\n\
             \x20 interval 1\n  timeout 5\n  fall 1\n  rise 1\n}}\n\
             vrrp_instance plimsoll {{\n  state BACKUP\n  nopreempt\n  interface eth0\n  virtual_router_id 51\n  priority {}\n\
             \x20 advert_int 0.1\n  virtual_ipaddress {{\n    {}/32 dev eth0\n  }}\n\
             \x20 virtual_ipaddress_excluded {{\n    {}/128 dev eth0 nodad preferred_lft 0\n  }}\n  track_script {{\n    plimsoll\n  }}\n}}\n",
            150 - machine,
            self.vip().ip(),
            self.vip_of(0).ip(),
        );
        std::fs::write(&file, text).unwrap();
        let node = self.lab.node(MACHINES[machine]).unwrap();
        let mut command = node.command("keepalived");
        command.args(["--dont-fork", "--log-console", "--use-file"]).arg(&file);
        command.stdout(self.log(&format!("keepalived-{machine}.log")));
        command.stderr(self.log(&format!("keepalived-{machine}.log")));
        let started = node.spawn(&mut command).unwrap();
        self.keepaliveds[machine] = Some(started);
    }

    /// Stops keepalived in good order: it gives the address up.
    pub(super) fn stop_keepalived(&mut self, machine: usize) {
        self.keepaliveds[machine].take().unwrap().stop_within(PATIENCE).unwrap();
    }

    /// Stops this agent from running, until [`Pair::resume_agent`].
    pub(super) fn pause_agent(&self, index: usize) {
        let agent = &self.agents[index];
        agent.pause().unwrap();
        eventually("the agent to stand still", || is_stopped(agent.id()));
    }

    pub(super) fn resume_agent(&self, index: usize) {
        self.agents[index].resume().unwrap();
    }

    pub(super) fn kill_front_end(&mut self, machine: usize) {
        self.front_ends[machine].take().unwrap().kill();
    }

    /// Stops the front-end in good order, which takes as long as it has something under way itself.
    pub(super) fn stop_front_end(&mut self, machine: usize) {
        let status = self.front_ends[machine].take().unwrap().stop_within(PATIENCE).unwrap();
        assert_eq!(status.and_then(|s| s.code()), Some(0));
    }

    /// Waits until keepalived would give this machine the address.
    pub(super) fn wait_until_ready(&self, machine: usize) {
        let log = || std::fs::read_to_string(self.path(&format!("keepalived-{machine}.log"))).unwrap();
        let last = |what: &str| log().rfind(what);
        eventually("keepalived", || {
            last("Entering BACKUP STATE") > last("Entering FAULT STATE").or(last("entering FAULT state"))
        });
    }

    pub(super) fn wait_until_active(&self, machine: usize) {
        eventually("an active front-end", || self.metric(machine, "plimsoll_front_end_active") == Some(1.0));
    }

    pub(super) fn wait_until_standby(&self, machine: usize) {
        eventually("a standby", || self.metric(machine, "plimsoll_front_end_active") == Some(0.0));
    }

    pub(super) fn wait_for_links(&self, machine: usize) {
        let wanted = ((BACKENDS - self.proxied) * WORKERS) as f64;
        eventually("links", || self.metric(machine, "plimsoll_links") == Some(wanted));
    }

    /// Waits until a front-end takes a back-end for healthy.
    pub(super) fn wait_for_backend(&self, machine: usize, backend: &str) {
        let state = format!("plimsoll_backend_state{{backend=\"{backend}\",state=\"up\"}}");
        eventually("a back-end", || self.metric(machine, &state) == Some(1.0));
    }

    /// Keeps the kernel of a front-end's machine from buffering whole answers of new connections.
    pub(super) fn bound_send_buffers(&self, machine: usize) {
        let bound = || std::fs::write("/proc/sys/net/ipv4/tcp_wmem", "4096 16384 65536");
        self.lab.node(MACHINES[machine]).unwrap().run(bound).unwrap().unwrap();
    }

    /// Does something as the client.
    pub(super) fn client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.lab.node(Node::Client).unwrap().run(work).unwrap()
    }

    /// The value of a metric of a front-end, if that answers.
    pub(super) fn metric(&self, machine: usize, name: &str) -> Option<f64> {
        let page = self.lab.node(MACHINES[machine]).unwrap().run(|| ask_admin("/metrics")).unwrap();
        metric_of(&page.ok()?, name)
    }

    /// The ends of all logs and what the front-ends count, the most telling last.
    fn said(&self) -> String {
        let logs = [
            ("keepalived-0", 8),
            ("keepalived-1", 8),
            ("b0", 8),
            ("b1", 8),
            ("front-end-0", 12),
            ("front-end-1", 12),
        ];
        let tail = |(name, lines): (&str, usize)| {
            let text = std::fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default();
            let tail: Vec<&str> = text.lines().rev().take(lines).collect();
            format!("{name}:\n{}\n", tail.into_iter().rev().collect::<Vec<_>>().join("\n"))
        };
        let counts = |machine: usize| {
            let node = self.lab.node(MACHINES[machine]).ok()?;
            let page = node.run(|| ask_admin("/metrics")).ok()?.ok()?;
            let told = [
                "plimsoll_handoffs",
                "plimsoll_flows",
                "plimsoll_links ",
                "plimsoll_connections",
                "plimsoll_front_end",
            ];
            let told = page.lines().filter(|line| told.iter().any(|name| line.starts_with(name)));
            Some(format!("machine {machine} counts:\n{}\n", told.collect::<Vec<_>>().join("\n")))
        };
        logs.map(tail).concat() + &[0, 1].map(|machine| counts(machine).unwrap_or_default()).concat()
    }

    /// Stops everything in good order.
    pub(super) fn stop(mut self) {
        let front_ends = self.front_ends.iter_mut().filter_map(Option::take);
        for process in front_ends.chain(self.agents.drain(..)) {
            let status = process.stop_within(PATIENCE).unwrap();
            assert_eq!(status.and_then(|s| s.code()), Some(0));
        }
        for keepalived in self.keepaliveds.iter_mut().filter_map(Option::take) {
            keepalived.stop_within(PATIENCE).unwrap();
        }
    }
}
