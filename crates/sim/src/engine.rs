//! The simulation loop: arrivals, decisions, service and completions in order of simulated time.

use plimsoll_policy::{Assigned, Core, Ending, Health, Nanos, Time};

use crate::arrivals::{ArrivalTimes, Arrived};
use crate::config::{DecisionMade, Fault, FaultAction, RunConfig, RunError, RunObserver};
use crate::event_queue::{EventQueue, time_of};
use crate::front_ends::{FrontEndDecision, FrontEnds, One, Quiet};
use crate::hot_spot::HotSpots;
use crate::jobs::{Job, Jobs};
use crate::model::{JobId, Model, ModelContext, ModelEvent};
use crate::outcome::RunOutcome;
use crate::series::Recording;
use crate::tally::RunTally;
use crate::workload::{Arrivals, SimRequest};

mod arriving;

/// What happens next.
enum NextEvent {
    Arrival,
    Model(ModelEvent),
    Fault,
    Tick,
    FrontEnd,
}

struct Engine<'a, M, S, F> {
    config: &'a RunConfig<'a>,
    front_ends: F,
    model: M,
    source: S,
    times: ArrivalTimes,
    queue: EventQueue<ModelEvent>,
    jobs: Jobs,
    upcoming: Option<SimRequest>,
    /// The [`key`] of its arrival; that of none where there is none, or it waits for room.
    arrives: u128,
    /// The upcoming request waits for the end of all before it.
    settling: bool,
    next_tick: Option<Time>,
    faults_done: usize,
    /// The next fault or tick.
    timed: Time,
    now: Time,
    arrived: u64,
    done: Vec<JobId>,
    tally: RunTally,
    hot_spots: HotSpots<'a>,
}

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
    let one = One::new(core, config.targets, config.poll_time);
    run_with(config, recording, one, model, source, observer)
}

/// Runs with these front-ends.
pub(crate) fn run_with<M: Model, E>(
    config: &RunConfig<'_>,
    recording: Recording,
    front_ends: impl FrontEnds,
    model: M,
    source: impl Iterator<Item = Result<SimRequest, E>>,
    observer: &mut dyn RunObserver,
) -> Result<RunOutcome, RunError<E>> {
    let (backends, disks) = (front_ends.view().len(), model.disks());
    let tally = RunTally::new(backends, disks, config.warmup, config.idle_below, recording);
    let next_tick = front_ends.tick_interval().map(|every| Time::ZERO + every);
    let mut engine = Engine {
        config,
        front_ends,
        model,
        source,
        times: ArrivalTimes::new(config.arrivals, config.seed),
        queue: EventQueue::default(),
        jobs: Jobs::default(),
        upcoming: None,
        arrives: u128::MAX,
        settling: false,
        next_tick,
        faults_done: 0,
        timed: Time::ZERO,
        now: Time::ZERO,
        arrived: 0,
        done: Vec::new(),
        tally,
        hot_spots: HotSpots::new(config.hot_spots, config.targets, config.seed),
    };
    engine.run(observer)?;
    engine.finish()
}

impl<M: Model, E, S: Iterator<Item = Result<SimRequest, E>>, F: FrontEnds> Engine<'_, M, S, F> {
    fn run(&mut self, observer: &mut dyn RunObserver) -> Result<(), RunError<E>> {
        let mut reported = 0;
        self.fetch()?;
        // A back-end that is down from the start must not get the first requests.
        while let Some(fault) = self.config.faults.get(self.faults_done).filter(|f| f.at == Time::ZERO) {
            self.faults_done += 1;
            self.fault(*fault);
        }
        self.find_timed();
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
                    self.settle();
                }
                NextEvent::Arrival => {
                    self.arrive(observer)?;
                    self.settle();
                }
                NextEvent::Fault => {
                    self.fault(self.config.faults[self.faults_done - 1]);
                    self.admit(observer)?;
                    self.settle();
                }
                NextEvent::Tick => {
                    self.front_ends.tick(self.now);
                    self.admit(observer)?;
                }
                NextEvent::FrontEnd => {
                    // After the last request, the run may end with this event.
                    let ends = if self.upcoming.is_none() { Time::ZERO } else { self.quiet_ends() };
                    let mut quiet = Quiet { now: self.now, ends };
                    let handled = self.front_ends.handle(&mut self.model, &mut quiet);
                    self.now = quiet.now;
                    if let Some((arrived, decided)) = handled {
                        self.carry_out_later(&arrived, &decided, observer);
                    }
                    self.admit(observer)?;
                    self.settle();
                }
            }
            // A disk may still be reading for requests that are gone.
            if self.upcoming.is_none() && !self.front_ends.holds_requests() && self.jobs.is_empty() {
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
        let first = self.queue.first_key().min(self.arrives);
        let before = time_of(first);
        if self.timed.min(self.front_ends.next_event()) <= before {
            // Without other events, a fault matters only to requests that it may start.
            let idle = first == u128::MAX && !self.front_ends.holds_requests() && self.upcoming.is_none();
            if !idle && let Some(timed) = self.next_timed(before) {
                return Some(timed);
            }
        }
        if first == self.arrives {
            if first == u128::MAX {
                return None;
            }
            self.now = before;
            return Some(NextEvent::Arrival);
        }
        self.now = before;
        self.queue.pop().map(|(_, event)| NextEvent::Model(event))
    }

    /// Faults, ticks and the front-ends' own events come before other events of the same time.
    fn next_timed(&mut self, before: Time) -> Option<NextEvent> {
        let own = match before {
            Time::MAX => self.front_ends.next_lasting_event(),
            _ => self.front_ends.next_event(),
        };
        let own = Some(own).filter(|&t| t <= before && t != Time::MAX);
        let before = own.unwrap_or(before);
        if self.timed <= before {
            let fault = self.config.faults.get(self.faults_done).filter(|f| f.at <= before);
            // Ticks alone do not keep a run going.
            let tick = self.next_tick.filter(|&t| t <= before && before != Time::MAX);
            match (fault, tick) {
                (Some(fault), tick) if tick.is_none_or(|t| fault.at <= t) => {
                    self.faults_done += 1;
                    self.now = self.now.max(fault.at);
                    self.find_timed();
                    return Some(NextEvent::Fault);
                }
                (_, Some(tick)) => {
                    self.now = tick;
                    self.next_tick = self.front_ends.tick_interval().map(|every| tick + every);
                    self.find_timed();
                    return Some(NextEvent::Tick);
                }
                _ => {}
            }
        }
        self.now = own?;
        Some(NextEvent::FrontEnd)
    }

    fn find_timed(&mut self) {
        let fault = self.config.faults.get(self.faults_done).map(|fault| fault.at);
        self.timed = fault.into_iter().chain(self.next_tick).min().unwrap_or(Time::MAX);
    }

    /// Starts waiting requests, then admits as many requests of a closed loop as the admission limit allows.
    #[inline(always)]
    fn admit(&mut self, observer: &mut dyn RunObserver) -> Result<(), RunError<E>> {
        if self.front_ends.waiting() > 0 {
            self.start_waiting(observer);
        }
        if self.config.arrivals == Arrivals::Closed {
            self.fill(observer)?;
        }
        Ok(())
    }

    fn fill(&mut self, observer: &mut dyn RunObserver) -> Result<(), RunError<E>> {
        while self.front_ends.has_room() && self.arrive(observer)? {}
        Ok(())
    }

    fn start_waiting(&mut self, observer: &mut dyn RunObserver) {
        while let Some((arrived, decided)) = self.front_ends.start_next(self.now) {
            self.carry_out(&arrived, &decided, observer);
        }
    }

    #[inline(never)]
    fn carry_out_later(
        &mut self,
        arrived: &Arrived,
        decided: &FrontEndDecision,
        observer: &mut dyn RunObserver,
    ) {
        self.carry_out(arrived, decided, observer);
    }

    #[inline]
    fn carry_out(&mut self, arrived: &Arrived, decided: &FrontEndDecision, observer: &mut dyn RunObserver) {
        match *decided {
            FrontEndDecision::Starts(front_end, ref assigned) => {
                self.start(arrived, front_end, assigned, observer);
            }
            FrontEndDecision::Held => {}
            FrontEndDecision::Rejected => self.tally.rejected += 1,
            FrontEndDecision::Lost(front_end, ref assigned) => self.lose(front_end, assigned),
        }
    }

    /// A request's back-end has failed before the request reached it.
    #[inline(never)]
    fn lose(&mut self, front_end: u16, assigned: &Assigned) {
        self.front_ends.complete(front_end, assigned, Ending::FAILED, self.now);
        let b = assigned.backend;
        self.tally.load_changed(b, self.front_ends.load(b), self.now);
        self.tally.lost += 1;
    }

    #[inline]
    fn start(
        &mut self,
        arrived: &Arrived,
        front_end: u16,
        assigned: &Assigned,
        observer: &mut dyn RunObserver,
    ) {
        let (b, request) = (assigned.backend, &arrived.request);
        let (time, number) = (self.now, arrived.number);
        observer.decided(DecisionMade { request: number, time, target: request.target, backend: b });
        let load = self.front_ends.load(b);
        self.tally.load_changed(b, load, self.now);
        self.tally.assigned();
        let size_bytes = request.size_bytes;
        let id = self.jobs.insert(Job {
            assigned: *assigned,
            front_end,
            load,
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
            let hit = self.model.told_hit(id);
            self.end(&job, Ending::answered(Some(job.size_bytes)).with_hit(hit));
            let (b, response_time) = (job.assigned.backend, self.now.since(job.assigned.at));
            self.front_ends.answered(b, job.load, response_time, self.now);
            if self.tally.answered(&job, self.now) {
                self.tally.restart(self.now);
                self.front_ends.restart();
                self.model.restart_usage(self.now);
            }
            if self.tally.point_is_due() {
                self.tally.close_point(self.now, |b, now| self.model.usage(b, now));
            }
        }
    }

    #[inline]
    fn end(&mut self, job: &Job, ending: Ending) {
        let b = job.assigned.backend;
        self.front_ends.complete(job.front_end, &job.assigned, ending, self.now);
        self.tally.load_changed(b, self.front_ends.load(b), self.now);
    }

    fn fault(&mut self, fault: Fault) {
        let b = fault.backend;
        match fault.action {
            FaultAction::Speed(speed) => {
                self.model.set_speed(b, speed);
            }
            FaultAction::MemoryBytes(bytes) => {
                self.model.set_memory(b, bytes);
            }
            FaultAction::Weight(weight) => self.front_ends.set_weight(b, weight, self.now),
            FaultAction::Health(health) => {
                if health == Health::Down {
                    self.model.fail(b, self.now);
                    for job in self.jobs.take_of(b) {
                        let size_bytes = Some(job.size_bytes);
                        self.end(&job, Ending { size_bytes, ..Ending::FAILED });
                        self.tally.lost += 1;
                    }
                }
                self.front_ends.set_health(b, health, self.now);
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
        self.tally.rejected += self.front_ends.waiting() as u64 + unserved;
        let outcome = self.tally.finish(self.arrived + unserved, self.front_ends.policy(), &self.model);
        Ok(RunOutcome { load_messages: self.front_ends.messages(), ..outcome })
    }
}
