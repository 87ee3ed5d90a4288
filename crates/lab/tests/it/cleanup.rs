//! Nothing of a lab is left when it ends, however that is.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_lab::{Conditions, Lab, LabConfig, Node};
use plimsoll_testkit::ProcessWatch;

use crate::common::{eventually, lab, on_a_machine_of_its_own};

/// The network namespace of a process. The kernel gives the number of one that is gone to another one; as long as this is
/// held open, the namespace keeps its number, and nobody is in it unless it was left behind.
struct Namespace(File);

impl Namespace {
    fn of(pid: u32) -> Self {
        Self(File::open(format!("/proc/{pid}/ns/net")).unwrap())
    }

    /// Whether any process is in it.
    fn is_inhabited(&self) -> bool {
        let number = self.0.metadata().unwrap().ino();
        let processes = fs::read_dir("/proc").unwrap();
        let mut links = processes.filter_map(|entry| Some(entry.ok()?.path().join("ns/net")));
        links.any(|link| fs::metadata(link).is_ok_and(|namespace| namespace.ino() == number))
    }
}

/// What would show that a lab is still there: the namespaces of its nodes, and the processes that hold these.
fn held(pids: impl Iterator<Item = u32>) -> (Vec<Namespace>, Vec<ProcessWatch>) {
    pids.map(|pid| (Namespace::of(pid), ProcessWatch::new(pid))).unzip()
}

fn pids(lab: &Lab) -> impl Iterator<Item = u32> {
    lab.nodes().map(|node| node.pid())
}

/// What a lab could leave on the machine: interfaces, named namespaces, pins, mounts.
fn machine() -> [Vec<String>; 3] {
    let list = |path: &str| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap().lines().map(str::to_owned).collect();
    [list("/sys/class/net"), list("/run/netns"), mounts]
}

/// Threads that forward frames, and TAP interfaces, which this process has.
fn emulation() -> (usize, usize) {
    let entries = |path: &str| fs::read_dir(path).unwrap().flatten().map(|entry| entry.path());
    let is_forwarder = |task: &Path| fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "link\n");
    let is_tap = |file: &Path| fs::read_link(file).is_ok_and(|target| target == Path::new("/dev/net/tun"));
    let threads = entries("/proc/self/task").filter(|task| is_forwarder(task)).count();
    (threads, entries("/proc/self/fd").filter(|file| is_tap(file)).count())
}

/// A process in a node that has a child which outlives it, as daemons do. The number of the child.
fn start_daemon(lab: &Lab) -> u32 {
    let node = lab.node(Node::Backend(0)).unwrap();
    let script = "mkdir /sys/fs/bpf/kept; (trap '' HUP TERM; setsid sleep 1000 >/dev/null 2>&1 & echo $!)";
    let output = node.command("sh").args(["-c", script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn a_dropped_lab_leaves_nothing() {
    if !on_a_machine_of_its_own("cleanup::a_dropped_lab_leaves_nothing") {
        return;
    }
    let before = machine();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("state");
    fs::write(&file, "").unwrap();
    let config = LabConfig { backends: 3, remove_at_end: Some(file.clone()), ..LabConfig::default() };
    let lab = Lab::build(&config).unwrap();
    let (namespaces, holders) = held(pids(&lab));
    assert_eq!(namespaces.len(), 6);
    assert!(namespaces.iter().all(Namespace::is_inhabited));
    let daemon = ProcessWatch::new(start_daemon(&lab));
    let node = lab.node(Node::Client).unwrap();
    let mut waiting = node.command("sleep").arg("1000").spawn().unwrap();
    assert!(!daemon.has_ended() && file.exists());
    let (threads, taps) = emulation();
    for node in [Node::Client, Node::Backend(2)] {
        lab.link(node).unwrap().set(&Conditions::delayed(Duration::from_secs(1))).unwrap();
    }
    // A thread takes its name when it starts.
    eventually("threads and interfaces", || emulation() == (threads + 2, taps + 4));
    drop(lab);
    assert_eq!(emulation(), (threads, taps));
    assert!(!namespaces.iter().any(Namespace::is_inhabited));
    assert!(holders.iter().all(ProcessWatch::is_gone));
    // Killed processes leave their namespaces first, and end a moment later.
    eventually("the end of the daemon", || daemon.has_ended());
    assert!(!waiting.wait().unwrap().success());
    assert_eq!(machine(), before);
    assert!(!file.exists() && !Path::new("/sys/fs/bpf/kept").exists());
}

#[test]
fn a_lab_that_cannot_be_built_leaves_nothing() {
    if !on_a_machine_of_its_own("cleanup::a_lab_that_cannot_be_built_leaves_nothing") {
        return;
    }
    let before = machine();
    let config = LabConfig { remove_at_end: Some("relative".into()), ..LabConfig::default() };
    assert!(Lab::build(&config).is_err());
    let missing = LabConfig { remove_at_end: Some("/no/such/directory/x".into()), ..LabConfig::default() };
    let error = Lab::build(&missing).unwrap_err().to_string();
    assert!(error.contains("/no/such/directory"), "{error}");
    assert_eq!(machine(), before);
}

/// Set in the process that is killed.
const HOLDS_A_LAB: &str = "PLIMSOLL_TEST_HOLDS_A_LAB";

/// Does nothing unless it is run by the test below: then it builds a lab, says what of, and waits to be killed.
#[test]
fn holds_a_lab_until_killed() {
    if std::env::var_os(HOLDS_A_LAB).is_none() {
        return;
    }
    let lab = lab(2);
    lab.link(Node::Client).unwrap().set(&Conditions::delayed(Duration::from_secs(1))).unwrap();
    let daemon = start_daemon(&lab);
    let numbers: Vec<String> = pids(&lab).map(|pid| pid.to_string()).collect();
    println!("\nlab {daemon} {}", numbers.join(" "));
    // Until the other end is closed, should that come first.
    let _ = std::io::read_to_string(std::io::stdin());
}

#[test]
fn a_killed_process_leaves_nothing_of_its_lab() {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::CommandExt as _;

    if !on_a_machine_of_its_own("cleanup::a_killed_process_leaves_nothing_of_its_lab") {
        return;
    }
    let before = machine();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "cleanup::holds_a_lab_until_killed", "--nocapture"]).env(HOLDS_A_LAB, "1");
    let mut child = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.starts_with("lab ")).unwrap();
    let pids: Vec<u32> = line.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
    // All of them run until the process is killed, so these are their numbers.
    let daemon = ProcessWatch::new(pids[0]);
    let (namespaces, holders) = held(pids[1..].iter().copied());
    assert!(!daemon.has_ended() && namespaces.iter().all(Namespace::is_inhabited));
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the end of the holders", || holders.iter().all(ProcessWatch::has_ended));
    assert!(!namespaces.iter().any(Namespace::is_inhabited));
    eventually("the end of the daemon", || daemon.has_ended());
    eventually("the machine as it was", || machine() == before);
}
