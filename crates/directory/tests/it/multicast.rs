//! Nodes that meet by IP multicast on loopback.

use std::time::{Duration, Instant};

use plimsoll_directory::{
    DirectoryError, DirectorySettings, MulticastSettings, ServiceDirectory, ServiceOffer, TransportSettings,
};
use plimsoll_testkit::{Why, eventually_async, pace_async};

use crate::common::{Meeting, key, knows, names, offer, own_group};

/// Figure 1 of the paper: a gateway before a photo album before an image store of two partitions. The album is client and server
/// at once.
#[tokio::test]
async fn nodes_publish_and_subscribe_at_once() {
    let meeting = Meeting::multicast();
    let methods = ["GET /album", "POST /album"].map(str::to_owned).to_vec();
    let album = ServiceOffer {
        methods: methods.clone(),
        weight_steps: 512,
        inquiry: Some(([192, 0, 2, 1], 7401).into()),
        ..offer("photo-album", 1)
    };
    let gateway = meeting.node(Some("gateway-1"), &[offer("gateway", 80)]);
    let album = meeting.node(Some("album-1"), &[album]);
    let first = meeting.node(Some("images-1"), &[offer("image-store/0", 2), offer("image-store/1", 2)]);
    let second = meeting.node(Some("images-2"), &[offer("image-store/1", 3)]);
    let all = [
        "gateway/0 gateway-1",
        "image-store/0 images-1",
        "image-store/1 images-1",
        "image-store/1 images-2",
        "photo-album/0 album-1",
    ];
    for node in [&gateway, &album, &first, &second] {
        knows(node, &all).await;
    }
    let view = gateway.view();
    let photo_album = "photo-album".parse().unwrap();
    let known = &view.of(&photo_album).next().unwrap().offer;
    assert_eq!(
        (&known.methods, known.weight_steps),
        (&methods, 512),
        "the access interface is published, too"
    );
    assert_eq!(known.inquiry, Some(([192, 0, 2, 1], 7401).into()));
    let view = album.view();
    assert_eq!(view.of(&"image-store/1".parse().unwrap()).count(), 2);

    // A planned leave is known long before the time to live is over; what a node stops to offer, then.
    second.leave().await;
    knows(&gateway, &[all[0], all[1], all[2], all[4]]).await;
    first.publish(&[offer("image-store/1", 2)]).unwrap();
    knows(&gateway, &[all[0], all[2], all[4]]).await;
}

#[tokio::test]
async fn a_node_that_is_killed_is_gone_within_the_time_to_live_and_back_within_an_interval() {
    let meeting = Meeting::multicast();
    let watching = meeting.node(None, &[]);
    let stays = meeting.node(Some("stays"), &[offer("s", 1)]);
    let dies = meeting.node(Some("dies"), &[offer("s", 2)]);
    knows(&watching, &["s/0 dies", "s/0 stays"]).await;
    // No goodbye is said.
    drop(dies);
    let killed = Instant::now();
    knows(&watching, &["s/0 stays"]).await;
    let gone_s = killed.elapsed().as_secs_f64();
    let back = meeting.node(Some("dies"), &[offer("s", 2)]);
    let returned = Instant::now();
    knows(&watching, &["s/0 dies", "s/0 stays"]).await;
    let back_s = returned.elapsed().as_secs_f64();
    println!("gone after {gone_s:.3} s of {:?}, back after {back_s:.3} s", meeting.ttl);
    drop((stays, back));
}

#[tokio::test]
async fn when_nobody_is_heard_the_last_map_stays_and_the_node_says_so() {
    let meeting = Meeting::multicast();
    let watching = meeting.node(None, &[]);
    let nodes = ["a", "b"].map(|name| meeting.node(Some(name), &[offer("s", 1)]));
    let all = ["s/0 a", "s/0 b"];
    knows(&watching, &all).await;
    // The network carries nothing any more.
    drop(nodes);
    let mut seen = watching.subscribe();
    let away = seen.wait_for(|view| view.away.is_some()).await.unwrap().clone();
    assert_eq!(names(&away), all);
    assert!(away.away.as_ref().unwrap().contains("nothing is heard"), "{away:?}");
    pace_async(meeting.ttl, Why::TimeIsUp).await;
    assert_eq!(names(&watching.view()), all);
    let back = meeting.node(Some("b"), &[offer("s", 1)]);
    seen.wait_for(|view| view.away.is_none()).await.unwrap();
    knows(&watching, &["s/0 b"]).await;
    drop(back);
}

#[tokio::test]
async fn two_nodes_of_one_name_do_not_take_turns() {
    let meeting = Meeting { ttl: Duration::from_millis(400), ..Meeting::multicast() };
    let watching = meeting.node(None, &[]);
    let _first = meeting.node(Some("twin"), &[offer("s", 1)]);
    eventually_async("the first", async || !watching.view().replicas.is_empty()).await;
    let _second = meeting.node(Some("twin"), &[offer("s", 2)]);
    let port = || watching.view().replicas.iter().map(|r| r.offer.address.port()).collect::<Vec<_>>();
    eventually_async("the second", async || port() == [2]).await;
    let stale = || watching.counts().dropped(plimsoll_directory::DropReason::Stale);
    eventually_async("the first to be dropped", async || stale() > 5).await;
    assert_eq!(port(), [2]);
}

#[tokio::test]
async fn who_hears_nobody_valid_says_so_with_the_likely_reason() {
    let meeting = Meeting { ttl: Duration::from_millis(400), ..Meeting::multicast() };
    let watching = meeting.node(None, &[]);
    let why = || watching.view().away.clone().unwrap_or_default();
    eventually_async("nobody is heard", async || why().contains("compare group, port and network interface"))
        .await;
    let TransportSettings::Multicast(transport) = meeting.transport.clone() else { unreachable!() };
    let stranger = ServiceDirectory::start(DirectorySettings {
        key: plimsoll_wire::Key::new([8; 32]),
        transport: TransportSettings::Multicast(transport),
        node: Some("stranger".to_owned()),
        ttl: meeting.ttl,
        only: None,
    });
    let stranger = stranger.unwrap();
    stranger.publish(&[offer("s", 1)]).unwrap();
    eventually_async("another key", async || why().contains("compare the key files")).await;
    let _friend = meeting.node(Some("friend"), &[offer("s", 2)]);
    knows(&watching, &["s/0 friend"]).await;
    assert_eq!(watching.view().away, None);
}

#[tokio::test]
async fn a_group_or_interface_that_is_none_is_refused_with_the_remedy() {
    let error = |transport: MulticastSettings, ttl: Duration| {
        let transport = TransportSettings::Multicast(transport);
        let settings = DirectorySettings { key: key(), transport, node: None, ttl, only: None };
        ServiceDirectory::start(settings).unwrap_err()
    };
    let no_group = MulticastSettings { group: ([10, 0, 0, 1], 80).into(), ..own_group() };
    let no_port = MulticastSettings { group: ([239, 255, 0, 1], 0).into(), ..own_group() };
    let no_interface = MulticastSettings { interface: Some("none9".to_owned()), ..own_group() };
    let ttl = Duration::from_secs(1);
    assert!(matches!(error(no_group.clone(), ttl), DirectoryError::Group(_)));
    assert!(error(no_group, ttl).to_string().contains("239.255.80.76:7369"));
    assert!(error(no_port, ttl).to_string().contains("is no multicast group with a port"));
    assert!(error(no_interface, ttl).to_string().contains("; there are: "));
    assert!(matches!(error(own_group(), Duration::from_millis(1)), DirectoryError::Ttl { .. }));
}
