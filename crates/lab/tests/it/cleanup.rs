//! Nothing of a lab is left when it ends, however that is.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_lab::{Lab, LabConfig, Node};

use crate::common::{eventually, lab};

/// The network namespaces in which there are processes or threads, by number.
fn namespaces() -> BTreeSet<u64> {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path().join("ns/net")));
    processes.filter_map(|link| Some(fs::metadata(link).ok()?.ino())).collect()
}

/// The namespaces of a lab's nodes, for network and mounts.
fn held(lab: &Lab) -> Vec<u64> {
    lab.nodes().map(|node| fs::metadata(format!("/proc/{}/ns/net", node.pid())).unwrap().ino()).collect()
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

/// A process in a node that has a child which outlives it, as daemons do.
fn start_daemon(lab: &Lab) -> u32 {
    let node = lab.node(Node::Backend(0)).unwrap();
    let script = "mkdir /sys/fs/bpf/kept; (trap '' HUP TERM; setsid sleep 1000 >/dev/null 2>&1 & echo $!)";
    let output = node.command("sh").args(["-c", script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

fn is_alive(pid: u32) -> bool {
    // A process without a parent that waits for it is a zombie for a moment.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_dropped_lab_leaves_nothing() {
    let before = machine();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("state");
    fs::write(&file, "").unwrap();
    let config = LabConfig { backends: 3, remove_at_end: Some(file.clone()), ..LabConfig::default() };
    let lab = Lab::build(&config).unwrap();
    let (held, holders) = (held(&lab), lab.nodes().map(|node| node.pid()).collect::<Vec<_>>());
    assert_eq!(held.len(), 6);
    assert!(held.iter().all(|number| namespaces().contains(number)));
    let daemon = start_daemon(&lab);
    let node = lab.node(Node::Client).unwrap();
    let mut waiting = node.command("sleep").arg("1000").spawn().unwrap();
    assert!(is_alive(daemon) && file.exists());
    drop(lab);
    assert!(!is_alive(daemon) && holders.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()));
    assert!(!waiting.wait().unwrap().success());
    assert!(held.iter().all(|number| !namespaces().contains(number)));
    assert_eq!(machine(), before);
    assert!(!file.exists() && !Path::new("/sys/fs/bpf/kept").exists());
}

#[test]
fn a_lab_that_cannot_be_built_leaves_nothing() {
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
    let daemon = start_daemon(&lab);
    let numbers: Vec<String> = held(&lab).iter().map(u64::to_string).collect();
    println!("\nlab {daemon} {}", numbers.join(" "));
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn a_killed_process_leaves_nothing_of_its_lab() {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::CommandExt as _;

    let before = machine();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "cleanup::holds_a_lab_until_killed", "--nocapture"]).env(HOLDS_A_LAB, "1");
    let mut child = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.starts_with("lab ")).unwrap();
    let numbers: Vec<u64> = line.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
    let (daemon, held) = (u32::try_from(numbers[0]).unwrap(), &numbers[1..]);
    assert!(is_alive(daemon) && held.iter().all(|number| namespaces().contains(number)));
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the end of the namespaces", || held.iter().all(|number| !namespaces().contains(number)));
    assert!(!is_alive(daemon));
    eventually("the machine as it was", || machine() == before);
}
