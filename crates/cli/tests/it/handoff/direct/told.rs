//! What the switch tells who records, and what agents tell the switch.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use plimsoll_lab::{Node, Process};
use plimsoll_testkit::{PATIENCE, eventually};
use plimsoll_wire::Key;
use serde_json::Value;

use super::world::{BACKENDS, World};
use crate::common::{plimsoll, text};

#[test]
fn what_passes_at_a_running_switch_is_a_trace() {
    let directory = tempfile::tempdir().unwrap();
    let (list, out) = (directory.path().join("files"), directory.path().join("seen.csv"));
    std::fs::write(&list, "1000 5 /small\n").unwrap();
    let mut world = World::set_up();
    world.write("round_robin", "");
    world.append_direct(&format!("file_list = {list:?}\n"));
    world.start();
    world.answering(4);
    let node = world.lab.node(Node::FrontEnd).unwrap();
    let mut command = node.command(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["record", "--json", "--duration", "600s", "--requests", "12", "--config"]);
    command.arg(world.directory.path().join("plimsoll.toml")).arg("-o").arg(&out);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("Recording"), "{line}");
    // The packet program copies from now on.
    eventually("requests are seen", || {
        world.answering(1);
        world.metric("plimsoll_switch_samples_total") > Some(0.0)
    });
    // Several requests on one connection, too, and one for a document that is in no list.
    let mut client = world.connect(world.vip_v6());
    (0..5).for_each(|_| assert_eq!(client.get("/small").unwrap().status, 200));
    client.get("/middle").unwrap();
    world.answering(12);
    let mut told = String::new();
    child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(child.wait().unwrap().success());
    let told: Value = serde_json::from_str(&told).unwrap();
    let by_key =
        ["requests", "targets", "clients", "unknown_sizes", "samples_lost"].map(|key| told[key].as_u64());
    assert_eq!(by_key, [Some(12), Some(2), Some(2), Some(1), Some(0)], "{told}");
    let csv = std::fs::read_to_string(&out).unwrap();
    let rows = csv.lines().map(|row| row.split(',').skip(1).take(2).collect::<Vec<_>>());
    assert_eq!(rows.filter(|row| row[..] == ["/small", "1000"]).count(), 11, "{csv}");
    let simulated =
        plimsoll(&["simulate", out.to_str().unwrap(), "--policy", "round_robin", "--backends", "2"]);
    assert!(simulated.status.success(), "{}", text(&simulated.stderr));
}

/// Agents that tell host metrics of whoever serves at port 80.
fn agents(world: &World, key: &str) -> Vec<Process> {
    let start = |number: usize| {
        let node = world.lab.node(Node::Backend(number)).unwrap();
        let listen = SocketAddr::from((node.address(), 7401)).to_string();
        let mut command = node.command(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["agent", "--key", key, "--load-listen", &listen, "--host-metrics", "80"]);
        command.args(["--load-api", "127.0.0.1:7402"]).stderr(Stdio::null());
        node.spawn(&mut command).unwrap()
    };
    (0..BACKENDS).map(start).collect()
}

#[test]
fn who_accepts_nothing_gets_less_by_host_metrics() {
    let mut world = World::set_up();
    // The first back-end's server accepts nothing: its queue is what its agent sees.
    world.origins[0] = None;
    let node = world.lab.node(Node::Backend(0)).unwrap();
    let stuck = node.run(|| plimsoll_testkit::wait_for("the port", || TcpListener::bind("[::]:80").ok()));
    let stuck = stuck.unwrap();
    let key = world.directory.path().join("load.key");
    std::fs::write(&key, Key::new([7; 32]).to_hex()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let _agents = agents(&world, key.to_str().unwrap());
    let more = format!("[load_information]\nkey_file = {key:?}\n");
    world.write("weighted_round_robin_host", &more);
    world.append("policy", "interval_s = 0.1\nf_i = 0.0\nf_p = 0.0\nf_h = 1.0\n");
    world.start();
    let client = world.lab.node(Node::Client).unwrap();
    let to = world.vip();
    let connect = || client.run(|| TcpStream::connect_timeout(&to, PATIENCE)).unwrap().unwrap();
    let established = |backend: usize| {
        let name = format!("plimsoll_switch_backend_established_total{{backend=\"b{backend}\"}}");
        world.metric(&name).unwrap()
    };
    let mut held: Vec<TcpStream> = (0..30).map(|_| connect()).collect();
    // Sooner or later the weights follow from the queue.
    eventually("the one that is stuck gets little", || {
        let before: Vec<f64> = (0..BACKENDS).map(established).collect();
        held.extend((0..24).map(|_| connect()));
        let by: Vec<f64> = (0..BACKENDS).map(|b| established(b) - before[b]).collect();
        held.drain(30..);
        by[0] * 3.0 <= by[1].min(by[2])
    });
    assert_eq!(world.metric("plimsoll_backend_state{backend=\"b0\",state=\"up\"}"), Some(1.0));
    drop(stuck);
}
