//! The requests of a workload as a run has them.

use std::sync::Arc;

use plimsoll_policy::{Kind, Nanos, Time};
use plimsoll_sim::{DynamicDraw, ServiceDraw, SimRequest, TimeDistribution};
use plimsoll_trace::{Record, RecordKind, TraceError, TraceIter};

/// Iterates over the requests of a [`Workload`](crate::Workload); see [`Workload::requests`](crate::Workload::requests).
///
/// It takes them from the trace in batches, which needs less time than one by one.
#[derive(Debug)]
pub struct WorkloadRequests<E> {
    trace: TraceIter,
    records: Vec<Record>,
    /// The requests from `at` on are still to come.
    batch: Vec<SimRequest>,
    at: usize,
    /// Follows the batch.
    failure: Option<E>,
    /// Nothing follows the batch.
    ended: bool,
    until: Time,
    dynamic: DynamicDraw,
    service: ServiceDraw,
    /// Classes by target, in place of those of the trace.
    classes: Option<Arc<[u16]>>,
    /// From class 1 on.
    class_service: Vec<ServiceDraw>,
}

/// Requests of a batch: few enough to stay in the nearest cache.
const BATCH: usize = 32;

impl<E: From<TraceError>> WorkloadRequests<E> {
    pub(crate) fn new(trace: TraceIter) -> Self {
        Self {
            trace,
            records: Vec::with_capacity(BATCH),
            batch: Vec::with_capacity(BATCH),
            at: 0,
            failure: None,
            ended: false,
            until: Time::MAX,
            dynamic: DynamicDraw::new(0.0, 0),
            service: ServiceDraw::new(None, 0),
            classes: None,
            class_service: Vec::new(),
        }
    }

    /// Ends before the first request of this time or later.
    #[must_use]
    pub fn until(self, until: Time) -> Self {
        Self { until, ..self }
    }

    /// Gives requests these classes, by target.
    #[must_use]
    pub(crate) fn with_classes(self, classes: Option<Arc<[u16]>>) -> Self {
        Self { classes, ..self }
    }

    /// Draws service times by class, from class 1 on, each class in a sequence of its own; those of a class with `None` stay.
    #[must_use]
    pub fn with_class_service(self, service: &[Option<TimeDistribution>], seed: u64) -> Self {
        // Far apart, so that no class has the numbers of another one under the next seed.
        let seed_of =
            |class: usize| seed.wrapping_add((class as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let draws = service.iter().enumerate();
        let class_service = draws.map(|(class, of)| ServiceDraw::new(*of, seed_of(class)));
        Self { class_service: class_service.collect(), ..self }
    }

    /// Makes a share of the requests dynamic, see [`DynamicDraw`].
    #[must_use]
    pub fn with_dynamic(self, share: f64, seed: u64) -> Self {
        Self { dynamic: DynamicDraw::new(share, seed), ..self }
    }

    /// Draws service times, see [`ServiceDraw`].
    #[must_use]
    pub fn with_service(self, service: Option<TimeDistribution>, seed: u64) -> Self {
        Self { service: ServiceDraw::new(service, seed), ..self }
    }

    /// Takes the next batch. Returns its first request, or what follows the last one.
    #[inline(never)]
    fn refill(&mut self) -> Option<Result<SimRequest, E>> {
        self.records.clear();
        self.batch.clear();
        self.at = 1;
        if !self.ended {
            if let Err(error) = self.trace.take_batch(&mut self.records, BATCH) {
                (self.failure, self.ended) = (Some(error.into()), true);
            }
            self.ended |= self.records.is_empty();
        }
        for record in &self.records {
            let mut request = to_request(record);
            if let Some(classes) = &self.classes {
                request.class = classes.get(request.target as usize).copied().unwrap_or(0);
            }
            if request.time >= self.until {
                (self.failure, self.ended) = (None, true);
                break;
            }
            self.dynamic.draw(&mut request);
            let of_class = usize::from(request.class).checked_sub(1);
            if let Some(draw) = of_class.and_then(|class| self.class_service.get_mut(class)) {
                draw.draw(&mut request);
            }
            self.service.draw(&mut request);
            self.batch.push(request);
        }
        match self.batch.first() {
            Some(&request) => Some(Ok(request)),
            None => self.failure.take().map(Err),
        }
    }
}

impl<E: From<TraceError>> Iterator for WorkloadRequests<E> {
    type Item = Result<SimRequest, E>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let Some(&request) = self.batch.get(self.at) else { return self.refill() };
        self.at += 1;
        Some(Ok(request))
    }
}

#[inline]
fn to_request(record: &Record) -> SimRequest {
    SimRequest {
        time: Time::from_nanos(record.time_ns),
        target: record.target,
        size_bytes: record.size_bytes,
        service: Nanos::new(record.service_ns),
        client: record.client,
        class: record.class,
        kind: match record.kind {
            RecordKind::Static => Kind::Static,
            RecordKind::Dynamic => Kind::Dynamic,
        },
        answer: record.answer,
        http11: record.http11,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Workload, WorkloadError};

    fn all(requests: WorkloadRequests<WorkloadError>) -> Vec<SimRequest> {
        requests.map(Result::unwrap).collect()
    }

    #[test]
    fn batches_leave_nothing_out() {
        for count in [1, BATCH as u64 - 1, BATCH as u64, BATCH as u64 + 1, 1_000] {
            let workload = Workload::synthesize_first("hot", &[], 1, Some(count)).unwrap();
            let whole = all(workload.requests().unwrap());
            let trace: Vec<SimRequest> =
                workload.trace.open().unwrap().map(|record| to_request(&record.unwrap())).collect();
            assert_eq!((whole.len() as u64, &whole), (count, &trace));
            for end in [0, whole.len() / 2, whole.len() - 1] {
                let until = workload.requests().unwrap().until(whole[end].time);
                let expected: Vec<SimRequest> =
                    whole.iter().copied().take_while(|r| r.time < whole[end].time).collect();
                assert_eq!(all(until), expected);
            }
        }
    }

    #[test]
    fn the_same_requests_are_dynamic_each_time() {
        let workload = Workload::synthesize_first("hot", &[], 1, Some(1_000)).unwrap();
        let some = || all(workload.requests().unwrap().with_dynamic(0.5, 7));
        let dynamic = some().iter().filter(|r| r.kind == Kind::Dynamic).count();
        assert!((1..1_000).contains(&dynamic), "{dynamic} of 1,000");
        assert_eq!(some(), some());
    }
}
