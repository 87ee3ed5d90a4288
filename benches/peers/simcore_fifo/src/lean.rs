//! Lean form: one component holds the whole cluster, so a request costs two events.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use fifo_common::{ARRIVAL_RATE_RPS, BACKENDS, Outcome, SERVICE_RATE_RPS, shortest};
use rand_distr::Exp;
use serde::Serialize;
use simcore::{Event, EventHandler, Simulation, SimulationContext, cast};

#[derive(Clone, Serialize)]
struct Arrival {}

#[derive(Clone, Serialize)]
struct Completion {
    backend: usize,
}

struct Cluster {
    /// Per back-end the arrival times of its requests, the one in service first.
    queues: [VecDeque<f64>; BACKENDS],
    to_arrive: u64,
    outcome: Outcome,
    interarrival: Exp<f64>,
    service: Exp<f64>,
    context: SimulationContext,
}

impl Cluster {
    fn schedule_arrival(&mut self) {
        if self.to_arrive > 0 {
            self.to_arrive -= 1;
            let delay_s = self.context.sample_from_distribution(&self.interarrival);
            self.context.emit_self(Arrival {}, delay_s);
        }
    }

    fn start_service(&self, backend: usize) {
        let service_s = self.context.sample_from_distribution(&self.service);
        self.context.emit_self(Completion { backend }, service_s);
    }

    fn on_arrival(&mut self, now_s: f64) {
        let backend = shortest(self.queues.iter().map(VecDeque::len));
        self.queues[backend].push_back(now_s);
        if self.queues[backend].len() == 1 {
            self.start_service(backend);
        }
        self.schedule_arrival();
    }

    fn on_completion(&mut self, now_s: f64, backend: usize) {
        if let Some(arrived_s) = self.queues[backend].pop_front() {
            self.outcome.completed += 1;
            self.outcome.response_sum_s += now_s - arrived_s;
        }
        if !self.queues[backend].is_empty() {
            self.start_service(backend);
        }
    }
}

impl EventHandler for Cluster {
    fn on(&mut self, event: Event) {
        let now_s = event.time;
        cast!(match event.data {
            Arrival {} => {
                self.on_arrival(now_s);
            }
            Completion { backend } => {
                self.on_completion(now_s, backend);
            }
        });
    }
}

/// Simulates `requests` requests.
///
/// # Errors
/// Whatever the library refuses, as text.
pub fn run(requests: u64, seed: u64) -> Result<Outcome, String> {
    let mut simulation = Simulation::new(seed);
    let cluster = Rc::new(RefCell::new(Cluster {
        queues: Default::default(),
        to_arrive: requests,
        outcome: Outcome { completed: 0, response_sum_s: 0.0 },
        interarrival: Exp::new(ARRIVAL_RATE_RPS).map_err(|e| e.to_string())?,
        service: Exp::new(SERVICE_RATE_RPS).map_err(|e| e.to_string())?,
        context: simulation.create_context("cluster"),
    }));
    simulation.add_handler("cluster", cluster.clone());
    cluster.borrow_mut().schedule_arrival();
    simulation.step_until_no_events();
    let outcome = cluster.borrow().outcome;
    Ok(outcome)
}
