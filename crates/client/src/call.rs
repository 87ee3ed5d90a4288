//! Calls: attempts, retries on other replicas, hedges.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use plimsoll_policy::Tried;

use crate::access::ServiceAccess;
use crate::attempt::{AccessEnd, ErrorClass, HasErrorClass};
use crate::chosen::ChosenBackend;
use crate::client::ServiceClient;
use crate::endpoint::Endpoint;
use crate::error::{CallError, ChooseError};
use crate::hedging::Hedging;

/// Between two looks whether the first attempt has chosen.
const LEAST_HEDGE_DELAY: Duration = Duration::from_millis(1);

/// What has become of an attempt.
enum Attempted<T, E> {
    Answered(ChosenBackend, T),
    Failed(ChosenBackend, E),
    /// Time is up, with a back-end chosen or not.
    TimedOut,
    NotChosen(ChooseError),
}

/// What attempts of one call share: the back-ends that were tried.
struct TriedOnes(Mutex<Tried>);

impl TriedOnes {
    fn get(&self) -> Tried {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, chosen: &ChosenBackend) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(chosen.backend());
    }
}

impl ServiceClient {
    /// Calls the service: chooses a back-end, and has `attempt` carry out the access there. Where that failed in a way that allows
    /// it, another back-end is tried, as far as rules and budget allow.
    ///
    /// # Errors
    /// When no attempt was answered, or when the answer is an error.
    pub async fn call<T, E, F, Fut>(
        &self,
        access: impl Into<ServiceAccess<'_>>,
        attempt: F,
    ) -> Result<T, CallError<E>>
    where
        E: HasErrorClass,
        F: Fn(Endpoint) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        self.call_classified(access, E::error_class, attempt).await
    }

    /// Like [`ServiceClient::call`], for errors whose class `class_of` tells.
    ///
    /// # Errors
    /// Like those of [`ServiceClient::call`].
    pub async fn call_classified<T, E, F, Fut>(
        &self,
        access: impl Into<ServiceAccess<'_>>,
        class_of: impl Fn(&E) -> ErrorClass,
        attempt: F,
    ) -> Result<T, CallError<E>>
    where
        F: Fn(Endpoint) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let access = access.into();
        self.bucket().call();
        let began = Instant::now();
        let result = self.attempts(&access, &class_of, &attempt).await;
        match &result {
            Ok(_) => self.answered_after(began),
            Err(CallError::Failed { error, .. }) if class_of(error) == ErrorClass::Answer => {}
            Err(_) => self.bucket().counts.failed += 1,
        }
        result
    }

    async fn attempts<T, E, F, Fut>(
        &self,
        access: &ServiceAccess<'_>,
        class_of: &impl Fn(&E) -> ErrorClass,
        attempt: &F,
    ) -> Result<T, CallError<E>>
    where
        F: Fn(Endpoint) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let most = self.inner().rules.attempts;
        let tried = TriedOnes(Mutex::new(Tried::NONE));
        let mut attempts = 1;
        let mut running = vec![Box::pin(self.attempt_once(access, &tried, attempt))];
        self.bucket().counts.attempts += 1;
        let mut hedge = std::pin::pin!(maybe_sleep(self.hedge_delay(access)));
        let mut may_hedge = most > 1;
        let mut failed_before = None;
        loop {
            let next = {
                let hedge = hedge.as_mut();
                first_of(&mut running, hedge, may_hedge).await
            };
            let Some((place, attempted)) = next else {
                if tried.get() == Tried::NONE {
                    // It still asks for loads: another one might choose the same replica.
                    let delay = self.hedge_delay(access).map(|delay| delay.max(LEAST_HEDGE_DELAY));
                    hedge.set(maybe_sleep(delay));
                    continue;
                }
                // The first attempt is slow.
                may_hedge = false;
                if attempts < most && self.take_token() {
                    attempts += 1;
                    self.count_more(|counts| counts.hedges += 1);
                    running.push(Box::pin(self.attempt_once(access, &tried, attempt)));
                }
                continue;
            };
            let (error, may_retry) = match attempted {
                Attempted::Answered(chosen, answer) => {
                    chosen.finish(AccessEnd::Answered { size_bytes: None });
                    if place > 0 {
                        self.bucket().counts.hedges_won += 1;
                    }
                    return Ok(answer);
                }
                Attempted::Failed(chosen, error) => {
                    let class = class_of(&error);
                    chosen.finish(class.end());
                    let error = CallError::Failed { error, attempts };
                    if class == ErrorClass::Answer {
                        return Err(error);
                    }
                    (error, class.may_retry(access.repeatable))
                }
                Attempted::TimedOut => (CallError::TimedOut { attempts }, access.repeatable),
                // An earlier attempt has more to say.
                Attempted::NotChosen(why) => {
                    (failed_before.take().unwrap_or(CallError::NotChosen(why)), false)
                }
            };
            if !running.is_empty() {
                // The other attempt goes on.
                failed_before = Some(error);
                continue;
            }
            if !may_retry || attempts >= most || !self.take_token() {
                return Err(error);
            }
            failed_before = Some(error);
            attempts += 1;
            self.count_more(|counts| counts.retries += 1);
            running.push(Box::pin(self.attempt_once(access, &tried, attempt)));
        }
    }

    fn count_more(&self, count: impl FnOnce(&mut crate::budget::CallCounts)) {
        let mut bucket = self.bucket();
        bucket.counts.attempts += 1;
        count(&mut bucket.counts);
    }

    /// One attempt. Dropped, it abandons its access.
    async fn attempt_once<T, E, F, Fut>(
        &self,
        access: &ServiceAccess<'_>,
        tried: &TriedOnes,
        attempt: &F,
    ) -> Attempted<T, E>
    where
        F: Fn(Endpoint) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let limit = self.inner().rules.attempt_timeout.map(|timeout| tokio::time::Instant::now() + timeout);
        let chosen = match until(limit, self.choose_without(access, tried.get())).await {
            Some(Ok(chosen)) => chosen,
            Some(Err(why)) => return Attempted::NotChosen(why),
            None => return Attempted::TimedOut,
        };
        tried.add(&chosen);
        match until(limit, attempt(chosen.endpoint().clone())).await {
            Some(Ok(answer)) => Attempted::Answered(chosen, answer),
            Some(Err(error)) => Attempted::Failed(chosen, error),
            None => {
                chosen.finish(AccessEnd::Failed);
                Attempted::TimedOut
            }
        }
    }

    fn hedge_delay(&self, access: &ServiceAccess<'_>) -> Option<Duration> {
        match self.inner().rules.hedging {
            Hedging::Off => None,
            _ if !access.repeatable => None,
            Hedging::After(delay) => Some(delay),
            Hedging::Quantile(_) => {
                self.inner().response_times.lock().unwrap_or_else(PoisonError::into_inner).delay()
            }
        }
    }

    fn answered_after(&self, began: Instant) {
        if let Hedging::Quantile(quantile) = self.inner().rules.hedging {
            let mut times = self.inner().response_times.lock().unwrap_or_else(PoisonError::into_inner);
            times.answered(began.elapsed(), quantile);
        }
    }
}

/// `None` when it was not done at `limit`.
async fn until<T>(limit: Option<tokio::time::Instant>, work: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout_at(limit, work).await.ok(),
        None => Some(work.await),
    }
}

async fn maybe_sleep(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// The result of an attempt, with its place: taken out of those that run; or `None` when it is time for a hedge.
async fn first_of<A: Future>(
    running: &mut Vec<Pin<Box<A>>>,
    mut hedge: Pin<&mut impl Future<Output = ()>>,
    may_hedge: bool,
) -> Option<(usize, A::Output)> {
    poll_fn(|context| {
        for place in 0..running.len() {
            if let Poll::Ready(done) = running[place].as_mut().poll(context) {
                running.remove(place);
                return Poll::Ready(Some((place, done)));
            }
        }
        if may_hedge { hedge.as_mut().poll(context).map(|()| None) } else { Poll::Pending }
    })
    .await
}
