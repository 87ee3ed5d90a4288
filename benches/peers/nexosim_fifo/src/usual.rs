//! Usual form, as nexosim's documentation writes systems: a model for the front-end and one for each back-end, connected
//! by ports. The executor has one thread, which is fastest per CPU-second.

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
struct FrontEnd {
    /// Arrival time of a request, per back-end -- output ports.
    to_backends: [Output<MonotonicTime>; BACKENDS],
    /// Completed requests and the sum of their response times in seconds -- output port, sent when all are done.
    done: Output<(u64, f64)>,
    /// Per back-end the requests assigned and not completed.
    loads: [usize; BACKENDS],
    requests: u64,
    arrived: u64,
    completed: u64,
    response_sum_s: f64,
    random: Pcg64,
}

#[Model]
impl FrontEnd {
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

    #[nexosim(schedulable)]
    async fn arrive(&mut self, _: (), context: &Context<Self>) {
        self.arrived += 1;
        let backend = shortest(self.loads.iter().copied());
        self.loads[backend] += 1;
        self.schedule_arrival(context);
        self.to_backends[backend].send(context.time()).await;
    }

    /// Index of the back-end and arrival time of the request -- input port.
    async fn respond(&mut self, (backend, arrived): (usize, MonotonicTime), context: &Context<Self>) {
        self.loads[backend] -= 1;
        self.completed += 1;
        self.response_sum_s += context.time().duration_since(arrived).as_secs_f64();
        if self.completed == self.requests {
            self.done.send((self.completed, self.response_sum_s)).await;
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Backend {
    /// Index of the back-end and arrival time of the request -- output port.
    to_front_end: Output<(usize, MonotonicTime)>,
    index: usize,
    /// Arrival times of the requests, the one in service first.
    queue: VecDeque<MonotonicTime>,
    random: Pcg64,
}

#[Model]
impl Backend {
    fn start_service(&mut self, context: &Context<Self>) {
        let service = exponential(SERVICE_RATE_RPS, &mut self.random);
        context
            .schedule_event(service, schedulable!(Self::complete), ())
            .expect("the delay is at least a nanosecond");
    }

    /// Arrival time of a request -- input port.
    fn request(&mut self, arrived: MonotonicTime, context: &Context<Self>) {
        self.queue.push_back(arrived);
        if self.queue.len() == 1 {
            self.start_service(context);
        }
    }

    #[nexosim(schedulable)]
    async fn complete(&mut self, _: (), context: &Context<Self>) {
        let finished = self.queue.pop_front();
        if !self.queue.is_empty() {
            self.start_service(context);
        }
        if let Some(arrived) = finished {
            self.to_front_end.send((self.index, arrived)).await;
        }
    }
}

/// Simulates `requests` requests.
///
/// # Errors
/// Whatever the library refuses, as text.
pub fn run(requests: u64, seed: u64) -> Result<Outcome, String> {
    let mut front_end = FrontEnd {
        to_backends: Default::default(),
        done: Output::new(),
        loads: [0; BACKENDS],
        requests,
        arrived: 0,
        completed: 0,
        response_sum_s: 0.0,
        random: Pcg64::seed_from_u64(seed),
    };
    let (sink, mut done) = event_slot(SinkState::Enabled);
    front_end.done.connect_sink(sink);
    let front_end_mailbox = Mailbox::new();
    let mut bench = SimInit::with_num_threads(1);
    for index in 0..BACKENDS {
        let mailbox = Mailbox::new();
        front_end.to_backends[index].connect(Backend::request, &mailbox);
        let mut backend = Backend {
            to_front_end: Output::new(),
            index,
            queue: VecDeque::new(),
            random: Pcg64::new(u128::from(seed), index as u128),
        };
        backend.to_front_end.connect(FrontEnd::respond, &front_end_mailbox);
        bench = bench.add_model(backend, mailbox, &format!("backend {index}"));
    }
    let mut simulation = bench
        .add_model(front_end, front_end_mailbox, "front-end")
        .init(MonotonicTime::EPOCH)
        .map_err(|e| e.to_string())?;
    simulation.run().map_err(|e| e.to_string())?;
    let (completed, response_sum_s) = done.try_read().ok_or("the run ended before the last request")?;
    Ok(Outcome { completed, response_sum_s })
}
