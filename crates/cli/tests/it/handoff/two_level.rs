//! Front-ends beside back-ends, each with a virtual address of its own, which hand a connection on to the machine whose
//! interval the document's size lies in.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use plimsoll_handoff::Key;
use plimsoll_lab::{Lab, LabConfig, Node, Process};

use super::http::{Answer, Client};
use crate::common::alone;

const MACHINES: usize = 2;
/// Documents: many small ones and a few large ones, with as many bytes together.
const SMALL: (usize, usize) = (10, 2_000);
const LARGE: (usize, usize) = (2, 10_000);

struct Machine {
    agent: Process,
    front_end: Process,
}

struct Cluster {
    machines: Vec<Machine>,
    lab: Lab,
    directory: tempfile::TempDir,
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
        for (name, (count, size)) in [("small", SMALL), ("large", LARGE)] {
            for number in 0..count {
                std::fs::write(www.join(format!("{name}{number}")), vec![b'x'; size]).unwrap();
            }
        }
        let key = directory.path().join("key");
        std::fs::write(&key, Key::generate().unwrap().to_hex()).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let machines = (0..MACHINES).map(|index| machine(&lab, index, directory.path())).collect();
        Self { machines, lab, directory }
    }

    fn get(&self, through: usize, path: &str) -> std::io::Result<Answer> {
        let client = self.lab.node(Node::Client).unwrap();
        client.run(|| Client::connect(vip(through))?.get(path)).unwrap()
    }

    /// 0 where it is not there, or nobody answers.
    fn metric(&self, machine: usize, sample: &str) -> f64 {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect("127.0.0.1:9090")?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = self.lab.node(Node::Backend(machine)).unwrap().run(ask).unwrap();
        let text = answer.unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
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

#[test]
fn a_connection_goes_to_the_machine_of_the_size() {
    let _alone = alone();
    let cluster = Cluster::start();
    let until = Instant::now() + Duration::from_secs(20);
    let wait = |what: &str, holds: &dyn Fn() -> bool| {
        while !holds() {
            let said = |name: String| std::fs::read_to_string(cluster.directory.path().join(name)).unwrap();
            assert!(
                Instant::now() < until,
                "no {what} in time\n{}\n{}",
                said("n0.log".into()),
                said("b0.log".into())
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait("answers", &|| (0..MACHINES).all(|m| cluster.get(m, "/small0").is_ok_and(|a| a.status == 200)));
    wait("links", &|| (0..MACHINES).all(|m| cluster.metric(m, "plimsoll_links") >= 1.0));
    let documents = |name: &'static str, count: usize| (0..count).map(move |n| format!("/{name}{n}"));
    let all: Vec<String> = documents("small", SMALL.0).chain(documents("large", LARGE.0)).collect();
    for _ in 0..20 {
        for (through, path) in all.iter().enumerate() {
            let answer = cluster.get(through % MACHINES, path).unwrap();
            assert_eq!(answer.status, 200);
            let answer = cluster.get((through + 1) % MACHINES, path).unwrap();
            assert_eq!(answer.body.len(), if path.starts_with("/small") { SMALL.1 } else { LARGE.1 });
        }
    }
    // Each size has one machine, whichever a client comes to.
    let owner = |through, path: &str| cluster.get(through, path).unwrap().backend();
    wait("agreement", &|| {
        let small = owner(0, "/small0");
        let large = owner(0, "/large0");
        let same = |name, count, of: &String| {
            documents(name, count).all(|path| (0..MACHINES).all(|m| owner(m, &path) == *of))
        };
        small != large && same("small", SMALL.0, &small) && same("large", LARGE.0, &large)
    });
    for machine in 0..MACHINES {
        assert!(cluster.metric(machine, "plimsoll_handoffs_total{outcome=\"taken\"}") > 0.0);
        for answered in ["here", "elsewhere"] {
            let sample = format!("plimsoll_peers_requests_total{{answered=\"{answered}\"}}");
            assert!(cluster.metric(machine, &sample) > 0.0, "{sample}");
        }
    }
    for machine in cluster.machines {
        for process in [machine.front_end, machine.agent] {
            let status = process.stop_within(Duration::from_secs(20)).unwrap();
            assert_eq!(status.and_then(|status| status.code()), Some(0));
        }
    }
}
