//! Ways to back-ends other than plain Ethernet: nginx behind the switch, asked by curl.

use plimsoll_lab::{Node, Process};
use plimsoll_testkit::eventually;

use super::world::{BACKENDS, World};
use crate::handoff::http::content;

/// A request that is longer than the packets of the way: fields of this many bytes.
const FIELD_BYTES: usize = 6000;
const ANSWER_BYTES: usize = 600_000;

/// nginx in place of the origins, at all addresses.
fn serve_by_nginx(world: &mut World) -> Vec<Process> {
    world.origins.iter_mut().for_each(|origin| *origin = None);
    let directory = world.directory.path().to_owned();
    let serve = |number: usize| {
        let node = world.lab.node(Node::Backend(number)).unwrap();
        let own = directory.join(format!("nginx{number}"));
        std::fs::create_dir(&own).unwrap();
        let text = format!(
            "daemon off; master_process off; pid {own}/pid; error_log {own}/error.log;\nevents {{}}\n\
             http {{ access_log off; add_header X-Backend b{number}; large_client_header_buffers 4 16k;\n\
             client_body_temp_path {own}/body; proxy_temp_path {own}/proxy; fastcgi_temp_path {own}/fastcgi;\n\
             uwsgi_temp_path {own}/uwsgi; scgi_temp_path {own}/scgi;\n\
             server {{ listen 80; listen [::]:80; root {www}; }} }}\n",
            own = own.display(),
            www = directory.join("www").display()
        );
        std::fs::write(own.join("conf"), text).unwrap();
        let mut command = node.command("nginx");
        command.arg("-c").arg(own.join("conf")).arg("-p").arg(&own);
        node.spawn(&mut command).unwrap()
    };
    (0..BACKENDS).map(serve).collect()
}

/// Runs the product at a node; it must succeed.
fn plimsoll(world: &World, node: Node, arguments: &str) {
    let mut command = world.lab.node(node).unwrap().command(env!("CARGO_BIN_EXE_plimsoll"));
    let output = command.args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What curl says of a download from each virtual address, from the client's node.
fn curl(world: &World) -> Result<(), String> {
    let node = world.lab.node(Node::Client).unwrap();
    let field = format!("X-Long: {}", "x".repeat(FIELD_BYTES));
    for vip in [world.vip(), world.vip_v6()] {
        let mut command = node.command("curl");
        command.args(["-s", "-S", "--connect-timeout", "2", "--max-time", "20", "-H", &field]);
        let output = command.arg(format!("http://{vip}/middle")).output().unwrap();
        if output.stdout != content(1, ANSWER_BYTES) {
            return Err(format!("{vip}: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    Ok(())
}

/// The client's kernel merges no packets, so that long ones do not fit into tunnels.
fn single_packets(world: &World) {
    let node = world.lab.node(Node::Client).unwrap();
    let set = node.command("ip").args(["link", "set", "eth0", "gso_max_segs", "1"]).status().unwrap();
    assert!(set.success());
}

fn all_up(world: &World) -> bool {
    (0..BACKENDS).all(|b| {
        world.metric(&format!("plimsoll_backend_state{{backend=\"b{b}\",state=\"up\"}}")) == Some(1.0)
    })
}

#[test]
fn a_network_in_a_vlan() {
    let mut world = World::set_up();
    let _servers = serve_by_nginx(&mut world);
    let nodes = [Node::Client, Node::FrontEnd].into_iter().chain((0..BACKENDS).map(Node::Backend));
    for node in nodes.clone() {
        plimsoll(&world, node, "vlan-end --interface eth0 --vlan 20");
    }
    world.write("round_robin", "");
    world.start();
    eventually("back-ends are found in the VLAN", || all_up(&world));
    (0..6).for_each(|_| curl(&world).unwrap());
    // Who is in another one is not heard.
    plimsoll(&world, Node::Client, "vlan-end --interface eth0 --vlan 21");
    assert!(curl(&world).is_err());
    for node in nodes {
        plimsoll(&world, node, "vlan-end --interface eth0 --remove");
    }
    eventually("without tags again", || curl(&world).is_ok());
}

#[test]
fn back_ends_in_tunnels() {
    for (kind, remote) in [("ipip", 4), ("gue", 4), ("ipip", 6), ("gue", 6)] {
        let mut world = World::set_up();
        let _servers = serve_by_nginx(&mut world);
        single_packets(&world);
        let front_end = world.lab.node(Node::FrontEnd).unwrap();
        let switch = match remote {
            4 => front_end.address().to_string(),
            _ => front_end.address_v6().to_string(),
        };
        for backend in 0..BACKENDS {
            let command = format!("tunnel-end --interface eth0 --switch {switch}");
            plimsoll(&world, Node::Backend(backend), &command);
        }
        match remote {
            4 => world.write("round_robin", ""),
            _ => world.write_v6("round_robin"),
        }
        world.append_direct(&format!("via = {kind:?}\n"));
        world.start();
        eventually("back-ends are found", || all_up(&world));
        for _ in 0..BACKENDS {
            curl(&world).unwrap_or_else(|error| panic!("{kind} {remote}: {error}"));
        }
        assert!(world.metric("plimsoll_switch_packets_total{action=\"too_big\"}") > Some(0.0), "{kind}");
        let by = world.metric("plimsoll_switch_packets_total{action=\"forwarded\"}");
        assert!(by > Some(50.0), "{kind}: {by:?}");
        // Without an end of the tunnel nobody gets anything.
        for backend in 0..BACKENDS {
            plimsoll(&world, Node::Backend(backend), "tunnel-end --interface eth0 --remove");
        }
        assert!(curl(&world).is_err(), "{kind}");
    }
}

#[test]
fn by_xdp() {
    let mut world = World::set_up();
    world.prepare_xdp();
    let _servers = serve_by_nginx(&mut world);
    world.write("least_connections", "");
    world.append_direct("attach = \"xdp\"\n");
    world.start();
    (0..6).for_each(|_| curl(&world).unwrap());
    let by = world.metric("plimsoll_switch_packets_total{action=\"forwarded\"}");
    assert!(by > Some(100.0), "{by:?}");
    let node = world.lab.node(Node::FrontEnd).unwrap();
    let links = node.command("ip").args(["link", "show", "eth0"]).output().unwrap();
    assert!(String::from_utf8_lossy(&links.stdout).contains("xdp"));
    eventually("none is left", || world.metric("plimsoll_switch_connections") == Some(0.0));
    // Another process takes over.
    world.front_end.take().unwrap().kill();
    curl(&world).unwrap();
    world.start();
    curl(&world).unwrap();
    // In tunnels, too.
    world.front_end.take().unwrap().kill();
    let switch = node_address(&world);
    for backend in 0..BACKENDS {
        plimsoll(&world, Node::Backend(backend), &format!("tunnel-end --interface eth0 --switch {switch}"));
    }
    world.append_direct("via = \"gue\"\n");
    world.start();
    eventually("back-ends are found", || all_up(&world));
    (0..6).for_each(|_| curl(&world).unwrap());
    assert!(world.metric("plimsoll_switch_packets_total{action=\"too_big\"}") > Some(0.0));
}

fn node_address(world: &World) -> std::net::Ipv4Addr {
    world.lab.node(Node::FrontEnd).unwrap().address()
}
