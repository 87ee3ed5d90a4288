//! The choice as a `tower::Service` over services that a `tower::discover::Discover` tells.

use std::future::Future;
use std::hash::{BuildHasher as _, Hash};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use plimsoll_policy::{
    AdmissionControl, BackendId, BuildContext, Candidates, Cluster, Core, Nanos, PolicyChoice, TargetId,
    Tried, Weight,
};
use tower::BoxError;
use tower::discover::{Change, Discover};
use tower::{Layer, Service};

use crate::access::ServiceAccess;
use crate::attempt::AccessEnd;
use crate::group::{Chosen, Group, HeldAssignment};
use crate::state::{EjectionRule, GroupState};

/// What a request asks for, for policies that hash or keep targets; `None` where each is for something else.
type KeyOf<Req> = Arc<dyn Fn(&Req) -> Option<TargetId> + Send + Sync>;

/// No service is ready for a request. Whoever waits for `poll_ready` before `call` does not see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no back-end is ready; wait for `poll_ready` before `call`")]
pub struct NoReadyBackend;

struct ServiceSlot<K, S> {
    key: K,
    service: S,
    ready: bool,
}

/// Distributes requests over the services that `D` discovers, by any policy. Each request counts as load of its service from `call`
/// until its future has its result or is dropped. It is ready when a service is; services that are not get no request. Loads are its
/// own counts.
pub struct PlimsollBalance<D, Req>
where
    D: Discover,
{
    discover: D,
    group: Arc<Group<()>>,
    /// By the index of the back-end.
    slots: Vec<Option<ServiceSlot<D::Key, D::Service>>>,
    key_of: Option<KeyOf<Req>>,
    request: PhantomData<fn(Req)>,
}

impl<D, Req> PlimsollBalance<D, Req>
where
    D: Discover,
    D::Key: Hash,
{
    /// Distributes by this policy. `seed` is of its random choices.
    ///
    /// # Errors
    /// When the policy refuses its parameters.
    pub fn new(discover: D, policy: &PolicyChoice, seed: u64) -> Result<Self, plimsoll_policy::BuildError> {
        let context = BuildContext { seed, table_seed: seed, ..BuildContext::default() };
        let core = Core::new(policy.build(&context)?, Cluster::new(0), AdmissionControl::UNLIMITED);
        // What becomes of services that fail is the business of what discovers them, and of their readiness.
        let group = Group::new(GroupState::new(core, EjectionRule { after: 0, pause: Nanos::from_secs(1) }));
        Ok(Self { discover, group, slots: Vec::new(), key_of: None, request: PhantomData })
    }

    /// What requests ask for, for policies that go by it.
    #[must_use]
    pub fn key_of(mut self, key_of: impl Fn(&Req) -> Option<TargetId> + Send + Sync + 'static) -> Self {
        self.key_of = Some(Arc::new(key_of));
        self
    }

    /// The number of services.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn index_of(&self, key: &D::Key) -> Option<usize> {
        self.slots.iter().position(|slot| slot.as_ref().is_some_and(|slot| slot.key == *key))
    }

    fn insert(&mut self, key: D::Key, service: D::Service) {
        if let Some(index) = self.index_of(&key) {
            self.slots[index] = Some(ServiceSlot { key, service, ready: false });
            return self.show_ready(index, false);
        }
        let identity = identity_of(&key);
        let joined = self.group.with(|state, now| {
            let joined = state.join((), "", identity, Weight::ONE, now);
            joined.inspect(|&b| state.set_ready(b, false, now))
        });
        let Ok(b) = joined else {
            tracing::error!("a service is left out: a policy can tell 65,535 apart at most");
            return;
        };
        if self.slots.len() <= b.index() {
            self.slots.resize_with(b.index() + 1, || None);
        }
        self.slots[b.index()] = Some(ServiceSlot { key, service, ready: false });
    }

    fn remove(&mut self, index: usize) {
        self.slots[index] = None;
        self.group.with(|state, now| state.remove(BackendId::new(index), now));
    }

    fn show_ready(&self, index: usize, ready: bool) {
        self.group.with(|state, now| state.set_ready(BackendId::new(index), ready, now));
    }
}

/// The same for equal keys in every process of one build.
fn identity_of(key: &impl Hash) -> u64 {
    foldhash::fast::FixedState::with_seed(0).hash_one(key)
}

impl<D, Req> PlimsollBalance<D, Req>
where
    D: Discover + Unpin,
    D::Key: Hash,
    D::Error: Into<BoxError>,
    D::Service: Service<Req>,
    <D::Service as Service<Req>>::Error: Into<BoxError>,
{
    fn poll_changes(&mut self, context: &mut Context<'_>) -> Result<(), BoxError> {
        while let Poll::Ready(Some(change)) = Pin::new(&mut self.discover).poll_discover(context) {
            match change.map_err(Into::into)? {
                Change::Insert(key, service) => self.insert(key, service),
                Change::Remove(key) => {
                    if let Some(index) = self.index_of(&key) {
                        self.remove(index);
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a service is ready. A service whose readiness fails is over.
    fn poll_services(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut any = false;
        for index in 0..self.slots.len() {
            let Some(slot) = &mut self.slots[index] else { continue };
            let polled = if slot.ready { Poll::Ready(Ok(())) } else { slot.service.poll_ready(context) };
            match polled {
                Poll::Ready(Ok(())) => {
                    any = true;
                    if !std::mem::replace(&mut slot.ready, true) {
                        self.show_ready(index, true);
                    }
                }
                Poll::Ready(Err(error)) => {
                    let error: BoxError = error.into();
                    tracing::debug!(error, "a service is over");
                    self.remove(index);
                }
                Poll::Pending => self.show_ready(index, false),
            }
        }
        if any { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<D, Req> Service<Req> for PlimsollBalance<D, Req>
where
    D: Discover + Unpin,
    D::Key: Hash,
    D::Error: Into<BoxError>,
    D::Service: Service<Req>,
    <D::Service as Service<Req>>::Error: Into<BoxError>,
{
    type Response = <D::Service as Service<Req>>::Response;
    type Error = BoxError;
    type Future = BalanceFuture<<D::Service as Service<Req>>::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if let Err(error) = self.poll_changes(context) {
            return Poll::Ready(Err(error));
        }
        self.poll_services(context).map(Ok)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let target = self.key_of.as_ref().and_then(|key_of| key_of(&request));
        let access = ServiceAccess { target, ..ServiceAccess::to("") };
        let (number, mut chosen, probes) = self.group.offer(&access, Tried::NONE, None);
        self.group.with(|state, now| state.report_own(probes, now));
        if let Chosen::Poll(asked) = chosen {
            let answers = self.group.with(|state, _| state.own_answers(asked));
            chosen = self.group.answer(number, answers, Candidates::NONE).0;
        }
        let held = match chosen {
            Chosen::Assigned(held) => held,
            Chosen::Rejected(_) => return BalanceFuture::not_ready(),
            Chosen::Poll(_) | Chosen::Waits(_) => {
                self.group.give_up(number);
                return BalanceFuture::not_ready();
            }
        };
        match self.slots.get_mut(held.backend().index()).and_then(Option::as_mut) {
            Some(slot) if slot.ready => {
                // It is asked before its next request whether it is ready.
                slot.ready = false;
                BalanceFuture { future: Some(slot.service.call(request)), held: Some(held) }
            }
            _ => BalanceFuture::not_ready(),
        }
    }
}

pin_project! {
    /// The result of a request. Dropped before that, the request is abandoned.
    pub struct BalanceFuture<F> {
        #[pin]
        future: Option<F>,
        held: Option<HeldAssignment<()>>,
    }
}

impl<F> BalanceFuture<F> {
    fn not_ready() -> Self {
        Self { future: None, held: None }
    }
}

impl<F, T, E> Future for BalanceFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(future) = this.future.as_pin_mut() else { return Poll::Ready(Err(NoReadyBackend.into())) };
        let result = ready!(future.poll(context));
        if let Some(held) = this.held.take() {
            held.finish(match &result {
                Ok(_) => AccessEnd::Answered { size_bytes: None },
                Err(_) => AccessEnd::Failed,
            });
        }
        Poll::Ready(result.map_err(Into::into))
    }
}

/// Makes a [`PlimsollBalance`] of what discovers services.
#[derive(Debug, Clone)]
pub struct PlimsollLayer<Req> {
    policy: PolicyChoice,
    seed: u64,
    request: PhantomData<fn(Req)>,
}

impl<Req> PlimsollLayer<Req> {
    /// Distributes by this policy. `seed` is of its random choices.
    ///
    /// # Errors
    /// When the policy refuses its parameters.
    pub fn new(policy: PolicyChoice, seed: u64) -> Result<Self, plimsoll_policy::BuildError> {
        policy.build(&BuildContext::default())?;
        Ok(Self { policy, seed, request: PhantomData })
    }
}

impl<D, Req> Layer<D> for PlimsollLayer<Req>
where
    D: Discover,
    D::Key: Hash,
{
    type Service = PlimsollBalance<D, Req>;

    fn layer(&self, discover: D) -> Self::Service {
        PlimsollBalance::new(discover, &self.policy, self.seed)
            .expect("the same policy was built when the layer was made")
    }
}
