//! Clients that reset their connections at any moment.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_agent::daemon::CloneConfig;

use super::World;
use super::client::get;

const CLIENTS: usize = 16;
const CONNECTIONS: usize = 480;
const SIZES: [usize; 4] = [10, 2_000, 30_000, 256_000];

/// Sends requests, takes some of the answers, and resets the connection with its last byte or before it.
fn leave_at_once(world: &World, number: usize) {
    let size = SIZES[number % SIZES.len()];
    let requests = 1 + number / 4 % 2;
    let text: String = (0..requests).map(|at| get(&format!("/size/{size}/l{}", number + at))).collect();
    let mut client = world.connect();
    rustix::net::sockopt::set_socket_linger(&client.stream, Some(Duration::ZERO)).unwrap();
    client.send(&text);
    match number / 8 % 4 {
        // Before anything comes, after something has come, and after all of it.
        0 => {}
        1 => drop(client.try_answer(true)),
        _ => drop(client.try_answer(false)),
    }
}

fn nothing_is_left_of_any(change: impl Fn(&mut CloneConfig)) {
    // Nobody is helped by time.
    let world = World::with(|config| {
        config.idle_timeout = Duration::from_secs(600);
        config.write_timeout = Duration::from_secs(300);
        change(config);
    });
    world.lead_to(0);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= CONNECTIONS {
                        return;
                    }
                    leave_at_once(&world, number);
                }
            });
        }
    });
    world.nothing_is_left();
    let stats = world.node(0).stats();
    assert!(stats.cloned > 100 && stats.router.resets > 0, "{stats:?}");
}

#[test]
fn a_client_that_resets_at_any_moment_leaves_nothing() {
    nothing_is_left_of_any(|_| {});
}

#[test]
fn a_client_that_resets_a_kept_connection_leaves_nothing() {
    nothing_is_left_of_any(|config| config.keeps = true);
}

#[test]
fn a_client_that_resets_with_clones_made_ahead_leaves_nothing() {
    nothing_is_left_of_any(|config| config.ahead = 4);
}
