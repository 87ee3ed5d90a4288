//! Usual form, as simcore's documentation writes distributed systems: a component for the front-end and one for each
//! back-end, which know of one another by events alone.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use fifo_common::{ARRIVAL_RATE_RPS, BACKENDS, Outcome, SERVICE_RATE_RPS, shortest};
use rand_distr::Exp;
use serde::Serialize;
use simcore::{Event, EventHandler, Id, Simulation, SimulationContext, cast};

#[derive(Clone, Serialize)]
struct Arrival {}

#[derive(Clone, Serialize)]
struct Request {
    arrived_s: f64,
}

#[derive(Clone, Serialize)]
struct ServiceEnd {}

#[derive(Clone, Serialize)]
struct Response {
    arrived_s: f64,
    backend: usize,
}

struct FrontEnd {
    backends: Vec<Id>,
    /// Per back-end the requests assigned and not completed.
    loads: [usize; BACKENDS],
    to_arrive: u64,
    outcome: Outcome,
    interarrival: Exp<f64>,
    context: SimulationContext,
}

impl FrontEnd {
    fn schedule_arrival(&mut self) {
        if self.to_arrive > 0 {
            self.to_arrive -= 1;
            let delay_s = self.context.sample_from_distribution(&self.interarrival);
            self.context.emit_self(Arrival {}, delay_s);
        }
    }

    fn on_arrival(&mut self, now_s: f64) {
        let backend = shortest(self.loads.iter().copied());
        self.loads[backend] += 1;
        self.context.emit_now(Request { arrived_s: now_s }, self.backends[backend]);
        self.schedule_arrival();
    }

    fn on_response(&mut self, now_s: f64, arrived_s: f64, backend: usize) {
        self.loads[backend] -= 1;
        self.outcome.completed += 1;
        self.outcome.response_sum_s += now_s - arrived_s;
    }
}

impl EventHandler for FrontEnd {
    fn on(&mut self, event: Event) {
        let now_s = event.time;
        cast!(match event.data {
            Arrival {} => {
                self.on_arrival(now_s);
            }
            Response { arrived_s, backend } => {
                self.on_response(now_s, arrived_s, backend);
            }
        });
    }
}

struct Backend {
    index: usize,
    front_end: Id,
    /// Arrival times of the requests, the one in service first.
    queue: VecDeque<f64>,
    service: Exp<f64>,
    context: SimulationContext,
}

impl Backend {
    fn start_service(&self) {
        let service_s = self.context.sample_from_distribution(&self.service);
        self.context.emit_self(ServiceEnd {}, service_s);
    }

    fn on_request(&mut self, arrived_s: f64) {
        self.queue.push_back(arrived_s);
        if self.queue.len() == 1 {
            self.start_service();
        }
    }

    fn on_service_end(&mut self) {
        if let Some(arrived_s) = self.queue.pop_front() {
            let backend = self.index;
            self.context.emit_now(Response { arrived_s, backend }, self.front_end);
        }
        if !self.queue.is_empty() {
            self.start_service();
        }
    }
}

impl EventHandler for Backend {
    fn on(&mut self, event: Event) {
        cast!(match event.data {
            Request { arrived_s } => {
                self.on_request(arrived_s);
            }
            ServiceEnd {} => {
                self.on_service_end();
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
    let context = simulation.create_context("front-end");
    let front_end = context.id();
    let mut backends = Vec::with_capacity(BACKENDS);
    for index in 0..BACKENDS {
        let name = format!("backend-{index}");
        let backend = Backend {
            index,
            front_end,
            queue: VecDeque::new(),
            service: Exp::new(SERVICE_RATE_RPS).map_err(|e| e.to_string())?,
            context: simulation.create_context(&name),
        };
        backends.push(simulation.add_handler(&name, Rc::new(RefCell::new(backend))));
    }
    let cluster = Rc::new(RefCell::new(FrontEnd {
        backends,
        loads: [0; BACKENDS],
        to_arrive: requests,
        outcome: Outcome { completed: 0, response_sum_s: 0.0 },
        interarrival: Exp::new(ARRIVAL_RATE_RPS).map_err(|e| e.to_string())?,
        context,
    }));
    simulation.add_handler("front-end", cluster.clone());
    cluster.borrow_mut().schedule_arrival();
    simulation.step_until_no_events();
    let outcome = cluster.borrow().outcome;
    Ok(outcome)
}
