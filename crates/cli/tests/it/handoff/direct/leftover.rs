//! A front-end with another mechanism comes where a switch has left its packet program.

use plimsoll_lab::Node;
use plimsoll_testkit::{PATIENCE, eventually};

use super::world::{Downloads, World};

/// The same front-end, as a proxy.
fn write_as_proxy(world: &World) {
    let path = world.directory.path().join("plimsoll.toml");
    let text = std::fs::read_to_string(&path).unwrap().replace("mechanism = \"direct\"\n", "");
    let (before, rest) = text.split_once("[direct]").unwrap();
    let (_, after) = rest.split_once("[health]").unwrap();
    std::fs::write(path, format!("{before}[health]{after}")).unwrap();
}

/// What `check --system` says of the listeners.
fn listeners(world: &World) -> String {
    let node = world.lab.node(Node::FrontEnd).unwrap();
    let mut command = node.command(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(["check", "--system", "--config"]).arg(world.directory.path().join("plimsoll.toml"));
    let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
    said.lines().filter(|line| line.contains("listener ")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_proxy_gets_new_connections_and_the_switch_keeps_its_own() {
    for attach in ["tc", "xdp"] {
        let mut world = World::set_up();
        world.prepare_xdp();
        world.write("round_robin", "");
        world.append_direct(&format!("attach = {attach:?}\n"));
        world.start();
        let downloads = Downloads::start(&world, "/big", 6);
        eventually("all are counted", || world.metric("plimsoll_switch_connections") == Some(6.0));
        write_as_proxy(&world);
        let refused = world.command().status().unwrap();
        let said = std::fs::read_to_string(world.directory.path().join("said")).unwrap();
        assert_eq!(refused.code(), Some(1), "{said}");
        assert!(said.contains("the switch `switch` takes all packets to 10."), "{said}");
        let found = listeners(&world);
        assert!(found.starts_with("missing") && found.contains("the switch `switch` takes"), "{found}");

        let stopped = world.front_end.take().unwrap().stop_within(PATIENCE).unwrap();
        assert!(stopped.is_some_and(|status| status.success()));
        let found = listeners(&world);
        assert!(found.starts_with("warning") && found.contains("which has ended"), "{found}");
        let node = world.lab.node(Node::FrontEnd).unwrap();
        world.front_end = Some(node.spawn(&mut world.command()).unwrap());
        eventually("the proxy has back-ends", || {
            world.metric("plimsoll_backend_state{backend=\"b2\",state=\"up\"}") == Some(1.0)
        });
        assert_eq!(listeners(&world), "");
        let by = world.answering(12);
        let requests: f64 = (0..3)
            .map(|b| {
                world
                    .metric(&format!("plimsoll_backend_response_time_seconds_count{{backend=\"b{b}\"}}"))
                    .unwrap()
            })
            .sum();
        assert_eq!((requests, by.iter().sum::<usize>()), (12.0, 12), "{by:?}");
        downloads.finish();
    }
}
