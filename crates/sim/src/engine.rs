//! The one loop: arrivals, decisions, back-ends, completions, in the order of simulated time.

use std::collections::VecDeque;

use plimsoll_policy::{
    BackendId, Completion, Decision, FrontEnd, Health, Nanos, Outcome as Ending, PollAnswer, Request, Rng,
    Time,
};

use crate::config::{Config, Decided, Fault, FaultAction, Observer, RunError};
use crate::event_queue::EventQueue;
use crate::jobs::{Job, Jobs};
use crate::model::{Context, JobId, Model, ModelEvent};
use crate::outcome::Outcome;
use crate::series::Recording;
use crate::tally::Tally;
use crate::workload::{Arrivals, SimRequest};

/// Who is next.
enum Next {
    Arrival,
    Model(ModelEvent),
    Fault(Fault),
    Tick,
}

/// The request that arrives next, with its time and its turn among events of equal time.
struct Upcoming {
    time: Time,
    turn: u64,
    request: SimRequest,
}

/// A request that has arrived.
struct Arrived {
    time: Time,
    number: u64,
    request: SimRequest,
}

struct Engine<'a, M, S> {
    config: &'a Config<'a>,
    front_end: FrontEnd,
    model: M,
    source: S,
    rng: Rng,
    queue: EventQueue<ModelEvent>,
    jobs: Jobs,
    waiting: VecDeque<Arrived>,
    upcoming: Option<Upcoming>,
    origin: Option<Time>,
    next_tick: Option<Time>,
    faults_done: usize,
    now: Time,
    arrived: u64,
    done: Vec<JobId>,
    tally: Tally,
}

/// Stream of the run's seed from which arrivals are drawn.
const STREAM: u64 = 0x6172_7276;

/// Completions between two reports of progress.
const PROGRESS_EVERY: u64 = 65_536;

/// Runs `source` through the front-end on back-ends that behave like `model`.
///
/// # Errors
/// When the source fails, or the observer stops the run.
pub fn run<M: Model, E>(
    config: &Config<'_>,
    front_end: FrontEnd,
    model: M,
    source: impl Iterator<Item = Result<SimRequest, E>>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError<E>> {
    run_recording(config, Recording::default(), front_end, model, source, observer)
}

/// Like [`run`], and records what is asked for on the way.
///
/// # Errors
/// Like [`run`].
pub fn run_recording<M: Model, E>(
    config: &Config<'_>,
    recording: Recording,
    front_end: FrontEnd,
    model: M,
    source: impl Iterator<Item = Result<SimRequest, E>>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError<E>> {
    let (backends, disks) = (front_end.view().len(), model.disks());
    let tally = Tally::new(backends, disks, config.warmup, config.idle_below, recording);
    let next_tick = front_end.policy().tick_interval().map(|every| Time::ZERO + every);
    let mut engine = Engine {
        config,
        front_end,
        model,
        source,
        rng: Rng::new(config.seed, STREAM),
        queue: EventQueue::default(),
        jobs: Jobs::default(),
        waiting: VecDeque::new(),
        upcoming: None,
        origin: None,
        next_tick,
        faults_done: 0,
        now: Time::ZERO,
        arrived: 0,
        done: Vec::new(),
        tally,
    };
    engine.run(observer)?;
    engine.finish()
}

impl<M: Model, E, S: Iterator<Item = Result<SimRequest, E>>> Engine<'_, M, S> {
    fn run(&mut self, observer: &mut dyn Observer) -> Result<(), RunError<E>> {
        let mut reported = 0;
        self.fetch()?;
        // What is down from the start must not get the first requests.
        while let Some(fault) = self.config.faults.get(self.faults_done).filter(|f| f.at == Time::ZERO) {
            self.faults_done += 1;
            self.fault(*fault);
        }
        self.admit(observer)?;
        while let Some(next) = self.next() {
            if self.now == Time::MAX {
                return Err(RunError::TimeOverflow);
            }
            match next {
                Next::Model(event) => {
                    let mut context = Context { now: self.now, queue: &mut self.queue, done: &mut self.done };
                    self.model.handle(event, &mut context);
                    self.complete();
                    self.admit(observer)?;
                }
                Next::Arrival => self.arrive(observer)?,
                Next::Fault(fault) => {
                    self.fault(fault);
                    self.admit(observer)?;
                }
                Next::Tick => {
                    self.front_end.tick(self.now);
                    self.admit(observer)?;
                }
            }
            // A disk may still be reading for nobody.
            if self.upcoming.is_none() && self.waiting.is_empty() && self.jobs.is_empty() {
                break;
            }
            if self.arrived >= reported + PROGRESS_EVERY {
                reported = self.arrived;
                if !observer.progress(reported) {
                    return Err(RunError::Stopped);
                }
            }
        }
        Ok(())
    }

    /// Takes the next event off and moves the clock to it; `None` when nothing can happen any more.
    #[inline]
    fn next(&mut self) -> Option<Next> {
        let model = self.queue.peek();
        let arrival = match &self.upcoming {
            Some(upcoming) if self.config.arrivals != Arrivals::Closed => {
                Some((upcoming.time, upcoming.turn))
            }
            _ => None,
        };
        let at = match (model, arrival) {
            (Some(m), Some(a)) => Some(m.min(a)),
            (m, a) => m.or(a),
        };
        if self.faults_done < self.config.faults.len() || self.next_tick.is_some() {
            // Without other events, a fault matters only to requests that it may set free.
            let idle = at.is_none() && self.waiting.is_empty() && self.upcoming.is_none();
            if !idle && let Some(timed) = self.next_timed(at.map_or(Time::MAX, |(time, _)| time)) {
                return Some(timed);
            }
        }
        let at = at?;
        self.now = at.0;
        if Some(at) == arrival {
            return Some(Next::Arrival);
        }
        self.queue.pop().map(|(_, event)| Next::Model(event))
    }

    /// Faults and ticks, which are rare, come before other events of the same time.
    fn next_timed(&mut self, before: Time) -> Option<Next> {
        let fault = self.config.faults.get(self.faults_done).filter(|f| f.at <= before);
        // Ticks alone do not keep a run going.
        let tick = self.next_tick.filter(|&t| t <= before && before != Time::MAX);
        match (fault, tick) {
            (Some(fault), tick) if tick.is_none_or(|t| fault.at <= t) => {
                self.faults_done += 1;
                self.now = self.now.max(fault.at);
                Some(Next::Fault(*fault))
            }
            (_, Some(tick)) => {
                self.now = tick;
                self.next_tick = self.front_end.policy().tick_interval().map(|every| tick + every);
                Some(Next::Tick)
            }
            _ => None,
        }
    }

    /// Gets the next request from the source and says when it arrives.
    #[inline]
    fn fetch(&mut self) -> Result<(), RunError<E>> {
        let Some(request) = self.source.next().transpose().map_err(RunError::Source)? else {
            self.upcoming = None;
            return Ok(());
        };
        // Adding a half and truncating rounds; a call to `round` is not inlined.
        let time = match self.config.arrivals {
            Arrivals::Closed => self.now,
            Arrivals::Poisson { rate_rps } => {
                self.now + Nanos::new((self.rng.exponential() / rate_rps * 1e9 + 0.5) as u64)
            }
            Arrivals::Trace { speed } => {
                let origin = *self.origin.get_or_insert(request.time);
                let offset_ns = request.time.since(origin).as_nanos() as f64 / speed;
                (Time::ZERO + Nanos::new((offset_ns + 0.5) as u64)).max(self.now)
            }
        };
        self.upcoming = Some(Upcoming { time, turn: self.queue.ticket(), request });
        Ok(())
    }

    /// Takes the upcoming request as arrived, and fetches the one after it.
    #[inline]
    fn take_upcoming(&mut self) -> Result<Option<Arrived>, RunError<E>> {
        let Some(Upcoming { request, .. }) = self.upcoming.take() else {
            return Ok(None);
        };
        let number = self.arrived;
        self.arrived += 1;
        self.fetch()?;
        Ok(Some(Arrived { time: self.now, number, request }))
    }

    /// An open arrival: it is dispatched, queues at the front-end, or is refused when that queue is full.
    #[inline]
    fn arrive(&mut self, observer: &mut dyn Observer) -> Result<(), RunError<E>> {
        let Some(arrived) = self.take_upcoming()? else {
            return Ok(());
        };
        let at_once =
            self.waiting.is_empty() && self.front_end.has_room() && self.dispatch(&arrived, observer);
        if !at_once {
            if self.waiting.len() < self.config.max_waiting {
                self.waiting.push_back(arrived);
            } else {
                self.tally.rejected += 1;
            }
        }
        Ok(())
    }

    /// Lets in as many requests as the admission limit has room for.
    #[inline]
    fn admit(&mut self, observer: &mut dyn Observer) -> Result<(), RunError<E>> {
        while self.front_end.has_room() {
            let next = match self.waiting.pop_front() {
                Some(waiting) => Some(waiting),
                None if self.config.arrivals == Arrivals::Closed => self.take_upcoming()?,
                None => None,
            };
            let Some(next) = next else { break };
            if !self.dispatch(&next, observer) {
                self.waiting.push_front(next);
                break;
            }
        }
        Ok(())
    }

    /// Asks the policy and starts the request; `false` when the policy wants it to wait for the next event.
    fn dispatch(&mut self, arrived: &Arrived, observer: &mut dyn Observer) -> bool {
        let request = &arrived.request;
        let target = self.config.targets.id[request.target as usize];
        let asked = Request {
            number: arrived.number,
            target,
            size_bytes: Some(self.config.targets.size_bytes[request.target as usize]),
            kind: request.kind,
            client: u64::from(request.client),
            class: request.class,
        };
        let mut decision = self.front_end.offer(&asked, self.now);
        if let Decision::Poll(candidates) = decision {
            // Asking takes no simulated time here: the answers are the loads of this instant.
            let view = self.front_end.view();
            let answer = |&backend: &BackendId| PollAnswer { backend, load: view.load(backend) };
            let answers: Vec<PollAnswer> = candidates.as_slice().iter().map(answer).collect();
            decision = self.front_end.answer_poll(&asked, &answers, self.now);
        }
        let b = match decision {
            Decision::Assign(b) => b,
            Decision::Wait => return false,
            Decision::Reject | Decision::Poll(_) => {
                self.tally.rejected += 1;
                return true;
            }
        };
        let (time, number) = (self.now, arrived.number);
        observer.decided(Decided { request: number, time, target: request.target, backend: b });
        self.tally.load_changed(b, self.front_end.view().load(b), self.now);
        self.tally.assigned();
        let id = self.jobs.insert(Job {
            target,
            backend: b,
            arrived: arrived.time,
            assigned: self.now,
            alone: Nanos::ZERO,
            size_bytes: request.size_bytes,
        });
        let mut context = Context { now: self.now, queue: &mut self.queue, done: &mut self.done };
        self.jobs.get_mut(id).alone = self.model.start(b, id, request, &mut context);
        true
    }

    /// Reports what the model has answered.
    #[inline]
    fn complete(&mut self) {
        while let Some(id) = self.done.pop() {
            let job = self.jobs.remove(id);
            self.end(&job, Ending::Completed);
            if self.tally.answered(&job, self.now) {
                self.tally.restart(self.now);
                self.model.restart_usage(self.now);
            }
            if self.tally.point_is_due() {
                self.tally.close_point(self.now, &self.front_end, &self.model);
            }
        }
    }

    #[inline]
    fn end(&mut self, job: &Job, outcome: Ending) {
        let completion = Completion {
            target: job.target,
            backend: job.backend,
            outcome,
            size_bytes: Some(job.size_bytes),
            response_time: self.now.since(job.assigned),
        };
        self.front_end.complete(&completion, self.now);
        self.tally.load_changed(job.backend, self.front_end.view().load(job.backend), self.now);
    }

    fn fault(&mut self, fault: Fault) {
        let b = fault.backend;
        match fault.action {
            FaultAction::Weight(weight) => self.front_end.set_weight(b, weight, self.now),
            FaultAction::Health(health) => {
                if health == Health::Down {
                    self.model.fail(b, self.now);
                    for job in self.jobs.take_of(b) {
                        self.end(&job, Ending::Failed);
                        self.tally.lost += 1;
                    }
                }
                self.front_end.set_health(b, health, self.now);
            }
        }
    }

    fn finish(mut self) -> Result<Outcome, RunError<E>> {
        if self.config.warmup > 0 && self.tally.measured().is_none_or(|measured| measured == 0) {
            return Err(RunError::OnlyWarmUp { warmup: self.config.warmup });
        }
        // What still waits when no back-end will come up any more has not been answered.
        let mut unserved = u64::from(self.upcoming.is_some());
        for request in self.source.by_ref() {
            request.map_err(RunError::Source)?;
            unserved += 1;
        }
        self.tally.rejected += self.waiting.len() as u64 + unserved;
        Ok(self.tally.finish(self.arrived + unserved, &self.front_end, &self.model))
    }
}
