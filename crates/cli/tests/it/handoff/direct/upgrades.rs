//! A new process of the switch takes over while many downloads are under way.

use plimsoll_testkit::{PATIENCE, eventually};

use super::world::{Downloads, World};

const DOWNLOADS: usize = 1000;

#[test]
fn no_download_of_a_thousand_breaks() {
    for attach in ["tc", "xdp"] {
        let mut world = World::set_up();
        world.prepare_xdp();
        world.write("least_connections", "");
        world.append_direct(&format!("attach = {attach:?}\n"));
        world.start();
        upgrade_during_downloads(&mut world);
    }
}

fn upgrade_during_downloads(world: &mut World) {
    let mut downloads = Downloads::start(world, "/middle", DOWNLOADS);
    let all = Some(DOWNLOADS as f64);
    eventually("all are counted", || world.metric("plimsoll_switch_connections") == all);
    for round in 0..4 {
        let process = world.front_end.take().unwrap();
        // In turn: an upgrade, and a process that dies.
        if round % 2 == 0 {
            let stopped = process.stop_within(PATIENCE).unwrap();
            assert!(stopped.is_some_and(|status| status.success()));
        } else {
            process.kill();
        }
        downloads.read_some(20_000);
        world.start();
        eventually("all are counted again", || world.metric("plimsoll_switch_connections") == all);
        downloads.read_some(20_000);
    }
    downloads.finish();
    eventually("none is left", || world.metric("plimsoll_switch_connections") == Some(0.0));
    let lost = world.metric("plimsoll_switch_connections_over_total{how=\"lost\"}");
    assert_eq!(lost, Some(0.0));
}
