//! Running things in nodes.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use plimsoll_lab::{CpuLimit, CpuMeter, CpuPlan, Lab, LabConfig, LabError, Node, Process};
use plimsoll_testkit::ProcessWatch;

use crate::common::{PATIENCE, eventually, lab};

fn printed(command: &mut std::process::Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn commands_run_in_the_node_and_in_the_present_directory() {
    let lab = lab(1);
    let node = lab.node(Node::Backend(0)).unwrap();
    let interfaces = printed(node.command("ls").arg("/sys/class/net"));
    assert_eq!(interfaces.split_whitespace().collect::<Vec<_>>(), ["eth0", "lo"]);
    let addresses = printed(node.command("ip").args(["-brief", "address", "show", "eth0"]));
    assert!(addresses.contains("10.77.0.11/24") && addresses.contains("fd77::11/64"), "{addresses}");
    let here = std::env::current_dir().unwrap();
    assert_eq!(printed(&mut node.command("pwd")).trim(), here.to_str().unwrap());
    let missing = node.command("no-such-program-here").output().unwrap();
    assert_eq!(missing.status.code(), Some(127));
}

#[test]
fn each_node_has_run_and_pins_of_its_own() {
    let lab = lab(1);
    let (one, other) = (lab.node(Node::FrontEnd).unwrap(), lab.node(Node::Backend(0)).unwrap());
    printed(one.command("sh").args(["-c", "echo here >/run/mark; mkdir /sys/fs/bpf/mark"]));
    assert_eq!(fs::read_to_string(one.root().join("run/mark")).unwrap(), "here\n");
    assert!(one.root().join("sys/fs/bpf/mark").is_dir());
    for file in ["run/mark", "sys/fs/bpf/mark"] {
        assert!(!other.root().join(file).exists() && !Path::new("/").join(file).exists(), "{file}");
    }
}

#[test]
fn a_process_is_paused_resumed_and_stopped_by_its_own_number() {
    let lab = lab(1);
    let node = lab.node(Node::Client).unwrap();
    let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let mut command = node.command("sh");
    let mut process = node.spawn(command.args(["-c", script]).stdout(Stdio::piped())).unwrap();
    let name = || fs::read_to_string(format!("/proc/{}/comm", process.id())).unwrap_or_default();
    eventually("the program", || name() == "sh\n");
    let state = |process: &Process| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    };
    let mut line = String::new();
    let output = process.child().stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
    process.pause().unwrap();
    eventually("the pause", || state(&process) == 'T');
    process.resume().unwrap();
    eventually("the end of the pause", || state(&process) != 'T');
    assert!(process.is_running());
    let status = process.stop_within(PATIENCE).unwrap().unwrap();
    assert_eq!(status.code(), Some(7));
}

#[test]
fn a_process_that_is_dropped_is_dead() {
    let lab = lab(1);
    let node = lab.node(Node::Client).unwrap();
    let process = node.spawn(node.command("sleep").arg("1000")).unwrap();
    let watch = ProcessWatch::new(process.id());
    assert!(!watch.has_ended());
    drop(process);
    assert!(watch.is_gone());
}

#[test]
fn what_is_not_there_is_named() {
    let lab = lab(1);
    let error = lab.node(Node::Backend(1)).unwrap_err().to_string();
    assert_eq!(error, "no node b1: this lab has 1 back-ends, from b0");
    assert!(lab.link(Node::Switch).is_err());
    assert!(lab.traffic().is_err());
    let bad = LabConfig { backends: 0, ..LabConfig::default() };
    assert!(matches!(Lab::build(&bad), Err(LabError::Invalid(_))));
}

#[test]
fn packets_are_captured() {
    let lab = lab(1);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ping.pcap");
    let node = lab.node(Node::FrontEnd).unwrap();
    let capture = match node.capture("udp port 9", &file) {
        Err(error @ LabError::Program { .. }) => {
            eprintln!("skipped: {error}");
            return;
        }
        other => other.unwrap(),
    };
    let address = node.address();
    let send =
        || std::net::UdpSocket::bind("0.0.0.0:0").and_then(|s| s.send_to(b"a mark in it", (address, 9)));
    lab.node(Node::Client).unwrap().run(send).unwrap().unwrap();
    eventually("the packet", || fs::metadata(&file).is_ok_and(|file| file.len() > 24));
    let counts = capture.stop().unwrap();
    assert!(counts.contains("1 packet captured"), "{counts}");
    let bytes = fs::read(&file).unwrap();
    assert!(bytes.windows(12).any(|window| window == b"a mark in it"));
    let error = node.capture("no such filter", &file).unwrap_err().to_string();
    assert!(error.contains("no such filter"), "{error}");
}

#[test]
fn a_cpu_of_its_own_for_the_front_end() {
    let Ok(plan) = CpuPlan::of_this_machine() else {
        eprintln!("skipped: there is only one CPU");
        return;
    };
    let config = LabConfig { cpus: Some(plan.clone()), backends: 1, ..LabConfig::default() };
    let lab = Lab::build(&config).unwrap();
    let allowed = |node| {
        let status =
            printed(lab.node(node).unwrap().command("grep").args(["Cpus_allowed_list", "/proc/self/status"]));
        status.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(allowed(Node::FrontEnd), plan.front_end.to_string());
    assert!(!allowed(Node::Client).contains(&plan.front_end.to_string()));
    let steered = lab.node(Node::FrontEnd).unwrap().root().join("sys/class/net/eth0/queues/rx-0/rps_cpus");
    let mask =
        u64::from_str_radix(&fs::read_to_string(steered).unwrap().trim().replace(',', ""), 16).unwrap();
    assert_eq!(mask, 1 << plan.front_end);
    // Work of a known length, on that CPU, shows.
    let meter = CpuMeter::start(plan.front_end).unwrap();
    let before = meter.read();
    let work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; cat /proc/$$/schedstat";
    let schedstat = printed(lab.node(Node::FrontEnd).unwrap().command("sh").args(["-c", work]));
    let ran_ns: u64 = schedstat.split_whitespace().next().unwrap().parse().unwrap();
    let used = meter.read().since(before);
    assert!(used.busy >= Duration::from_nanos(ran_ns) && used.share() <= 1.0, "{used:?}, {ran_ns} ns");
}

/// The thread never rests, and was started by one in the group.
#[test]
fn threads_of_a_node_use_no_more_than_their_limit() {
    let limit = match CpuLimit::new() {
        Ok(limit) => limit,
        // Not every machine lets its control groups be used.
        Err(LabError::Unsupported { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    limit.set(Some(0.2)).unwrap();
    let lab = lab(1);
    let used = lab.node(Node::Backend(0)).unwrap().run(|| {
        limit.add_this_thread().unwrap();
        let spin = || {
            let began = std::time::Instant::now();
            while began.elapsed() < Duration::from_secs(1) {
                std::hint::spin_loop();
            }
            let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
            Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
        };
        std::thread::spawn(spin).join().unwrap()
    });
    let (wanted, throttled) = limit.periods().unwrap();
    assert!(used.unwrap() < Duration::from_millis(400) && throttled > 20 && wanted >= throttled);
}
