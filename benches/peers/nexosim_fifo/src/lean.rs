//! Lean form: one model holds the whole cluster, so a request costs two scheduled events and no message.

use std::collections::VecDeque;

use fifo_common::{ARRIVAL_RATE_RPS, BACKENDS, Outcome, SERVICE_RATE_RPS, shortest};
use nexosim::model::{Context, Model, schedulable};
use nexosim::ports::{EventSinkReader, Output, SinkState, event_slot};
use nexosim::simulation::{Mailbox, SimInit};
use nexosim::time::MonotonicTime;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use crate::exponential;

#[derive(Serialize, Deserialize)]
struct Cluster {
    /// Completed requests and the sum of their response times in seconds -- output port, sent when all are done.
    done: Output<(u64, f64)>,
    /// Per back-end the arrival times of its requests, the one in service first.
    queues: [VecDeque<MonotonicTime>; BACKENDS],
    requests: u64,
    arrived: u64,
    completed: u64,
    response_sum_s: f64,
    random: Pcg64,
}

#[Model]
impl Cluster {
    fn new(requests: u64, seed: u64) -> Self {
        Self {
            done: Output::new(),
            queues: Default::default(),
            requests,
            arrived: 0,
            completed: 0,
            response_sum_s: 0.0,
            random: Pcg64::seed_from_u64(seed),
        }
    }

    #[nexosim(init)]
    async fn init(&mut self, context: &Context<Self>) {
        self.schedule_arrival(context);
    }

    fn schedule_arrival(&mut self, context: &Context<Self>) {
        if self.arrived < self.requests {
            let delay = exponential(ARRIVAL_RATE_RPS, &mut self.random);
            context
                .schedule_event(delay, schedulable!(Self::arrive), ())
                .expect("the delay is at least a nanosecond");
        }
    }

    fn start_service(&mut self, backend: usize, context: &Context<Self>) {
        let service = exponential(SERVICE_RATE_RPS, &mut self.random);
        context
            .schedule_event(service, schedulable!(Self::complete), backend)
            .expect("the delay is at least a nanosecond");
    }

    #[nexosim(schedulable)]
    fn arrive(&mut self, _: (), context: &Context<Self>) {
        self.arrived += 1;
        let backend = shortest(self.queues.iter().map(VecDeque::len));
        self.queues[backend].push_back(context.time());
        if self.queues[backend].len() == 1 {
            self.start_service(backend, context);
        }
        self.schedule_arrival(context);
    }

    #[nexosim(schedulable)]
    async fn complete(&mut self, backend: usize, context: &Context<Self>) {
        if let Some(arrived) = self.queues[backend].pop_front() {
            self.completed += 1;
            self.response_sum_s += context.time().duration_since(arrived).as_secs_f64();
        }
        if !self.queues[backend].is_empty() {
            self.start_service(backend, context);
        }
        if self.completed == self.requests {
            self.done.send((self.completed, self.response_sum_s)).await;
        }
    }
}

/// Simulates `requests` requests.
///
/// # Errors
/// Whatever the library refuses, as text.
pub fn run(requests: u64, seed: u64) -> Result<Outcome, String> {
    let mut cluster = Cluster::new(requests, seed);
    let (sink, mut done) = event_slot(SinkState::Enabled);
    cluster.done.connect_sink(sink);
    let mut simulation = SimInit::with_num_threads(1)
        .add_model(cluster, Mailbox::new(), "cluster")
        .init(MonotonicTime::EPOCH)
        .map_err(|e| e.to_string())?;
    simulation.run().map_err(|e| e.to_string())?;
    let (completed, response_sum_s) = done.try_read().ok_or("the run ended before the last request")?;
    Ok(Outcome { completed, response_sum_s })
}
