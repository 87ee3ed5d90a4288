//! A simple program that clones, on a lab of its own: what the system calls of cloning cost this machine.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use plimsoll_lab::{CpuMeter, CpuPlan, Lab, LabConfig, Node, Process};

use super::bed::{Load, load};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/clone_speed/least/least_cloner.c");
const ROUTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/clone_speed/least/least_router.bpf.c");
/// Those who name the program of packets for their target.
const PACKET_COMPILERS: [&str; 4] = ["clang", "clang-19", "clang-16", "clang-14"];
const COMPILERS: [&str; 5] = ["cc", "gcc", "clang", "clang-16", "clang-14"];
/// Of both nodes; the client is led to the original's.
const ADDRESS: &str = "10.77.0.150";
const STARTING: Duration = Duration::from_millis(500);

const ORIGINAL: Node = Node::FrontEnd;
const CLONE: Node = Node::Backend(0);

/// The original's node and the clone's.
pub(crate) struct Least {
    plan: CpuPlan,
    pub(crate) lab: Lab,
    processes: [Process; 2],
    outputs: [RefCell<BufReader<ChildStdout>>; 2],
}

/// Median times, in microseconds.
pub(crate) struct LeastTimes {
    /// From the request, as it was read, to the clone.
    pub(crate) restored_us: f64,
    /// Until the original is up to date and lives again.
    pub(crate) forwarded_us: f64,
}

impl Least {
    pub(crate) fn start(plan: &CpuPlan) -> Self {
        let lab = Lab::build(&LabConfig { backends: 1, cpus: Some(plan.clone()), ..LabConfig::default() })
            .expect("a lab");
        let [own, clone] = [ORIGINAL, CLONE].map(|node| mac(&lab, node));
        let in_c = |mac: &str| format!("{{0x{}}}", mac.replace(':', ",0x"));
        let run = |node| lab.node(node).unwrap().root().join("run");
        let macs = [format!("-DOWN_MAC={}", in_c(&own)), format!("-DCLONE_MAC={}", in_c(&clone))];
        let headers = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
        let options = [&["-g", "-target", "bpf", "-c", &headers].map(str::to_owned)[..], &macs].concat();
        for (node, way, section) in [(ORIGINAL, "ingress", "classifier"), (CLONE, "egress", "silence")] {
            compile(&PACKET_COMPILERS, &options, ROUTER, &run(node).join("least.o"));
            compile(&COMPILERS, &[], SOURCE, &run(node).join("least_cloner"));
            tell(&lab, node, &format!("ip addr add {ADDRESS}/32 dev lo"));
            tell(&lab, node, "tc qdisc add dev eth0 clsact");
            let program = format!("bpf direct-action object-file /run/least.o section {section}");
            tell(&lab, node, &format!("tc filter add dev eth0 {way} {program}"));
        }
        tell(&lab, Node::Client, &format!("ip neigh replace {ADDRESS} lladdr {own} dev eth0"));
        let link = lab.node(CLONE).unwrap().address().to_string();
        let mut processes = [(CLONE, "clone"), (ORIGINAL, "original")].map(|(node, role)| {
            let node = lab.node(node).unwrap();
            let mut command = node.command("/run/least_cloner");
            node.spawn(command.args([role, ADDRESS, &link]).stdout(Stdio::piped())).expect("the least cloner")
        });
        let outputs =
            processes.each_mut().map(|p| RefCell::new(BufReader::new(p.child().stdout.take().unwrap())));
        let least = Self { plan: plan.clone(), lab, processes, outputs };
        least.wait();
        least
    }

    /// Until it answers.
    fn wait(&self) {
        for _ in 0..20 {
            let mut curl = self.lab.node(Node::Client).unwrap().command("curl");
            curl.args(["-s", "-o", "/dev/null", "--max-time", "1", &format!("http://{ADDRESS}/64")]);
            if curl.status().expect("curl").success() {
                return;
            }
            std::thread::sleep(STARTING / 10);
        }
        panic!("the least cloner does not answer");
    }

    /// So many connections ask for so many bytes again and again.
    pub(crate) fn load(
        &self,
        size: usize,
        connections: usize,
        seconds: usize,
        meter: Option<&CpuMeter>,
    ) -> Load {
        let url = format!("http://{ADDRESS}/{size}");
        load(&self.lab, &self.plan, &url, connections, seconds, meter)
    }

    /// One connection asks for a hundred bytes again and again, for a second.
    pub(crate) fn times(&self) -> LeastTimes {
        self.medians();
        self.load(100, 1, 1, None);
        let [restored_us, forwarded_us] = self.medians();
        LeastTimes { restored_us, forwarded_us }
    }

    /// Since they were asked for last, by both nodes.
    fn medians(&self) -> [f64; 2] {
        self.processes.iter().for_each(|process| process.reload().unwrap());
        self.outputs.each_ref().map(|output| {
            let mut line = String::new();
            output.borrow_mut().read_line(&mut line).unwrap();
            line.trim().parse().expect("a time")
        })
    }
}

fn compile(compilers: &[&str], options: &[String], source: &str, object: &Path) {
    let compiles = |compiler: &&str| {
        let mut command = Command::new(compiler);
        command.arg("-O2").args(options).arg("-o").arg(object).arg(source);
        command.status().is_ok_and(|status| status.success())
    };
    assert!(compilers.iter().any(compiles), "no compiler for {source}");
}

fn tell(lab: &Lab, node: Node, line: &str) {
    let (program, arguments) = line.split_once(' ').unwrap();
    let output = lab.node(node).unwrap().command(program).args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The address of a node's interface.
fn mac(lab: &Lab, node: Node) -> String {
    let file = lab.node(node).unwrap().root().join("sys/class/net/eth0/address");
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}
