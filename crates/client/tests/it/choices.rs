//! Choices: partitions, limits, what is given up.

use std::time::Duration;

use plimsoll_client::{
    AccessEnd, ChooseError, ClientError, Endpoint, ServiceAccess, ServiceClient, read_services,
};
use plimsoll_testkit::{PATIENCE, eventually_async};

use crate::cluster::{LOCALHOST, Server, key, polling};

fn replica(name: &str, partitions: &[&str]) -> Endpoint {
    Endpoint::new(name, LOCALHOST).with_partitions(partitions.iter().copied())
}

fn own_load(client: &ServiceClient, partition: &str) -> u32 {
    client.loads(partition).iter().map(|(_, load)| load).sum()
}

const ANSWERED: AccessEnd = AccessEnd::Answered { size_bytes: None };

#[tokio::test]
async fn partitions_restrict_choices() {
    let client = ServiceClient::builder()
        .service("image_store")
        .policy("random")
        .endpoints([replica("a", &["0"]), replica("b", &["0", "1"]), replica("c", &["1"]), replica("d", &[])])
        .build()
        .unwrap();
    assert_eq!(client.partitions(), ["", "0", "1"]);
    for (partition, allowed) in [("0", ["a", "b"]), ("1", ["b", "c"]), ("", ["d", "d"])] {
        let mut seen = [false; 2];
        for _ in 0..100 {
            let chosen = client.choose(partition).await.unwrap();
            let at = allowed.iter().position(|name| *name == chosen.endpoint().name());
            seen[at.unwrap_or_else(|| panic!("{chosen:?} for `{partition}`"))] = true;
            chosen.finish(ANSWERED);
        }
        assert!(seen[0] && (seen[1] || partition.is_empty()), "{partition}");
    }
    assert_eq!(client.choose("2").await.unwrap_err(), ChooseError::UnknownPartition);
}

#[tokio::test]
async fn a_key_has_one_back_end_where_the_policy_hashes() {
    let endpoints: Vec<_> = (0..8).map(|n| replica(&format!("r{n}"), &[])).collect();
    let client = ServiceClient::builder().policy("maglev").endpoints(endpoints).build().unwrap();
    let mut all = std::collections::BTreeSet::new();
    for number in 0..50_u32 {
        let key = number.to_le_bytes();
        let access = ServiceAccess::to("").key(&key);
        let first = client.choose(access).await.unwrap().endpoint().name().to_owned();
        assert_eq!(client.choose(access).await.unwrap().endpoint().name(), first);
        all.insert(first);
    }
    assert!(all.len() > 3, "{all:?}");
}

#[tokio::test]
async fn what_is_dropped_is_abandoned_at_every_stage() {
    let server = Server::start("one").await;
    // Nobody answers there, so a choice waits until its inquiries are discarded.
    let mute = std::net::UdpSocket::bind(LOCALHOST).unwrap();
    let mut polling = polling();
    polling.discard_after = PATIENCE;
    let endpoints = [
        server.endpoint().with_load_address(mute.local_addr().unwrap()),
        Endpoint::new("two", LOCALHOST).with_load_address(mute.local_addr().unwrap()),
    ];
    let client = ServiceClient::builder()
        .policy("random_polling:size=2")
        .load_polling(polling)
        .endpoints(endpoints)
        .limit(1, 10, PATIENCE)
        .build()
        .unwrap();
    // While its back-ends are asked it takes the only room, and the next one waits.
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.choose("").await.map(drop) }
    });
    let mut buffer = [0; 128];
    mute.set_read_timeout(Some(PATIENCE)).unwrap();
    let heard = tokio::task::spawn_blocking(move || {
        plimsoll_testkit::uninterrupted(|| mute.recv_from(&mut buffer)).map(|_| mute)
    });
    let mute = heard.await.unwrap().unwrap();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.choose("").await.map(drop) }
    });
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    // Now the other one has the room, and asks.
    let heard = tokio::task::spawn_blocking(move || {
        (0..3).try_for_each(|_| plimsoll_testkit::uninterrupted(|| mute.recv_from(&mut buffer)).map(drop))
    });
    heard.await.unwrap().unwrap();
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!(own_load(&client, ""), 0);
    // The room is free: with a single replica nobody is asked.
    client.set_endpoints(&[server.endpoint()]).unwrap();
    let chosen = client.choose("").await.unwrap();
    assert_eq!(own_load(&client, ""), 1);
    drop(chosen);
    assert_eq!(own_load(&client, ""), 0);
}

#[tokio::test]
async fn what_finds_no_room_waits_its_turn_and_no_longer_than_it_may() {
    let limited = |patience| {
        let builder = ServiceClient::builder().policy("round_robin").endpoints([replica("a", &[])]);
        builder.limit(1, 1, patience).build().unwrap()
    };
    let client = limited(PATIENCE);
    let first = client.choose("").await.unwrap();
    let second = tokio::spawn({
        let client = client.clone();
        async move { client.choose("").await }
    });
    eventually_async("a full queue", async || {
        tokio::task::yield_now().await;
        // Polled once, a choice that may not wait is decided.
        matches!(
            tokio::time::timeout(Duration::ZERO, client.choose("")).await,
            Ok(Err(ChooseError::QueueFull))
        )
    })
    .await;
    first.finish(ANSWERED);
    let second = second.await.unwrap().unwrap();
    second.finish(ANSWERED);
    assert_eq!(own_load(&client, ""), 0);

    let impatient = limited(Duration::from_millis(1));
    let held = impatient.choose("").await.unwrap();
    assert_eq!(impatient.choose("").await.unwrap_err(), ChooseError::WaitedTooLong);
    drop(held);
    impatient.choose("").await.unwrap().finish(ANSWERED);
    impatient.set_endpoints(&[]).unwrap();
    assert!(impatient.choose("").await.is_err());
}

/// Whoever gives up, and when, nothing of it stays: neither load nor room nor an access that waits.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_stays_of_calls_that_are_given_up_at_any_moment() {
    let servers = crate::cluster::eight().await;
    let client = ServiceClient::builder()
        .policy("random_polling:size=3")
        .load_polling(polling())
        .endpoints(crate::cluster::endpoints(&servers))
        .limit(4, 20, PATIENCE)
        .eject_after(0)
        .build()
        .unwrap();
    let tasks: Vec<_> = (0..32_u64)
        .map(|task| {
            let client = client.clone();
            tokio::spawn(async move {
                for round in 0..20 {
                    // Up to about what a call takes, so that all stages are hit.
                    let limit = Duration::from_micros((task * 7919 + round * 104_729) % 6000);
                    // Answered or given up: both are well.
                    drop(tokio::time::timeout(limit, client.call("", crate::cluster::ask)).await);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(own_load(&client, ""), 0);
    // All room is there, and no more.
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(tokio::time::timeout(PATIENCE, client.choose("")).await.unwrap().unwrap());
    }
    assert!(tokio::time::timeout(Duration::from_millis(50), client.choose("")).await.is_err());
    drop(held);
    assert_eq!(own_load(&client, ""), 0);
}

#[tokio::test]
async fn a_replica_that_comes_back_before_it_has_left_is_the_same() {
    let (a, b) = (replica("a", &[]), replica("b", &[]));
    let client = ServiceClient::builder()
        .policy("least_connections")
        .endpoints([a.clone(), b.clone()])
        .build()
        .unwrap();
    let held = client.choose("").await.unwrap();
    assert_eq!(held.endpoint().name(), "a");
    client.set_endpoints(std::slice::from_ref(&b)).unwrap();
    assert_eq!(client.loads(""), [(b.clone(), 0)]);
    client.set_endpoints(&[b.clone(), a.clone()]).unwrap();
    assert_eq!(client.loads(""), [(a, 1), (b, 0)], "with what it still has");
    held.finish(ANSWERED);
    assert_eq!(own_load(&client, ""), 0);
}

#[tokio::test]
async fn loads_that_responses_tell_count() {
    let client = ServiceClient::builder()
        .policy("least_connections")
        .endpoints([replica("a", &[]), replica("b", &[])])
        .build()
        .unwrap();
    let chosen = client.choose("").await.unwrap();
    let busy = chosen.endpoint().name().to_owned();
    chosen.tell_load(50);
    chosen.finish(ANSWERED);
    for _ in 0..10 {
        let held = client.choose("").await.unwrap();
        assert_ne!(held.endpoint().name(), busy);
        held.finish(ANSWERED);
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let builder = || ServiceClient::builder().service("s");
    let error = |built: Result<ServiceClient, ClientError>| built.unwrap_err().to_string();
    assert_eq!(
        error(builder().policy("lrad").build()),
        "service `s`: no policy `lrad`; did you mean `lard`?"
    );
    assert!(error(builder().limit(0, 1, PATIENCE).build()).contains("at least 1"));
    let twice = [replica("a", &["0"]), replica("a", &["0"])];
    assert!(error(builder().endpoints(twice).build()).contains("two replicas are called `a`"));
    assert!(error(builder().load_polling(polling()).build()).contains("tokio runtime"));
    let text = |text: &str| read_services(text).unwrap_err().to_string();
    assert!(text("[[services]]\nname = 's'\nendponts = []").contains("endponts"));
    let two = "[[services]]\nname = 's'\nendpoints = []\n".repeat(2);
    assert!(text(&two).contains("number 2"), "{}", text(&two));
    let weight =
        "[[services]]\nname = 's'\nendpoints = [{ name = 'a', address = '10.0.0.1:1', weight = -1.0 }]";
    assert!(text(weight).contains("weight of `a`"));
    assert!(format!("{:?}", polling()).contains("Key(") && !format!("{:?}", key()).contains("09"));
}
