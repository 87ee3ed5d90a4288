//! What bounds retries and hedges.

use std::future::Future as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use plimsoll_client::{
    CallError, CallRules, Endpoint, ErrorClass, Hedging, Key, LoadPolling, RetryBudget, ServiceAccess,
    ServiceClient,
};
use plimsoll_testkit::PATIENCE;

use crate::cluster::LOCALHOST;

fn client(budget: RetryBudget, rules: CallRules) -> ServiceClient {
    let endpoints: Vec<_> = (0..8).map(|number| Endpoint::new(format!("r{number}"), LOCALHOST)).collect();
    ServiceClient::builder()
        .policy("least_connections")
        .endpoints(endpoints)
        .budget(budget)
        .rules(rules)
        .eject_after(0)
        .build()
        .unwrap()
}

fn is_idle(client: &ServiceClient) -> bool {
    client.loads("").iter().all(|(_, load)| *load == 0)
}

/// A tenth of the calls, and nothing besides: so the number is exact.
const TENTH: RetryBudget = RetryBudget { share: 0.1, least_per_s: 0.0 };

#[tokio::test]
async fn where_everything_fails_retries_are_a_share_of_the_calls() {
    let client = client(TENTH, CallRules::default());
    let tried = Arc::new(AtomicU64::new(0));
    for _ in 0..500 {
        let tried = Arc::clone(&tried);
        let attempt = move |_| {
            tried.fetch_add(1, Ordering::Relaxed);
            async { Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused)) }
        };
        let error = client.call("", attempt).await.unwrap_err();
        assert!(matches!(error, CallError::Failed { .. }));
    }
    let counts = client.counts();
    assert_eq!((counts.calls, counts.retries, counts.failed), (500, 50, 500), "{counts:?}");
    assert_eq!((tried.load(Ordering::Relaxed), counts.attempts), (550, 550));
    assert!(is_idle(&client));
}

#[tokio::test]
async fn a_retry_goes_to_another_replica_and_there_are_no_more_than_allowed() {
    let free = RetryBudget { share: 1.0, least_per_s: 1000.0 };
    let client = client(free, CallRules { attempts: 4, ..CallRules::default() });
    let seen = std::sync::Mutex::new(Vec::new());
    let attempt = |endpoint: Endpoint| {
        seen.lock().unwrap().push(endpoint.name().to_owned());
        async { Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused)) }
    };
    let error = client.call("", attempt).await.unwrap_err();
    assert!(matches!(error, CallError::Failed { attempts: 4, .. }), "{error}");
    let mut seen = seen.into_inner().unwrap();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 4, "{seen:?}");
}

#[tokio::test]
async fn only_what_may_be_repeated_is() {
    let free = RetryBudget { share: 1.0, least_per_s: 1000.0 };
    let client = client(free, CallRules::default());
    let attempts_of = async |access: ServiceAccess<'_>, class: ErrorClass| {
        let before = client.counts().attempts;
        let result = client.call_classified(access, |()| class, |_| async { Err::<(), ()>(()) }).await;
        assert!(result.is_err());
        client.counts().attempts - before
    };
    let (once, repeatable) = (ServiceAccess::to(""), ServiceAccess::to("").repeatable());
    assert_eq!(attempts_of(once, ErrorClass::Lost).await, 1);
    assert_eq!(attempts_of(repeatable, ErrorClass::Lost).await, 3);
    assert_eq!(attempts_of(once, ErrorClass::Refused).await, 3);
    assert_eq!(attempts_of(once, ErrorClass::Unsent).await, 3);
    assert_eq!(attempts_of(repeatable, ErrorClass::Answer).await, 1);
    // An answer is no failure.
    assert_eq!(client.counts().failed, 4);
}

/// The first attempt of a call never ends; any other answers at once.
async fn only_hedges_answer(first: bool) -> Result<(), io::Error> {
    if first { std::future::pending().await } else { Ok(()) }
}

#[tokio::test(start_paused = true)]
async fn the_slower_attempt_is_given_up_and_counted_once() {
    let free = RetryBudget { share: 1.0, least_per_s: 0.0 };
    let rules = CallRules { hedging: Hedging::After(Duration::from_millis(5)), ..CallRules::default() };
    let client = client(free, rules);
    for _ in 0..50 {
        let number = AtomicU64::new(0);
        let attempt = |_| only_hedges_answer(number.fetch_add(1, Ordering::Relaxed) == 0);
        client.call(ServiceAccess::to("").repeatable(), attempt).await.unwrap();
        assert_eq!(number.load(Ordering::Relaxed), 2);
        assert!(is_idle(&client), "{:?}", client.loads(""));
    }
    let counts = client.counts();
    assert_eq!((counts.hedges, counts.hedges_won, counts.retries, counts.attempts), (50, 50, 0, 100));
}

/// Another attempt might choose the replica that the first one is about to choose.
#[tokio::test]
async fn who_still_asks_for_loads_is_not_hedged() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let names = ["a", "b", "c"];
    let endpoints = names.map(|name| {
        Endpoint::new(name, "127.0.0.1:1".parse().unwrap()).with_load_address(silent.local_addr().unwrap())
    });
    let discard_after = Duration::from_millis(100);
    let client = ServiceClient::builder()
        .service("image_store")
        .policy("random_polling:size=3")
        .load_polling(LoadPolling { discard_after, ..LoadPolling::new(Key::new([1; 32])) })
        .endpoints(endpoints)
        .rules(CallRules { hedging: Hedging::After(Duration::from_millis(1)), ..CallRules::default() })
        .build()
        .unwrap();
    client.call(ServiceAccess::to("").repeatable(), |_| async { Ok::<_, io::Error>(()) }).await.unwrap();
    assert_eq!(client.counts().hedges, 0, "{:?}", client.counts());
}

#[tokio::test(start_paused = true)]
async fn hedges_are_bounded_by_the_budget_and_only_for_what_is_repeatable() {
    let rules = CallRules {
        hedging: Hedging::After(Duration::from_millis(5)),
        attempt_timeout: Some(Duration::from_secs(1)),
        ..CallRules::default()
    };
    let client = client(TENTH, rules);
    let mut answered = 0;
    for _ in 0..200 {
        let number = AtomicU64::new(0);
        let attempt = |_| only_hedges_answer(number.fetch_add(1, Ordering::Relaxed) == 0);
        match client.call(ServiceAccess::to("").repeatable(), attempt).await {
            Ok(()) => answered += 1,
            Err(error) => assert!(matches!(error, CallError::TimedOut { attempts: 1 }), "{error}"),
        }
    }
    let counts = client.counts();
    assert_eq!((counts.hedges + counts.retries, answered), (20, 20), "{counts:?}");
    let number = AtomicU64::new(0);
    let attempt = |_| only_hedges_answer(number.fetch_add(1, Ordering::Relaxed) == 0);
    let error = client.call("", attempt).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { attempts: 1 }), "{error}");
    assert!(is_idle(&client));
}

#[tokio::test(start_paused = true)]
async fn a_quantile_of_the_response_times_decides_when_to_hedge() {
    let free = RetryBudget { share: 1.0, least_per_s: 0.0 };
    let client = client(free, CallRules { hedging: Hedging::Quantile(0.9), ..CallRules::default() });
    for _ in 0..100 {
        let quick = |_| async { Ok::<_, io::Error>(()) };
        client.call(ServiceAccess::to("").repeatable(), quick).await.unwrap();
    }
    assert_eq!(client.counts().hedges, 0);
    let number = AtomicU64::new(0);
    let attempt = |_| only_hedges_answer(number.fetch_add(1, Ordering::Relaxed) == 0);
    let call = client.call(ServiceAccess::to("").repeatable(), attempt);
    tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap();
    assert_eq!(client.counts().hedges_won, 1);
}

#[tokio::test]
async fn a_call_that_is_dropped_is_abandoned() {
    let client = client(RetryBudget::default(), CallRules::default());
    let mut call = Box::pin(client.call("", |_| std::future::pending::<io::Result<()>>()));
    let pending = std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending()));
    assert!(pending.await);
    assert!(!is_idle(&client));
    drop(call);
    assert!(is_idle(&client));
}
