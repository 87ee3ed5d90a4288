//! Connections distributed at layer 4: clients, a switch and three origins, each a machine of a lab, with real processes.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::Command;

use plimsoll_datapath::Vip;
use plimsoll_lab::{Lab, LabConfig, Node, Process};
use plimsoll_testkit::{PATIENCE, eventually};
use tempfile::TempDir;

use super::http::{Client, ask_admin, content, metric_of};
use crate::common::{Turn, beside_others};
use crate::rights::{BPF, NET_ADMIN, Rights, as_user, command_in, open_directory};

const BACKENDS: usize = 3;
const PORT: u16 = 80;
const BODY: usize = 3_000_000;

pub(super) struct World {
    front_end: Option<Process>,
    origins: Vec<Option<Process>>,
    lab: Lab,
    directory: TempDir,
    _turn: Turn,
}

impl World {
    fn new(policy: &str, more: &str) -> Self {
        let turn = beside_others();
        let lab = Lab::build(&LabConfig { backends: BACKENDS, ..LabConfig::default() })
            .unwrap_or_else(|error| panic!("these tests need root, and a kernel that allows labs: {error}"));
        // Others may pin there.
        let node = lab.node(Node::FrontEnd).unwrap();
        assert!(node.command("chmod").args(["1777", "/sys/fs/bpf"]).status().unwrap().success());
        let directory = open_directory(0);
        std::fs::create_dir(directory.path().join("www")).unwrap();
        for (name, bytes) in [("big", BODY), ("small", 1000)] {
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
        world.write(policy, more);
        world.start();
        world
    }

    fn start_origin(&mut self, number: usize) {
        let node = self.lab.node(Node::Backend(number)).unwrap();
        let mut command = node.command(env!("CARGO_BIN_EXE_plimsoll"));
        command.arg("origin").arg("--root").arg(self.directory.path().join("www"));
        command.args(["--listen", "[::]:80", "--name", &format!("b{number}")]);
        self.origins[number] = Some(node.spawn(&mut command).unwrap());
        let own = SocketAddr::from((node.address(), PORT));
        eventually("the origin answers", || node.run(|| TcpStream::connect(own)).unwrap().is_ok());
    }

    fn write(&self, policy: &str, more: &str) {
        let mut text = "mechanism = \"direct\"\nworkers = 1\n".to_owned();
        for vip in [self.vip(), self.vip_v6()] {
            text += &format!("[[listener]]\naddress = \"{vip}\"\n");
        }
        for number in 0..BACKENDS {
            let own = self.lab.node(Node::Backend(number)).unwrap().address();
            text += &format!("[[backend]]\nname = \"b{number}\"\naddress = \"{own}:{PORT}\"\n");
        }
        text += &format!("[policy]\nname = \"{policy}\"\n");
        text += "[direct]\ninterfaces = [\"eth0\"]\n[health]\nprobe = \"tcp\"\ninterval = \"200ms\"\n";
        text += &format!("[admin]\naddress = \"127.0.0.1:9090\"\n{more}");
        std::fs::write(self.directory.path().join("plimsoll.toml"), text).unwrap();
    }

    /// Adds lines to the table `[direct]` of the configuration.
    fn append_direct(&self, lines: &str) {
        let path = self.directory.path().join("plimsoll.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text.replace("[direct]\n", &format!("[direct]\n{lines}"))).unwrap();
    }

    fn command(&self) -> Command {
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

    /// Starts the front-end, and waits until the policy chooses.
    fn start(&mut self) {
        let node = self.lab.node(Node::FrontEnd).unwrap();
        self.front_end = Some(node.spawn(&mut self.command()).unwrap());
        eventually("choices are made", || self.metric("plimsoll_switch_choices") > Some(0.0));
    }

    fn admin(&self, path: &str) -> Option<String> {
        self.lab.node(Node::FrontEnd).unwrap().run(|| ask_admin(path)).unwrap().ok()
    }

    fn metric(&self, name: &str) -> Option<f64> {
        metric_of(&self.admin("/metrics")?, name)
    }

    fn post(&self, path: &str) {
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

    fn vip(&self) -> SocketAddr {
        (self.lab.virtual_address(), PORT).into()
    }

    fn vip_v6(&self) -> SocketAddr {
        (self.lab.virtual_address_v6(), PORT).into()
    }

    fn connect(&self, to: SocketAddr) -> Client {
        let client = self.lab.node(Node::Client).unwrap();
        client.run(|| Client::connect(to)).unwrap().unwrap()
    }

    /// So many clients that have had an answer: one that is only connected, and was placed by the hash, is not counted yet.
    fn held(&self, count: usize) -> Vec<Client> {
        let mut held: Vec<Client> = (0..count).map(|_| self.connect(self.vip())).collect();
        held.iter_mut().for_each(|client| assert_eq!(client.get("/small").unwrap().status, 200));
        held
    }

    /// Which back-ends answer as many requests, each on a connection of its own.
    fn answering(&self, count: usize) -> Vec<usize> {
        let mut by = vec![0; BACKENDS];
        for number in 0..count {
            let to = if number % 2 == 0 { self.vip() } else { self.vip_v6() };
            let answer = self.connect(to).get("/small").unwrap();
            assert!(answer.status == 200 && answer.body == content(1, 1000), "{}", answer.head);
            by[answer.backend()[1..].parse::<usize>().unwrap()] += 1;
        }
        by
    }

    fn load(&self) -> f64 {
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

#[test]
fn connections_are_spread_counted_and_shown() {
    let world = World::new("round_robin", "");
    let by = world.answering(60);
    assert!(by.iter().all(|&n| (12..=28).contains(&n)), "{by:?}");
    // curl, too.
    let node = world.lab.node(Node::Client).unwrap();
    for vip in [world.vip(), world.vip_v6()] {
        let output = node.command("curl").args(["-s", "-S", &format!("http://{vip}/big")]).output().unwrap();
        assert!(output.stdout == content(1, BODY), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut open = world.connect(world.vip());
    open.get("/small").unwrap();
    eventually("it is shown", || {
        let flows = world.admin("/flows").unwrap();
        flows.contains("\"held\"") && flows.contains("\"b")
    });
    drop(open);
    eventually("no connection is left", || world.metric("plimsoll_switch_connections") == Some(0.0));
    let choices = world.metric("plimsoll_switch_choices");
    assert_eq!(Some(world.load()), choices, "only choices are load");
    assert_eq!(world.metric("plimsoll_switch_events_lost_total"), Some(0.0));
    let packets: f64 = (0..BACKENDS)
        .map(|b| world.metric(&format!("plimsoll_switch_backend_packets_total{{backend=\"b{b}\"}}")).unwrap())
        .sum();
    assert!(packets > 300.0, "{packets}");
}

/// Downloads that go on slowly.
struct Downloads(Vec<(TcpStream, Vec<u8>)>);

impl Downloads {
    fn start(world: &World, count: usize) -> Self {
        let one = |number: usize| {
            let to = if number.is_multiple_of(2) { world.vip() } else { world.vip_v6() };
            let mut client = world.connect(to);
            client.stream.write_all(b"GET /big HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n").unwrap();
            (client.stream, Vec::new())
        };
        let mut all = Self((0..count).map(one).collect());
        all.read_some();
        all
    }

    /// Reads a part of each.
    fn read_some(&mut self) {
        for (stream, body) in &mut self.0 {
            let mut part = vec![0; 100_000];
            stream.read_exact(&mut part).unwrap();
            body.append(&mut part);
        }
    }

    /// Reads each to its end, and compares.
    fn finish(self) {
        for (mut stream, mut body) in self.0 {
            stream.read_to_end(&mut body).unwrap();
            assert!(body.ends_with(&content(1, BODY)), "{} bytes", body.len());
        }
    }
}

#[test]
fn downloads_outlive_a_killed_process() {
    let mut world = World::new("least_connections", "");
    let mut downloads = Downloads::start(&world, 40);
    eventually("all are counted", || world.metric("plimsoll_switch_connections") == Some(40.0));
    world.front_end.take().unwrap().kill();
    downloads.read_some();
    assert_eq!(world.answering(20).iter().sum::<usize>(), 20, "new ones go by what was left");
    world.start();
    eventually("all are counted again", || world.metric("plimsoll_switch_connections") >= Some(40.0));
    downloads.read_some();
    let begun = "plimsoll_switch_connections_begun_total{by=\"policy\"}";
    let before = world.metric(begun).unwrap();
    world.answering(30);
    eventually("the policy chooses again", || world.metric(begun) > Some(before + 15.0));
    // An orderly stop, too.
    let stopped = world.front_end.take().unwrap().stop_within(PATIENCE).unwrap();
    assert!(stopped.is_some_and(|status| status.success()));
    world.start();
    downloads.finish();
    eventually("no connection is left", || world.metric("plimsoll_switch_connections") == Some(0.0));
}

#[test]
fn a_back_end_that_dies_or_is_drained_gets_no_new_connections() {
    let mut world = World::new("round_robin", "");
    let held = world.held(12);
    eventually("all are counted", || world.metric("plimsoll_switch_connections") == Some(12.0));
    world.post("/backends/b1/drain");
    eventually("it gets none", || world.answering(12)[1] == 0);
    for mut client in held {
        assert_eq!(client.get("/small").unwrap().status, 200, "those that it has go on");
    }
    world.post("/backends/b1/undrain");
    eventually("it gets some again", || world.answering(12)[1] > 0);
    world.origins[0] = None;
    eventually("it is down", || {
        world.metric("plimsoll_backend_state{backend=\"b0\",state=\"down\"}") == Some(1.0)
    });
    eventually("nobody is sent to it", || {
        let all = (0..12).map(|_| {
            let client = world.lab.node(Node::Client).unwrap();
            let answer = client.run(|| Client::connect(world.vip())?.get("/small")).unwrap();
            answer.is_ok_and(|answer| answer.backend() != "b0")
        });
        all.filter(|good| *good).count() == 12
    });
    world.start_origin(0);
    eventually("it gets some again", || {
        world.metric("plimsoll_backend_state{backend=\"b0\",state=\"up\"}") == Some(1.0)
            && world.answering(12)[0] > 0
    });
}

#[test]
fn decisions_are_logged_and_replay_identically() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("decisions");
    let mut world = World::new("least_connections", &format!("[decision_log]\ndirectory = {log:?}\n"));
    let mut open = world.held(10);
    world.answering(30);
    open.truncate(4);
    eventually("their ends are counted", || world.metric("plimsoll_switch_connections") == Some(4.0));
    // Another policy takes over while connections are under way.
    world.write("round_robin", &format!("[decision_log]\ndirectory = {log:?}\n"));
    world.front_end.as_ref().unwrap().reload().unwrap();
    eventually("it has taken over", || world.admin("/policy").is_some_and(|s| s.contains("round_robin")));
    world.answering(30);
    drop(open);
    eventually("no connection is left", || world.metric("plimsoll_switch_connections") == Some(0.0));
    world.front_end.take().unwrap().stop_within(PATIENCE).unwrap();
    let replay = Command::new(env!("CARGO_BIN_EXE_plimsoll")).arg("replay").arg(&log).output().unwrap();
    let said = String::from_utf8_lossy(&replay.stdout).into_owned();
    assert!(replay.status.success(), "{said}{}", String::from_utf8_lossy(&replay.stderr));
    assert!(said.contains("least_connections") && said.contains("round_robin"), "{said}");
}

#[test]
fn requests_are_seen_as_they_pass() {
    let directory = tempfile::tempdir().unwrap();
    let (log, list) = (directory.path().join("decisions"), directory.path().join("files"));
    std::fs::write(&list, format!("1000 5 /small\n{BODY} 5 /big\n")).unwrap();
    let mut world = World::new("csld", "");
    let sniffed = "plimsoll_switch_sniffed_total";
    // Several on one connection, and each is seen.
    let mut client = world.connect(world.vip());
    (0..10).for_each(|_| assert_eq!(client.get("/small").unwrap().status, 200));
    world.answering(20);
    eventually("all are seen", || world.metric(sniffed) == Some(30.0));
    assert_eq!(world.metric("plimsoll_switch_samples_lost_total"), Some(0.0));
    world.front_end.take().unwrap().stop_within(PATIENCE).unwrap();
    world.write("csld", &format!("[decision_log]\ndirectory = {log:?}\n"));
    world.append_direct(&format!("file_list = {list:?}\n"));
    world.start();
    world.answering(20);
    eventually("they are seen again", || world.metric(sniffed) >= Some(20.0));
    drop(client);
    eventually("no connection is left", || world.metric("plimsoll_switch_connections") == Some(0.0));
    world.front_end.take().unwrap().stop_within(PATIENCE).unwrap();
    let replay = Command::new(env!("CARGO_BIN_EXE_plimsoll")).arg("replay").arg(&log).output().unwrap();
    let said = String::from_utf8_lossy(&replay.stdout).into_owned();
    assert!(replay.status.success(), "{said}{}", String::from_utf8_lossy(&replay.stderr));
    let told = std::fs::read_to_string(world.directory.path().join("said")).unwrap();
    assert!(told.contains("read the list of files"), "{told}");
}

#[test]
fn it_keeps_two_capabilities_and_says_which_it_lacks() {
    let mut world = World::new("round_robin", "");
    let rights = Rights::of(world.front_end.as_ref().unwrap().id(), 4);
    assert_eq!(rights.permitted & !(NET_ADMIN | BPF), 0, "{rights:?}");
    world.front_end.take().unwrap().stop_within(PATIENCE).unwrap();
    let program = command_in(world.directory.path());
    let config = world.directory.path().join("plimsoll.toml");
    let all = as_user(54_321, &[], program);
    let node = world.lab.node(Node::FrontEnd).unwrap();
    let mut command = node.command(&all[0]);
    let output = command.args(&all[1..]).args(["balance", "--config"]).arg(config).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("CAP_BPF") && said.contains("CAP_NET_ADMIN"), "{said}");
}
