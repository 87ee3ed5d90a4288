//! Calls while servers stop and die.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plimsoll_client::{AccessEnd, Endpoint, RetryBudget, ServiceAccess, ServiceClient};
use plimsoll_policy::registered;
use plimsoll_testkit::eventually_async;
use tokio::sync::watch;

use crate::cluster::{Server, ask, eight, endpoints, polling};

const CALLS: u64 = 800;

/// Calls from 16 tasks until there have been [`CALLS`]; how many failed. `midway` runs at about half of them.
async fn call_all(client: &ServiceClient, midway: impl FnOnce()) -> u64 {
    let (left, failed) = (Arc::new(AtomicU64::new(CALLS)), Arc::new(AtomicU64::new(0)));
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let (client, left, failed) = (client.clone(), Arc::clone(&left), Arc::clone(&failed));
            tokio::spawn(async move {
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                    let access = ServiceAccess::to("").repeatable();
                    if client.call(access, ask).await.is_err() {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    eventually_async("half of the calls", async || left.load(Ordering::Relaxed) < CALLS / 2).await;
    midway();
    for task in tasks {
        task.await.unwrap();
    }
    failed.load(Ordering::Relaxed)
}

fn idle(client: &ServiceClient) -> bool {
    client.loads("").iter().all(|(_, load)| *load == 0)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stopped_and_one_killed_fail_no_call_within_the_budget() {
    let mut servers = eight().await;
    let client = ServiceClient::builder()
        .service("image_store")
        .policy("random_polling:size=3")
        .load_polling(polling())
        .endpoints(endpoints(&servers))
        .budget(RetryBudget { share: 0.5, least_per_s: 100.0 })
        .build()
        .unwrap();
    servers[0].stop_answering();
    let failed = call_all(&client, || servers[1].kill()).await;
    let counts = client.counts();
    assert_eq!((counts.calls, counts.denied), (CALLS, 0), "{counts:?}");
    assert_eq!((failed, counts.failed), (0, 0), "{counts:?}");
    assert_eq!(counts.attempts, counts.calls + counts.retries);
    let asked = client.ask_counts();
    assert!(asked.taken > 0 && asked.discarded > 0, "{asked:?}");
    assert!(idle(&client), "{:?}", client.loads(""));
    let served: u64 = servers.iter().map(Server::served).sum();
    assert!(served >= CALLS);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_policy_distributes_calls_with_own_counts_and_with_polls() {
    let servers = eight().await;
    for spec in registered() {
        for polls in [false, true] {
            let mut builder =
                ServiceClient::builder().policy(spec.name).endpoints(endpoints(&servers)).eject_after(0);
            if polls {
                let mut polling = polling();
                polling.size = Some(2);
                builder = builder.load_polling(polling);
            }
            let client = builder.build().unwrap();
            for number in 0..24_u64 {
                let key = (number % 5).to_le_bytes();
                let access = ServiceAccess::to("").key(&key).client(number % 3).size_bytes(1000);
                client.call(access, ask).await.unwrap_or_else(|error| panic!("{}: {error}", spec.name));
            }
            assert!(idle(&client), "{}", spec.name);
            assert_eq!(client.counts().attempts, 24, "{}", spec.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_changes_the_replicas_and_loses_no_call() {
    let servers = eight().await;
    let (first, rest) = servers.split_at(1);
    let (directory, subscription) = watch::channel(endpoints(first));
    let client = ServiceClient::builder()
        .policy("least_connections")
        .subscribe(subscription, Vec::clone)
        .build()
        .unwrap();
    let held = client.choose("").await.unwrap();
    assert_eq!(held.endpoint().name(), "server-0");
    directory.send(endpoints(rest)).unwrap();
    let names = |client: &ServiceClient| -> Vec<String> {
        client.loads("").iter().map(|(endpoint, _)| endpoint.name().to_owned()).collect()
    };
    eventually_async("the others", async || names(&client).len() == 7).await;
    assert!(!names(&client).contains(&"server-0".to_owned()));
    // It has left for new accesses, and finishes what it has.
    for _ in 0..20 {
        assert_ne!(client.choose("").await.unwrap().endpoint().name(), "server-0");
    }
    held.finish(plimsoll_client::AccessEnd::Answered { size_bytes: None });
    // One that comes back at another address is the same to the policy.
    let mut moved: Vec<Endpoint> = endpoints(rest);
    moved[0] = Endpoint::new("server-1", "127.0.0.1:9".parse().unwrap());
    directory.send(moved).unwrap();
    eventually_async("the new address", async || {
        client.loads("").iter().any(|(endpoint, _)| endpoint.address().port() == 9)
    })
    .await;
    assert_eq!(names(&client).len(), 7);
    drop(directory);
    assert_eq!(names(&client).len(), 7, "the last ones stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_back_end_that_fails_gets_nothing_for_a_while() {
    let mut servers = eight().await;
    servers.truncate(4);
    servers[0].kill();
    let dead = servers[0].address;
    // Of those that have nothing to do, the first gets the call: always the dead one, as long as nobody notices.
    let client = ServiceClient::builder()
        .policy("least_connections")
        .endpoints(endpoints(&servers))
        .eject_after(3)
        .budget(RetryBudget { share: 1.0, least_per_s: 1000.0 })
        .build()
        .unwrap();
    let to_dead = Arc::new(AtomicU64::new(0));
    for _ in 0..100 {
        let seen = Arc::clone(&to_dead);
        let attempt = move |endpoint: Endpoint| {
            if endpoint.address() == dead {
                seen.fetch_add(1, Ordering::Relaxed);
            }
            ask(endpoint)
        };
        client.call("", attempt).await.unwrap();
        if to_dead.load(Ordering::Relaxed) == 3 {
            break;
        }
    }
    assert_eq!(to_dead.load(Ordering::Relaxed), 3);
    // It is out now, for a second or more.
    let began = Instant::now();
    for _ in 0..20 {
        let chosen = client.choose("").await.unwrap();
        // A machine may be so busy that the second is over.
        assert!(chosen.endpoint().address() != dead || began.elapsed() > Duration::from_millis(500));
    }
}

/// Nothing is known of it, so it neither gets everything nor nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_whose_agent_is_silent_has_its_share() {
    for policy in ["random_polling:size=2", "prequal"] {
        let mut servers = vec![Server::start("silent").await, Server::start("other").await];
        servers[0].stop_answering();
        let client = ServiceClient::builder()
            .service("image_store")
            .policy(policy)
            .load_polling(polling())
            .endpoints(endpoints(&servers))
            .build()
            .unwrap();
        // Three inquiries in a row without an answer make it silent.
        let mut chosen = BTreeMap::new();
        for number in 0..600 {
            let access = client.choose("").await.unwrap();
            if number >= 200 {
                *chosen.entry(access.endpoint().name().to_owned()).or_insert(0) += 1;
            }
            access.finish(AccessEnd::Answered { size_bytes: None });
        }
        assert!(chosen.get("silent").is_some_and(|n| (80..=320).contains(n)), "{policy}: {chosen:?}");
    }
}
