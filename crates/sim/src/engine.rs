//! The simulation loop: arrivals, decisions, service and completions in order of simulated time.

use std::collections::VecDeque;

use plimsoll_policy::{
    Assigned, Core, Ending, Health, Nanos, Offered, Outcome as Ended, PollAnswer, Request, Rng, Time,
};

use crate::arrivals::{Arrived, Poll, Upcoming};
use crate::config::{DecisionMade, Fault, FaultAction, RunConfig, RunError, RunObserver};
use crate::event_queue::EventQueue;
use crate::jobs::{Job, Jobs};
use crate::model::{JobId, Model, ModelContext, ModelEvent};
use crate::outcome::RunOutcome;
use crate::series::Recording;
use crate::tally::RunTally;
use crate::workload::{Arrivals, SimRequest};

/// What happens next.
enum NextEvent {
    Arrival,
    Model(ModelEvent),
    Fault(Fault),
    Tick,
    Polled,
}

struct Engine<'a, M, S> {
    config: &'a RunConfig<'a>,
    core: Core,
    model: M,
    source: S,
    rng: Rng,
    queue: EventQueue<ModelEvent>,
    jobs: Jobs,
    /// The requests that wait in the core, in the same order.
    waiting: VecDeque<Arrived>,
    /// In the order in which they end; all take equally long.
    polls: VecDeque<Poll>,
    upcoming: Option<Upcoming>,
    origin: Option<Time>,
    next_tick: Option<Time>,
    faults_done: usize,
    now: Time,
    arrived: u64,
    done: Vec<JobId>,
    tally: RunTally,
}

/// Stream of the run's seed from which arrivals are drawn.
const STREAM: u64 = 0x6172_7276;

/// Completions between two reports of progress.
const PROGRESS_EVERY: u64 = 65_536;

/// Runs `source` through `core` on back-ends that behave like `model`.
///
/// # Errors
/// When the source fails, or the observer stops the run.
pub fn run<M: Model, E>(
    config: &RunConfig<'_>,
    core: Core,
    model: M,
    source: impl Iterator<Item = Result<SimRequest, E>>,
    observer: &mut dyn RunObserver,
) -> Result<RunOutcome, RunError<E>> {
    run_recording(config, Recording::default(), core, model, source, observer)
}

/// Like [`run`], and also makes the recordings asked for.
///
/// # Errors
/// Like [`run`].
pub fn run_recording<M: Model, E>(
    config: &RunConfig<'_>,
    recording: Recording,
    core: Core,
    model: M,
    source: impl Iterator<Item = Result<SimRequest, E>>,
    observer: &mut dyn RunObserver,
) -> Result<RunOutcome, RunError<E>> {
    let (backends, disks) = (core.view().len(), model.disks());
    let tally = RunTally::new(backends, disks, config.warmup, config.idle_below, recording);
    let next_tick = core.tick_interval().map(|every| Time::ZERO + every);
    let mut engine = Engine {
        config,
        core,
        model,
        source,
        rng: Rng::new(config.seed, STREAM),
        queue: EventQueue::default(),
        jobs: Jobs::default(),
        waiting: VecDeque::new(),
        polls: VecDeque::new(),
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
    fn run(&mut self, observer: &mut dyn RunObserver) -> Result<(), RunError<E>> {
        let mut reported = 0;
        self.fetch()?;
        // A back-end that is down from the start must not get the first requests.
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
                NextEvent::Model(event) => {
                    let mut context =
                        ModelContext { now: self.now, queue: &mut self.queue, done: &mut self.done };
                    self.model.handle(event, &mut context);
                    self.complete();
                    self.admit(observer)?;
                }
                NextEvent::Arrival => {
                    self.arrive(observer)?;
                }
                NextEvent::Fault(fault) => {
                    self.fault(fault);
                    self.admit(observer)?;
                }
                NextEvent::Tick => {
                    self.core.tick(self.now);
                    self.admit(observer)?;
                }
                NextEvent::Polled => {
                    self.polled(observer);
                    self.admit(observer)?;
                }
            }
            // A disk may still be reading for requests that are gone.
            let held = !self.waiting.is_empty() || !self.polls.is_empty();
            if self.upcoming.is_none() && !held && self.jobs.is_empty() {
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

    /// Takes the next event and advances the clock to it; `None` when nothing can happen any more.
    #[inline]
    fn next(&mut self) -> Option<NextEvent> {
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
        if self.faults_done < self.config.faults.len() || self.next_tick.is_some() || !self.polls.is_empty() {
            // Without other events, a fault matters only to requests that it may start.
            let held = !self.waiting.is_empty() || !self.polls.is_empty();
            let idle = at.is_none() && !held && self.upcoming.is_none();
            if !idle && let Some(timed) = self.next_timed(at.map_or(Time::MAX, |(time, _)| time)) {
                return Some(timed);
            }
        }
        let at = at?;
        self.now = at.0;
        if Some(at) == arrival {
            return Some(NextEvent::Arrival);
        }
        self.queue.pop().map(|(_, event)| NextEvent::Model(event))
    }

    /// Faults, ticks and polls, which are rare, come before other events of the same time.
    fn next_timed(&mut self, before: Time) -> Option<NextEvent> {
        let poll = self.polls.front().map(|poll| poll.ends).filter(|&ends| ends <= before);
        let before = poll.unwrap_or(before);
        let fault = self.config.faults.get(self.faults_done).filter(|f| f.at <= before);
        // Ticks alone do not keep a run going.
        let tick = self.next_tick.filter(|&t| t <= before && before != Time::MAX);
        match (fault, tick) {
            (Some(fault), tick) if tick.is_none_or(|t| fault.at <= t) => {
                self.faults_done += 1;
                self.now = self.now.max(fault.at);
                Some(NextEvent::Fault(*fault))
            }
            (_, Some(tick)) => {
                self.now = tick;
                self.next_tick = self.core.tick_interval().map(|every| tick + every);
                Some(NextEvent::Tick)
            }
            _ => {
                self.now = poll?;
                Some(NextEvent::Polled)
            }
        }
    }

    /// Gets the next request from the source and sets its arrival time.
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

    /// Lets the upcoming request arrive and fetches the one after it. Returns whether there was one.
    #[inline]
    fn arrive(&mut self, observer: &mut dyn RunObserver) -> Result<bool, RunError<E>> {
        // The request is copied here, and lent from here on: a further copy would cost as much as the event.
        let Some(Upcoming { request, .. }) = self.upcoming else {
            return Ok(false);
        };
        let arrived = Arrived { time: self.now, number: self.arrived, request };
        self.arrived += 1;
        self.fetch()?;
        self.offer(&arrived, observer);
        Ok(true)
    }

    /// Starts waiting requests, then admits as many requests of a closed loop as the admission limit allows.
    #[inline]
    fn admit(&mut self, observer: &mut dyn RunObserver) -> Result<(), RunError<E>> {
        while let Some(started) = self.core.start_next(self.now) {
            let arrived = self.waiting.pop_front().expect("what waits in the core waits here");
            debug_assert_eq!(arrived.number, started.number, "the same order");
            self.carry_out(&arrived, &started.offered, observer);
        }
        if self.config.arrivals == Arrivals::Closed {
            while self.core.has_room() && self.core.waiting() == 0 && self.arrive(observer)? {}
        }
        Ok(())
    }

    #[inline]
    fn offer(&mut self, arrived: &Arrived, observer: &mut dyn RunObserver) {
        let request = &arrived.request;
        let asked = Request {
            number: arrived.number,
            target: self.config.targets.id[request.target as usize],
            size_bytes: Some(self.config.targets.size_bytes[request.target as usize]),
            kind: request.kind,
            client: u64::from(request.client),
            class: request.class,
            features: None,
        };
        let offered = self.core.offer(&asked, self.now);
        self.carry_out(arrived, &offered, observer);
    }

    #[inline]
    fn carry_out(&mut self, arrived: &Arrived, offered: &Offered, observer: &mut dyn RunObserver) {
        match *offered {
            Offered::Assigned(ref assigned) => self.start(arrived, assigned, observer),
            Offered::Waits => self.hold(*arrived),
            Offered::Rejected(_) => self.tally.rejected += 1,
            Offered::Poll(candidates) => {
                let ends = self.now + self.config.poll_time;
                self.polls.push_back(Poll { ends, arrived: *arrived, candidates });
                if self.config.poll_time == Nanos::ZERO {
                    self.polled(observer);
                }
            }
        }
    }

    /// Keeps a request that waits in the core, in the core's order.
    #[inline(never)]
    fn hold(&mut self, arrived: Arrived) {
        let after = self.waiting.iter().rev().take_while(|w| w.number > arrived.number).count();
        self.waiting.insert(self.waiting.len() - after, arrived);
    }

    /// Answers the first poll under way with the loads of this instant.
    #[inline(never)]
    fn polled(&mut self, observer: &mut dyn RunObserver) {
        let Some(Poll { arrived, candidates, .. }) = self.polls.pop_front() else { return };
        let view = self.core.view();
        let answers = candidates.as_slice().iter().map(|&b| PollAnswer { backend: b, load: view.load(b) });
        let answers: Vec<PollAnswer> = answers.collect();
        if let Some(offered) = self.core.answer(arrived.number, &answers, self.now) {
            self.carry_out(&arrived, &offered, observer);
        }
    }

    #[inline]
    fn start(&mut self, arrived: &Arrived, assigned: &Assigned, observer: &mut dyn RunObserver) {
        let (b, request) = (assigned.backend, &arrived.request);
        let (time, number) = (self.now, arrived.number);
        observer.decided(DecisionMade { request: number, time, target: request.target, backend: b });
        self.tally.load_changed(b, self.core.view().load(b), self.now);
        self.tally.assigned();
        let size_bytes = request.size_bytes;
        let id = self.jobs.insert(Job {
            assigned: *assigned,
            arrived: arrived.time,
            alone: Nanos::ZERO,
            size_bytes,
        });
        let mut context = ModelContext { now: self.now, queue: &mut self.queue, done: &mut self.done };
        self.jobs.get_mut(id).alone = self.model.start(b, id, request, &mut context);
    }

    /// Completes the requests that the model has answered.
    #[inline]
    fn complete(&mut self) {
        while let Some(id) = self.done.pop() {
            let job = self.jobs.remove(id);
            self.end(&job, Ending::answered(Some(job.size_bytes)));
            if self.tally.answered(&job, self.now) {
                self.tally.restart(self.now);
                self.model.restart_usage(self.now);
            }
            if self.tally.point_is_due() {
                self.tally.close_point(self.now, &self.core, &self.model);
            }
        }
    }

    #[inline]
    fn end(&mut self, job: &Job, ending: Ending) {
        let b = job.assigned.backend;
        self.core.complete(&job.assigned, ending, self.now);
        self.tally.load_changed(b, self.core.view().load(b), self.now);
    }

    fn fault(&mut self, fault: Fault) {
        let b = fault.backend;
        match fault.action {
            FaultAction::Weight(weight) => self.core.set_weight(b, weight, self.now),
            FaultAction::Health(health) => {
                if health == Health::Down {
                    self.model.fail(b, self.now);
                    for job in self.jobs.take_of(b) {
                        let size_bytes = Some(job.size_bytes);
                        self.end(&job, Ending { outcome: Ended::Failed, size_bytes });
                        self.tally.lost += 1;
                    }
                }
                self.core.set_health(b, health, self.now);
            }
        }
    }

    fn finish(mut self) -> Result<RunOutcome, RunError<E>> {
        if self.config.warmup > 0 && self.tally.measured().is_none_or(|measured| measured == 0) {
            return Err(RunError::OnlyWarmUp { warmup: self.config.warmup });
        }
        // Requests that still wait although no back-end will come up again count as unserved.
        let mut unserved = u64::from(self.upcoming.is_some());
        for request in self.source.by_ref() {
            request.map_err(RunError::Source)?;
            unserved += 1;
        }
        self.tally.rejected += self.waiting.len() as u64 + unserved;
        Ok(self.tally.finish(self.arrived + unserved, &self.core, &self.model))
    }
}
