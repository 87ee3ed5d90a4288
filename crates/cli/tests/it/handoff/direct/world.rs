//! A lab with a switch before three origins, as real processes.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::Command;

use plimsoll_datapath::Vip;
use plimsoll_lab::{Lab, LabConfig, Node, Process};
use plimsoll_testkit::eventually;
use tempfile::TempDir;

use crate::common::{Turn, beside_others};
use crate::handoff::http::{Client, ask_admin, content, metric_of};
use crate::rights::open_directory;

pub(super) const BACKENDS: usize = 3;
const PORT: u16 = 80;
pub(super) const BODY: usize = 3_000_000;
/// Of a document of which many are downloaded at a time.
const MIDDLE: usize = 600_000;

pub(super) struct World {
    pub(super) front_end: Option<Process>,
    pub(super) origins: Vec<Option<Process>>,
    pub(super) lab: Lab,
    pub(super) directory: TempDir,
    _turn: Turn,
}

impl World {
    pub(super) fn new(policy: &str, more: &str) -> Self {
        let mut world = Self::set_up();
        world.write(policy, more);
        world.start();
        world
    }

    /// With origins, and no front-end yet.
    pub(super) fn set_up() -> Self {
        let turn = beside_others();
        let lab = Lab::build(&LabConfig { backends: BACKENDS, ..LabConfig::default() })
            .unwrap_or_else(|error| panic!("these tests need root, and a kernel that allows labs: {error}"));
        // Others may pin there.
        let node = lab.node(Node::FrontEnd).unwrap();
        assert!(node.command("chmod").args(["1777", "/sys/fs/bpf"]).status().unwrap().success());
        let directory = open_directory(0);
        std::fs::create_dir(directory.path().join("www")).unwrap();
        for (name, bytes) in [("big", BODY), ("middle", MIDDLE), ("small", 1000)] {
            std::fs::write(directory.path().join("www").join(name), content(1, bytes)).unwrap();
        }
        let mut world = Self {
            front_end: None,
            origins: (0..BACKENDS).map(|_| None).collect(),
            lab,
            directory,
            _turn: turn,
        };
        for number in 0..BACKENDS {
            let vips = [IpAddr::from(world.lab.virtual_address()), world.lab.virtual_address_v6().into()];
            let node = world.lab.node(Node::Backend(number)).unwrap();
            node.run(|| vips.map(|vip| Vip::add(vip, "eth0").unwrap().leave())).unwrap();
            world.start_origin(number);
        }
        world
    }

    pub(super) fn start_origin(&mut self, number: usize) {
        let node = self.lab.node(Node::Backend(number)).unwrap();
        let mut command = node.command(env!("CARGO_BIN_EXE_plimsoll"));
        command.arg("origin").arg("--root").arg(self.directory.path().join("www"));
        command.args(["--listen", "[::]:80", "--name", &format!("b{number}")]);
        self.origins[number] = Some(node.spawn(&mut command).unwrap());
        let own = SocketAddr::from((node.address(), PORT));
        eventually("the origin answers", || node.run(|| TcpStream::connect(own)).unwrap().is_ok());
    }

    pub(super) fn write(&self, policy: &str, more: &str) {
        self.write_with(policy, more, |number| {
            self.lab.node(Node::Backend(number)).unwrap().address().to_string()
        });
    }

    /// With back-ends at their IPv6 addresses.
    pub(super) fn write_v6(&self, policy: &str) {
        self.write_with(policy, "", |number| {
            format!("[{}]", self.lab.node(Node::Backend(number)).unwrap().address_v6())
        });
    }

    fn write_with(&self, policy: &str, more: &str, address: impl Fn(usize) -> String) {
        let mut text = "mechanism = \"direct\"\nworkers = 1\n".to_owned();
        for vip in [self.vip(), self.vip_v6()] {
            text += &format!("[[listener]]\naddress = \"{vip}\"\n");
        }
        for number in 0..BACKENDS {
            let own = address(number);
            text += &format!("[[backend]]\nname = \"b{number}\"\naddress = \"{own}:{PORT}\"\n");
        }
        text += &format!("[policy]\nname = \"{policy}\"\n");
        text += "[direct]\ninterfaces = [\"eth0\"]\n[health]\nprobe = \"tcp\"\ninterval = \"200ms\"\n";
        text += &format!("[admin]\naddress = \"127.0.0.1:9090\"\n{more}");
        std::fs::write(self.directory.path().join("plimsoll.toml"), text).unwrap();
    }

    /// Adds lines to the table `[direct]` of the configuration.
    pub(super) fn append_direct(&self, lines: &str) {
        self.append("direct", lines);
    }

    /// Adds lines to a table of the configuration.
    pub(super) fn append(&self, table: &str, lines: &str) {
        let path = self.directory.path().join("plimsoll.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text.replace(&format!("[{table}]\n"), &format!("[{table}]\n{lines}"))).unwrap();
    }

    pub(super) fn command(&self) -> Command {
        let node = self.lab.node(Node::FrontEnd).unwrap();
        let mut command = node.command(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["balance", "--config"]).arg(self.directory.path().join("plimsoll.toml"));
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.directory.path().join("said"))
            .unwrap();
        command.stderr(log);
        command
    }

    /// Has frames come to the switch as XDP can send them on.
    ///
    /// Frames without checksums, or merged ones, exist only between virtual machines of one kernel. The driver of virtual cables takes frames
    /// from XDP alone at an end that merges what arrives.
    pub(super) fn prepare_xdp(&self) {
        let ethtool = |node: Node, arguments: &[&str]| {
            let output = self.lab.node(node).unwrap().command("ethtool").args(arguments).output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        };
        ethtool(Node::Client, &["-K", "eth0", "tx", "off", "tso", "off", "gso", "off"]);
        ethtool(Node::Switch, &["-K", "front-end", "gro", "on", "tx", "off", "tso", "off", "gso", "off"]);
    }

    /// Starts the front-end, and waits until the policy chooses.
    pub(super) fn start(&mut self) {
        let node = self.lab.node(Node::FrontEnd).unwrap();
        self.front_end = Some(node.spawn(&mut self.command()).unwrap());
        eventually("choices are made", || self.metric("plimsoll_switch_choices") > Some(0.0));
    }

    pub(super) fn admin(&self, path: &str) -> Option<String> {
        self.lab.node(Node::FrontEnd).unwrap().run(|| ask_admin(path)).unwrap().ok()
    }

    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        metric_of(&self.admin("/metrics")?, name)
    }

    pub(super) fn post(&self, path: &str) {
        let post = || {
            let mut stream = TcpStream::connect("127.0.0.1:9090").unwrap();
            let request = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        };
        self.lab.node(Node::FrontEnd).unwrap().run(post).unwrap();
    }

    pub(super) fn vip(&self) -> SocketAddr {
        (self.lab.virtual_address(), PORT).into()
    }

    pub(super) fn vip_v6(&self) -> SocketAddr {
        (self.lab.virtual_address_v6(), PORT).into()
    }

    pub(super) fn connect(&self, to: SocketAddr) -> Client {
        let client = self.lab.node(Node::Client).unwrap();
        client.run(|| Client::connect(to)).unwrap().unwrap()
    }

    /// So many clients that have had an answer: one that is only connected, and was placed by the hash, is not counted yet.
    pub(super) fn held(&self, count: usize) -> Vec<Client> {
        let mut held: Vec<Client> = (0..count).map(|_| self.connect(self.vip())).collect();
        held.iter_mut().for_each(|client| assert_eq!(client.get("/small").unwrap().status, 200));
        held
    }

    /// Which back-ends answer as many requests, each on a connection of its own.
    pub(super) fn answering(&self, count: usize) -> Vec<usize> {
        let mut by = vec![0; BACKENDS];
        for number in 0..count {
            let to = if number % 2 == 0 { self.vip() } else { self.vip_v6() };
            let answer = self.connect(to).get("/small").unwrap();
            assert!(answer.status == 200 && answer.body == content(1, 1000), "{}", answer.head);
            by[answer.backend()[1..].parse::<usize>().unwrap()] += 1;
        }
        by
    }

    pub(super) fn load(&self) -> f64 {
        (0..BACKENDS)
            .map(|b| self.metric(&format!("plimsoll_backend_load{{backend=\"b{b}\"}}")).unwrap())
            .sum()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(self.directory.path().join("said")).unwrap_or_default());
            eprintln!("{}", self.admin("/metrics").unwrap_or_default());
        }
    }
}

/// Downloads that go on slowly.
pub(super) struct Downloads {
    body_bytes: usize,
    streams: Vec<(TcpStream, Vec<u8>)>,
}

impl Downloads {
    /// Of `/big` or `/middle`.
    pub(super) fn start(world: &World, path: &str, count: usize) -> Self {
        let body_bytes = if path == "/big" { BODY } else { MIDDLE };
        let one = |number: usize| {
            let to = if number.is_multiple_of(2) { world.vip() } else { world.vip_v6() };
            let mut client = world.connect(to);
            let request = format!("GET {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n");
            client.stream.write_all(request.as_bytes()).unwrap();
            (client.stream, Vec::new())
        };
        let mut all = Self { body_bytes, streams: (0..count).map(one).collect() };
        all.read_some(20_000);
        all
    }

    /// Reads a part of each.
    pub(super) fn read_some(&mut self, bytes: usize) {
        for (stream, body) in &mut self.streams {
            let mut part = vec![0; bytes];
            stream.read_exact(&mut part).unwrap();
            body.append(&mut part);
        }
    }

    /// Reads each to its end, and compares.
    pub(super) fn finish(self) {
        let wanted = content(1, self.body_bytes);
        for (mut stream, mut body) in self.streams {
            stream.read_to_end(&mut body).unwrap();
            assert!(body.ends_with(&wanted), "{} bytes", body.len());
        }
    }
}
