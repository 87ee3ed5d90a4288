//! Front-ends beside back-ends, each with a virtual address of its own, which hand a connection on to the machine whose
//! interval the document's size lies in.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_lab::{Lab, LabConfig, Node, Process};
use plimsoll_testkit::{PATIENCE, eventually};
use plimsoll_wire::Key;

use super::bed::move_client;
use super::http::{Answer, Client, ask_admin, content, metric_of};
use crate::common::{alone, beside_others};

const MACHINES: usize = 2;
/// Documents, how many and of how many bytes: half of all bytes are those of middle size, in which the boundary lies.
const DOCUMENTS: [(&str, usize, usize); 3] =
    [("small", 10, 2_000), ("middle", 10, 4_000), ("large", 2, 10_000)];

struct Machine {
    agent: Process,
    front_end: Process,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for name in ["n0.log", "n1.log", "b0.log", "b1.log"] {
                let said = std::fs::read_to_string(self.directory.path().join(name)).unwrap_or_default();
                eprintln!("{name}:\n{said}");
            }
        }
    }
}

struct Cluster {
    machines: Vec<Machine>,
    lab: Lab,
    directory: tempfile::TempDir,
    /// Requests that each machine's front-end was sent and that were answered with 200.
    answered: [AtomicUsize; MACHINES],
}

fn own(lab: &Lab, index: usize) -> IpAddr {
    lab.node(Node::Backend(index)).unwrap().address().into()
}

/// Where clients find the front-end of this machine.
fn vip(index: usize) -> SocketAddr {
    ([10, 77, 0, 201 + index as u8], 80).into()
}

impl Cluster {
    fn start() -> Self {
        let lab = Lab::build(&LabConfig { backends: MACHINES, ..LabConfig::default() })
            .unwrap_or_else(|error| panic!("these tests need root, and a kernel that allows labs: {error}"));
        let directory = tempfile::tempdir().unwrap();
        let www = directory.path().join("www");
        std::fs::create_dir(&www).unwrap();
        for (name, count, size) in DOCUMENTS {
            for number in 0..count {
                std::fs::write(www.join(format!("{name}{number}")), content(number as u64, size)).unwrap();
            }
        }
        let key = directory.path().join("key");
        std::fs::write(&key, Key::generate().unwrap().to_hex()).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let machines = (0..MACHINES).map(|index| machine(&lab, index, directory.path())).collect();
        Self { machines, lab, directory, answered: Default::default() }
    }

    fn get(&self, through: usize, path: &str) -> std::io::Result<Answer> {
        let client = self.lab.node(Node::Client).unwrap();
        let answer = client.run(|| Client::connect(vip(through))?.get(path)).unwrap();
        if answer.as_ref().is_ok_and(|answer| answer.status == 200) {
            self.answered[through].fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    /// Gets each document this often through each machine, with this many clients.
    fn ask_for_all(&self, rounds: usize, clients: usize) {
        let mut wanted = Vec::new();
        for (name, _, size) in DOCUMENTS.into_iter().cycle().take(rounds * DOCUMENTS.len()) {
            for (number, path) in documents(name).enumerate() {
                for through in [number % MACHINES, (number + 1) % MACHINES] {
                    wanted.push((through, path.clone(), content(number as u64, size)));
                }
            }
        }
        let next = AtomicUsize::new(0);
        let ask = || {
            while let Some((through, path, body)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                let answer = self.get(*through, path).unwrap();
                assert!(answer.status == 200 && answer.body == *body, "{path}: {}", answer.head);
            }
        };
        std::thread::scope(|scope| (0..clients).for_each(|_| drop(scope.spawn(ask))));
    }

    /// 0 where it is not there, or nobody answers.
    fn metric(&self, machine: usize, sample: &str) -> f64 {
        let page = self.lab.node(Node::Backend(machine)).unwrap().run(|| ask_admin("/metrics")).unwrap();
        metric_of(&page.unwrap_or_default(), sample).unwrap_or(0.0)
    }
}

fn machine(lab: &Lab, index: usize, directory: &Path) -> Machine {
    let node = lab.node(Node::Backend(index)).unwrap();
    let address = format!("{}/32", vip(index).ip());
    let added = node.command("ip").args(["address", "add", &address, "dev", "eth0"]).status().unwrap();
    assert!(added.success());
    let log = |name: &str| std::fs::File::create(directory.join(format!("{name}{index}.log"))).unwrap();
    let spawn = |mut command: Command, name: &str| node.spawn(command.stderr(log(name))).unwrap();
    let plimsoll = || node.command(env!("CARGO_BIN_EXE_plimsoll"));
    let mut agent = plimsoll();
    agent.args(["agent", "--name", &format!("b{index}"), "--listen", &format!("{}:7400", own(lab, index))]);
    agent.args(["--interface", "eth0", "--serve"]).arg(format!("origin:{}/www", directory.display()));
    agent
        .args(["--origin-listen", &format!("{}:8080", own(lab, index))])
        .arg("--key")
        .arg(directory.join("key"));
    let (mut backends, mut others) = (String::new(), Vec::new());
    for other in 0..MACHINES {
        let at = own(lab, other);
        backends += &format!("[[backend]]\nname = \"b{other}\"\naddress = \"{at}:8080\"\n");
        if other != index {
            backends += &format!("agent = \"{at}:7400\"\n");
            others.push(format!("\"n{other}={at}:7500\""));
            agent.args(["--front-end", &format!("n{other}={at}"), "--vip", &vip(other).to_string()]);
        }
    }
    let text = format!(
        "mechanism = \"handoff\"\nworkers = 1\n[[listener]]\naddress = \"{}\"\n{backends}\
         [policy]\nname = \"adaptload\"\nbatch = 200\n[health]\nprobe = \"tcp\"\n\
         [handoff]\nname = \"n{index}\"\nkey_file = \"key\"\ninterfaces = [\"eth0\"]\nmin_size = 0\n\
         [peers]\nname = \"n{index}\"\nlocal = \"b{index}\"\naddress = \"{}:7500\"\nkey_file = \"key\"\n\
         others = [{}]\nperiod = \"100ms\"\nkeep = \"60s\"\n",
        vip(index),
        own(lab, index),
        others.join(", "),
    );
    let file = directory.join(format!("n{index}.toml"));
    std::fs::write(&file, text).unwrap();
    let mut front_end = plimsoll();
    front_end.args(["balance", "--no-watch", "--config"]).arg(&file);
    Machine { agent: spawn(agent, "b"), front_end: spawn(front_end, "n") }
}

/// All documents of this name.
fn documents(wanted: &str) -> impl Iterator<Item = String> {
    let (name, count, _) = DOCUMENTS.into_iter().find(|(name, ..)| *name == wanted).unwrap();
    (0..count).map(move |number| format!("/{name}{number}"))
}

impl Cluster {
    /// Requests through this machine's front-end that were answered here, or elsewhere.
    fn counted(&self, machine: usize, place: &str) -> f64 {
        self.metric(machine, &format!("plimsoll_peers_requests_total{{answered=\"{place}\"}}"))
    }

    /// Requests that this machine's front-end has handed off, and that were answered elsewhere.
    fn handed(&self, machine: usize) -> (f64, f64) {
        let taken = self.metric(machine, "plimsoll_handoffs_total{outcome=\"taken\"}");
        (taken, self.counted(machine, "elsewhere"))
    }

    /// Waits until the front-end has counted every request that was answered: agents report a little later.
    fn wait_for_reports(&self, machine: usize) {
        eventually("all reports", || {
            let counted = self.counted(machine, "here") + self.counted(machine, "elsewhere");
            counted >= self.answered[machine].load(Ordering::Relaxed) as f64
        });
    }
}

#[test]
fn a_connection_goes_to_the_machine_of_the_size() {
    let _turn = alone();
    owned_by_size(Cluster::start(), 1);
}

/// The same where clients are far away.
pub(super) fn a_far_connection_goes_to_the_machine_of_the_size() {
    let _turn = beside_others();
    let cluster = Cluster::start();
    move_client(&cluster.lab);
    owned_by_size(cluster, 20);
}

/// Small and large documents come to have a machine each, when this many clients ask at a time.
fn owned_by_size(mut cluster: Cluster, clients: usize) {
    eventually("answers", || (0..MACHINES).all(|m| cluster.get(m, "/small0").is_ok_and(|a| a.status == 200)));
    eventually("links", || (0..MACHINES).all(|m| cluster.metric(m, "plimsoll_links") >= 1.0));
    cluster.ask_for_all(20, clients);
    // Small and large ones have one machine each, whichever a client comes to.
    let owner = |through, path: &str| cluster.get(through, path).unwrap().backend();
    let all_of =
        |name: &str, of: &str| documents(name).all(|path| (0..MACHINES).all(|m| owner(m, &path) == of));
    eventually("agreement", || {
        let (small, large) = (owner(0, "/small0"), owner(0, "/large0"));
        small != large && all_of("small", &small) && all_of("large", &large)
    });
    for (name, count) in [("small", 10.0), ("large", 2.0)] {
        let at = owner(0, &format!("/{name}0"));
        let other = (0..MACHINES).find(|machine| format!("b{machine}") != at).unwrap();
        cluster.wait_for_reports(other);
        let before = cluster.handed(other);
        assert!(documents(name).all(|path| owner(other, &path) == at));
        eventually("each of them handed off", || {
            cluster.handed(other) == (before.0 + count, before.1 + count)
        });
    }
    for machine in std::mem::take(&mut cluster.machines) {
        for process in [machine.front_end, machine.agent] {
            let status = process.stop_within(PATIENCE).unwrap();
            assert_eq!(status.and_then(|status| status.code()), Some(0));
        }
    }
}
