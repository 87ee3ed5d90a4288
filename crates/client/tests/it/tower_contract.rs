//! The choice as a tower service: readiness before calls, and what futures count.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use plimsoll_client::{NoReadyBackend, PlimsollBalance, PlimsollLayer};
use plimsoll_policy::{PolicyChoice, TargetId, registered};
use plimsoll_testkit::PATIENCE;
use tower::discover::{Change, ServiceList};
use tower::{BoxError, Layer as _, Service};

/// What a test sees of a service, and tells it.
#[derive(Default)]
struct Knobs {
    ready: AtomicBool,
    broken: AtomicBool,
    calls: AtomicU32,
    /// Polled since the last call, so that it may be called.
    reserved: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Knobs {
    fn new(ready: bool) -> Arc<Self> {
        let knobs = Self::default();
        knobs.ready.store(ready, Ordering::Relaxed);
        Arc::new(knobs)
    }

    fn set_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
        if let Some(waker) = self.waker.lock().unwrap().take() {
            waker.wake();
        }
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }
}

/// Fails a test that calls it before it was ready.
struct Strict(Arc<Knobs>);

impl Service<u64> for Strict {
    type Response = u64;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<u64, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.0.broken.load(Ordering::Relaxed) {
            return Poll::Ready(Err("broken".into()));
        }
        if !self.0.ready.load(Ordering::Relaxed) {
            *self.0.waker.lock().unwrap() = Some(context.waker().clone());
            return Poll::Pending;
        }
        self.0.reserved.store(true, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u64) -> Self::Future {
        assert!(self.0.reserved.swap(false, Ordering::Relaxed), "called without having been ready");
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        match request {
            0 => Box::pin(std::future::pending()),
            1 => Box::pin(async { Err("the service says no".into()) }),
            other => Box::pin(async move { Ok(other) }),
        }
    }
}

type List = ServiceList<Vec<Strict>>;

fn balance(policy: &str, services: &[Arc<Knobs>]) -> PlimsollBalance<List, u64> {
    let services: Vec<_> = services.iter().map(|knobs| Strict(Arc::clone(knobs))).collect();
    let policy: PolicyChoice = policy.parse().unwrap();
    PlimsollLayer::new(policy, 7).unwrap().layer(ServiceList::new::<u64>(services))
}

async fn ready<S: Service<u64>>(service: &mut S) -> Result<(), S::Error> {
    tokio::time::timeout(PATIENCE, poll_fn(|context| service.poll_ready(context))).await.unwrap()
}

#[tokio::test]
async fn every_policy_calls_only_what_is_ready() {
    for spec in registered() {
        let services = [Knobs::new(true), Knobs::new(false), Knobs::new(true), Knobs::new(true)];
        let key_of = |request: &u64| Some(TargetId::from_key(&request.to_le_bytes()));
        let mut balance = balance(spec.name, &services).key_of(key_of);
        for request in 2..40 {
            ready(&mut balance).await.unwrap();
            assert_eq!(balance.call(request).await.unwrap(), request, "{}", spec.name);
        }
        let calls: Vec<u32> = services.iter().map(|knobs| knobs.calls()).collect();
        assert_eq!((calls[1], calls.iter().sum::<u32>()), (0, 38), "{}: {calls:?}", spec.name);
    }
}

#[tokio::test]
async fn it_is_ready_when_a_service_is_and_wakes_then() {
    let services = [Knobs::new(false), Knobs::new(false)];
    let mut balance = balance("least_connections", &services);
    let pending = poll_fn(|context| Poll::Ready(balance.poll_ready(context).is_pending()));
    assert!(pending.await);
    assert!(balance.call(5).await.unwrap_err().is::<NoReadyBackend>());
    let later = Arc::clone(&services[1]);
    let (made_ready, ()) = tokio::join!(ready(&mut balance), async move { later.set_ready() });
    made_ready.unwrap();
    assert_eq!(balance.call(5).await.unwrap(), 5);
    assert_eq!((services[0].calls(), services[1].calls()), (0, 1));
}

#[tokio::test]
async fn what_is_under_way_counts_until_its_future_is_dropped() {
    let services = [Knobs::new(true), Knobs::new(true)];
    let mut balance = balance("least_connections", &services);
    let mut held = Vec::new();
    for _ in 0..10 {
        ready(&mut balance).await.unwrap();
        held.push(balance.call(0));
    }
    // Each in turn: all ten count.
    assert_eq!((services[0].calls(), services[1].calls()), (5, 5));
    // What was cancelled counts no more: one has nothing to do now, and gets what comes.
    let cancelled: Vec<_> = held.drain(..).enumerate().filter(|(n, _)| n % 2 == 0).collect();
    drop(cancelled);
    ready(&mut balance).await.unwrap();
    assert!(balance.call(1).await.unwrap_err().to_string().contains("says no"));
    let before = (services[0].calls(), services[1].calls());
    for _ in 0..4 {
        ready(&mut balance).await.unwrap();
        balance.call(7).await.unwrap();
    }
    let more = (services[0].calls() - before.0, services[1].calls() - before.1);
    assert_eq!(more.0 + more.1, 4);
}

/// Tells changes as a test sends them.
struct Told(tokio::sync::mpsc::UnboundedReceiver<Change<u8, Strict>>);

impl futures_core::Stream for Told {
    type Item = Result<Change<u8, Strict>, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|change| change.map(Ok))
    }
}

#[tokio::test]
async fn services_come_and_go_and_break() {
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    let policy: PolicyChoice = "round_robin".parse().unwrap();
    let mut balance = PlimsollBalance::<_, u64>::new(Told(told), &policy, 1).unwrap();
    assert!(poll_fn(|context| Poll::Ready(balance.poll_ready(context).is_pending())).await);
    let knobs: Vec<_> = (0..3).map(|_| Knobs::new(true)).collect();
    for (key, knobs) in (0..).zip(&knobs) {
        assert!(tell.send(Change::Insert(key, Strict(Arc::clone(knobs)))).is_ok());
    }
    ready(&mut balance).await.unwrap();
    assert_eq!(balance.len(), 3);
    // One goes while it has something to do.
    let held = balance.call(0);
    assert!(tell.send(Change::Remove(0)).is_ok());
    // One breaks.
    knobs[1].broken.store(true, Ordering::Relaxed);
    let replaced = Knobs::new(true);
    for request in 2..6 {
        ready(&mut balance).await.unwrap();
        balance.call(request).await.unwrap();
    }
    drop(held);
    assert!(tell.send(Change::Insert(2, Strict(Arc::clone(&replaced)))).is_ok());
    ready(&mut balance).await.unwrap();
    assert!(balance.len() <= 2 && !balance.is_empty());
    let before = knobs[2].calls();
    for request in 2..6 {
        ready(&mut balance).await.unwrap();
        balance.call(request).await.unwrap();
    }
    assert_eq!(knobs[2].calls(), before, "another service has its key now");
    assert!(replaced.calls() > 0);
    drop(tell);
    ready(&mut balance).await.unwrap();
}
