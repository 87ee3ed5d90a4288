//! A whole cluster: what passes through it, and what its handles do.

use plimsoll_origin::synthetic::Synthetic;
use plimsoll_testbed::cluster::{ClusterError, LoopbackCluster, LoopbackConfig};
use plimsoll_testbed::load::{ClosedLoop, Expect, LoadSummary, Req, closed_loop};
use plimsoll_testbed::trial::{self, Trial, TrialConfig, TrialError};
use plimsoll_testbed::workload::{RequestSequence, scaled_rice};
use plimsoll_testkit::eventually_async;

fn config(backends: usize) -> LoopbackConfig {
    LoopbackConfig { backends, ..LoopbackConfig::new("round_robin", Synthetic::fixed(1000)) }
}

async fn ask(cluster: &LoopbackCluster, requests: u64) -> LoadSummary {
    let request = |n| Req::get(format!("/{n}")).expecting(Expect::Length(1000));
    let load =
        ClosedLoop { connections: 4, requests, seconds: 60.0, ..ClosedLoop::new(cluster.address(), request) };
    closed_loop(load).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_back_ends_serve_and_one_that_is_killed_comes_back() {
    let mut cluster = LoopbackCluster::start(LoopbackConfig { admin: true, ..config(3) }).await.unwrap();
    assert!(cluster.admin_address().is_some() && cluster.balancer().is_some());
    let summary = ask(&cluster, 90).await;
    assert_eq!((summary.succeeded, summary.failed()), (90, 0), "{summary}");
    assert_eq!(summary.backends.values().copied().collect::<Vec<_>>(), [30, 30, 30]);
    assert_eq!(cluster.origin(0).unwrap().stats().requests, 30);

    cluster.kill(1).await;
    let address = cluster.backend_addresses()[1];
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    // What does not reach a back-end is offered to another one.
    let summary = ask(&cluster, 60).await;
    assert_eq!((summary.succeeded, summary.backends.get("b1")), (60, None), "{summary}");
    cluster.restart(1).await.unwrap();
    eventually_async("a request for the one that came back", async || {
        ask(&cluster, 30).await.backends.contains_key("b1")
    })
    .await;

    cluster.reload(|config| config.policy = "uri_hash".to_owned()).unwrap();
    assert!(matches!(
        cluster.reload(|config| config.policy = "none".to_owned()),
        Err(ClusterError::Config(_))
    ));
    assert_eq!(ask(&cluster, 30).await.failed(), 0);
    let address = cluster.address();
    cluster.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_is_dropped_is_gone() {
    let cluster = LoopbackCluster::start(config(2)).await.unwrap();
    let addresses = [&[cluster.address()][..], &cluster.backend_addresses()].concat();
    drop(cluster);
    for address in addresses {
        eventually_async("an end of its listeners", async || {
            tokio::net::TcpStream::connect(address).await.is_err()
        })
        .await;
    }
    assert!(matches!(LoopbackCluster::start(config(0)).await, Err(ClusterError::Config(_))));
}

async fn measure(policy: &str, workload: &RequestSequence) -> Trial {
    let config = TrialConfig {
        policy: policy.to_owned(),
        backends: 4,
        seed: 1,
        cache_bytes: 400 << 10,
        speed: 8.0,
        connections: 60,
        warmup_s: 0.8,
        measured_s: 1.2,
        idle_below: 10.0,
    };
    let mut told = 0;
    let trial = trial::run(&config, workload, |_| told += 1).await.unwrap();
    assert!(told > 0);
    trial
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_and_origins_agree_on_the_misses_of_a_trial() {
    let overrides = scaled_rice(80);
    let overrides: Vec<_> = overrides.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let workload = RequestSequence::synthesize("rice", &overrides, 1, 20_000).unwrap();
    let wrr = measure("weighted_round_robin", &workload).await;
    let lard = measure("lard_r", &workload).await;
    for trial in [&wrr, &lard] {
        assert_eq!(trial.summary.failed(), 0, "{}", trial.summary);
        assert!(trial.summary.requests > 100 && trial.warmup_requests > 0, "{}", trial.summary);
        let (client, origins) = (trial.summary.miss_ratio().unwrap(), trial.origin_miss_ratio.unwrap());
        // The origins count when they answer, the client when it has read the answer.
        assert!((client - origins).abs() < 0.1, "{client} {origins}");
        assert_eq!((trial.backends.len(), trial.load.len()), (4, 4));
        assert!(trial.backends.iter().all(|b| b.requests > 0 && b.mean_load > 0.0), "{:?}", trial.backends);
        let load: f64 = trial.backends.iter().map(|b| b.mean_load).sum();
        assert!((30.0..=60.5).contains(&load), "{load}");
    }
    assert!(lard.summary.miss_ratio() < wrr.summary.miss_ratio());
}

#[tokio::test]
async fn a_speed_that_is_none_is_refused() {
    let workload = RequestSequence::synthesize("rice", &[], 1, 0).unwrap();
    let config = TrialConfig {
        policy: "wrr".to_owned(),
        backends: 1,
        seed: 1,
        cache_bytes: 1,
        speed: 0.0,
        connections: 1,
        warmup_s: 0.0,
        measured_s: 0.1,
        idle_below: 1.0,
    };
    assert!(matches!(trial::run(&config, &workload, |_| ()).await, Err(TrialError::Speed(_))));
}
