//! Nodes that meet by a real etcd.

use std::time::{Duration, Instant};

use plimsoll_directory::{AnnouncementKey, Announcer, DropReason, Said};
use plimsoll_testkit::{EtcdServer, Why, eventually_async, pace_async};
use plimsoll_wire::Key;

use crate::common::{Meeting, knows, names, offer};

/// How long nodes are given to publish again.
const SETTLING: Duration = Duration::from_secs(6);

#[tokio::test]
async fn nodes_meet_leave_and_die() {
    let server = EtcdServer::start();
    let meeting = Meeting::etcd(&server);
    let watching = meeting.node(None, &[]);
    let first = meeting.node(Some("first"), &[offer("s/0", 1), offer("s/1", 1)]);
    let second = meeting.node(Some("second"), &[offer("s/1", 2)]);
    for node in [&watching, &first, &second] {
        knows(node, &["s/0 first", "s/1 first", "s/1 second"]).await;
    }
    first.publish(&[offer("s/1", 3)]).unwrap();
    knows(&watching, &["s/1 first", "s/1 second"]).await;
    first.leave().await;
    knows(&watching, &["s/1 second"]).await;
    drop(second);
    let killed = Instant::now();
    knows(&watching, &[]).await;
    println!("gone after {:.3} s of {:?}", killed.elapsed().as_secs_f64(), meeting.ttl);
    let back = meeting.node(Some("second"), &[offer("s/1", 2)]);
    let returned = Instant::now();
    knows(&watching, &["s/1 second"]).await;
    println!("back after {:.3} s", returned.elapsed().as_secs_f64());
    drop(back);
}

#[tokio::test]
async fn an_etcd_that_is_killed_leaves_the_last_map_and_is_taken_up_again() {
    let mut server = EtcdServer::start();
    let meeting = Meeting::etcd(&server);
    let watching = meeting.node(None, &[]);
    let nodes = ["a", "b"].map(|name| meeting.node(Some(name), &[offer("s", 1)]));
    let all = ["s/0 a", "s/0 b"];
    knows(&watching, &all).await;
    for loses_all in [false, true] {
        server.kill();
        let mut seen = watching.subscribe();
        seen.wait_for(|view| view.away.is_some()).await.unwrap();
        // All leases are over meanwhile.
        pace_async(meeting.ttl * 2, Why::TimeIsUp).await;
        assert_eq!(names(&watching.view()), all);
        if loses_all {
            server.forget();
        }
        server.restart();
        let mut seen = watching.subscribe();
        loop {
            let view = seen.borrow_and_update().clone();
            assert_eq!(names(&view), all, "no replica is lost when etcd is back");
            if view.away.is_none() {
                break;
            }
            seen.changed().await.unwrap();
        }
        // Those that were not published again would go now.
        pace_async(meeting.ttl * 2 + SETTLING, Why::TimeIsUp).await;
        assert_eq!(names(&watching.view()), all);
    }
    drop(nodes);
    knows(&watching, &[]).await;
}

#[tokio::test]
async fn an_etcd_that_hangs_is_away() {
    let server = EtcdServer::start();
    let meeting = Meeting::etcd(&server);
    let watching = meeting.node(None, &[]);
    let node = meeting.node(Some("a"), &[offer("s", 1)]);
    knows(&watching, &["s/0 a"]).await;
    server.pause();
    let mut seen = watching.subscribe();
    seen.wait_for(|view| view.away.is_some()).await.unwrap();
    knows(&watching, &["s/0 a"]).await;
    server.resume();
    seen.wait_for(|view| view.away.is_none()).await.unwrap();
    pace_async(meeting.ttl * 2, Why::TimeIsUp).await;
    knows(&watching, &["s/0 a"]).await;
    drop(node);
}

#[tokio::test]
async fn an_etcd_that_comes_later_is_found() {
    let mut server = EtcdServer::start();
    let meeting = Meeting::etcd(&server);
    server.kill();
    let watching = meeting.node(None, &[]);
    let _node = meeting.node(Some("a"), &[offer("s", 1)]);
    watching.subscribe().wait_for(|view| view.away.is_some()).await.unwrap();
    server.restart();
    knows(&watching, &["s/0 a"]).await;
}

#[tokio::test]
async fn values_without_the_key_or_in_another_place_are_dropped() {
    let server = EtcdServer::start();
    let meeting = Meeting::etcd(&server);
    let watching = meeting.node(None, &[]);
    let _real = meeting.node(Some("real"), &[offer("s", 1)]);
    knows(&watching, &["s/0 real"]).await;
    let mut client = etcd_client::Client::connect([server.endpoint()], None).await.unwrap();
    let ours = client.get("/plimsoll/services/s/0/real", None).await.unwrap().kvs()[0].value().to_vec();
    let other_key = AnnouncementKey::of(&Key::new([8; 32]));
    let mut forger = Announcer::new(other_key, "forger".to_owned(), 9, meeting.ttl);
    let forged = forger.seal(Said::Offers(vec![offer("s", 6)]), 1);
    for (node, value) in [("forger", forged), ("moved", ours.clone()), ("cut", ours[..40].to_vec())] {
        client.put(format!("/plimsoll/services/s/0/{node}"), value, None).await.unwrap();
    }
    for reason in [DropReason::Forged, DropReason::Malformed, DropReason::Truncated] {
        eventually_async("all to be counted", async || watching.counts().dropped(reason) == 1).await;
    }
    assert_eq!(names(&watching.view()), ["s/0 real"]);
    // Nor does a subscriber take them that comes later.
    let late = meeting.node(None, &[]);
    knows(&late, &["s/0 real"]).await;
}
