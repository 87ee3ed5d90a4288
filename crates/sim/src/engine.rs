//! The one loop: arrivals, decisions, back-ends, completions, in the order of simulated time.

use std::collections::VecDeque;

use plimsoll_policy::{
    BackendId, Completion, Decision, FrontEnd, Health, Nanos, Outcome as Ending, PollAnswer, Request, Rng,
    Time, Weight,
};

use crate::event_queue::EventQueue;
use crate::jobs::{Job, Jobs};
use crate::measure::{Distribution, LoadMeters};
use crate::model::{Context, JobId, Model, ModelEvent};
use crate::outcome::{BackendOutcome, Outcome};
use crate::workload::{Arrivals, SimRequest, Targets};

/// What is done to a back-end during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultAction {
    /// Down (its requests are lost), up (with an empty memory), or draining.
    Health(Health),
    /// A new weight.
    Weight(Weight),
}

/// Something done to a back-end at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Simulated time.
    pub at: Time,
    /// To whom.
    pub backend: BackendId,
    /// What.
    pub action: FaultAction,
}

/// Everything about a run but policy, model and requests.
#[derive(Debug, Clone)]
pub struct Config<'a> {
    /// Seed of arrivals; policy and model have their own streams of it.
    pub seed: u64,
    /// How requests arrive.
    pub arrivals: Arrivals,
    /// Completions before the measurement starts.
    pub warmup: u64,
    /// A back-end counts as idle below this load (LARD section 3.3: 40 % of `t_low`).
    pub idle_below: f64,
    /// Requests that wait at the front-end at most; more are rejected.
    pub max_waiting: usize,
    /// In order of time.
    pub faults: &'a [Fault],
    /// The targets that requests name by number.
    pub targets: &'a Targets,
}

/// A decision as it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decided {
    /// Number of the request, from 0 in arrival order.
    pub request: u64,
    /// When.
    pub time: Time,
    /// Number of the target.
    pub target: u32,
    /// Who answers.
    pub backend: BackendId,
}

/// Who wants to know what happens during a run.
pub trait Observer {
    /// A request was assigned.
    fn decided(&mut self, decided: Decided) {
        let _ = decided;
    }

    /// Called about every 65,536 completions with their number so far; `false` stops the run.
    fn progress(&mut self, completed: u64) -> bool {
        let _ = completed;
        true
    }
}

/// Wants to know nothing.
impl Observer for () {}

/// A run that did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError<E> {
    /// The source of requests failed.
    Source(E),
    /// The observer stopped it.
    Stopped,
}

/// Who is next.
enum Next {
    Arrival,
    Model(ModelEvent),
    Fault(Fault),
    Tick,
}

struct Engine<'a, M, S> {
    config: &'a Config<'a>,
    front_end: FrontEnd,
    model: M,
    source: S,
    rng: Rng,
    queue: EventQueue<ModelEvent>,
    jobs: Jobs,
    waiting: VecDeque<(Time, u64, SimRequest)>,
    /// The request that arrives next, with its time and its turn among events of equal time.
    upcoming: Option<(Time, u64, SimRequest)>,
    origin: Option<Time>,
    next_tick: Option<Time>,
    faults_done: usize,
    now: Time,
    arrived: u64,
    done: Vec<JobId>,
    tally: Tally,
}

/// What is counted from the start of the measurement.
struct Tally {
    measuring: bool,
    first: u64,
    started: Time,
    ended: Time,
    completed: u64,
    rejected: u64,
    lost: u64,
    per_backend: Vec<u64>,
    response: Distribution,
    slowdown: Distribution,
    loads: LoadMeters,
}

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
    let backends = front_end.view().len();
    let next_tick = front_end.policy().tick_interval().map(|every| Time::ZERO + every);
    let mut engine = Engine {
        config,
        front_end,
        model,
        source,
        rng: Rng::new(config.seed, 0x6172_7276),
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
        tally: Tally {
            measuring: config.warmup == 0,
            first: 0,
            started: Time::ZERO,
            ended: Time::ZERO,
            completed: 0,
            rejected: 0,
            lost: 0,
            per_backend: vec![0; backends],
            response: Distribution::default(),
            slowdown: Distribution::default(),
            loads: LoadMeters::new(backends, config.idle_below),
        },
    };
    engine.run(observer)?;
    Ok(engine.finish())
}

/// Slowdown is kept in thousandths.
pub(crate) const SLOWDOWN_SCALE: f64 = 1000.0;

impl<M: Model, E, S: Iterator<Item = Result<SimRequest, E>>> Engine<'_, M, S> {
    fn run(&mut self, observer: &mut dyn Observer) -> Result<(), RunError<E>> {
        let mut reported = 0;
        self.fetch()?;
        self.admit(observer)?;
        while let Some(next) = self.next() {
            match next {
                Next::Model(event) => {
                    let mut context = Context {
                        now: self.now,
                        queue: &mut self.queue,
                        done: &mut self.done,
                    };
                    self.model.handle(event, &mut context);
                    self.complete();
                }
                Next::Arrival => self.arrive()?,
                Next::Fault(fault) => self.fault(fault),
                Next::Tick => self.front_end.tick(self.now),
            }
            self.admit(observer)?;
            if self.tally.completed >= reported + 65_536 {
                reported = self.tally.completed;
                if !observer.progress(self.arrived) {
                    return Err(RunError::Stopped);
                }
            }
        }
        Ok(())
    }

    /// Takes the next event off and moves the clock to it; `None` when all requests have ended.
    #[inline]
    fn next(&mut self) -> Option<Next> {
        let model = self.queue.peek();
        let arrival = match (self.config.arrivals, &self.upcoming) {
            (Arrivals::Closed, _) | (_, None) => None,
            (_, Some((time, turn, _))) => Some((*time, *turn)),
        };
        if model.is_none() && arrival.is_none() && self.jobs.is_empty() && !self.blocked() {
            return None;
        }
        let at = [model, arrival].into_iter().flatten().min();
        if let Some(timed) = self.next_timed(at.map_or(Time::MAX, |(time, _)| time)) {
            return Some(timed);
        }
        let (time, turn) = at?;
        self.now = time;
        if arrival == Some((time, turn)) {
            return Some(Next::Arrival);
        }
        self.queue.pop().map(|(_, event)| Next::Model(event))
    }

    /// Whether requests are left that only a fault (a back-end coming up) can set free.
    fn blocked(&self) -> bool {
        !self.waiting.is_empty() || self.upcoming.is_some()
    }

    /// Faults and ticks, which are rare, come before other events of the same time.
    #[inline]
    fn next_timed(&mut self, before: Time) -> Option<Next> {
        let fault = self
            .config
            .faults
            .get(self.faults_done)
            .filter(|f| f.at <= before);
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
    fn fetch(&mut self) -> Result<(), RunError<E>> {
        let Some(request) = self.source.next().transpose().map_err(RunError::Source)? else {
            self.upcoming = None;
            return Ok(());
        };
        let time = match self.config.arrivals {
            Arrivals::Closed => self.now,
            Arrivals::Poisson { rate_rps } => {
                let gap_ns = self.rng.exponential() / rate_rps * 1e9;
                self.now + Nanos::new(gap_ns.round() as u64)
            }
            Arrivals::Trace { speed } => {
                let origin = *self.origin.get_or_insert(request.time);
                let offset_ns = request.time.since(origin).as_nanos() as f64 / speed;
                (Time::ZERO + Nanos::new(offset_ns.round() as u64)).max(self.now)
            }
        };
        self.upcoming = Some((time, self.queue.ticket(), request));
        Ok(())
    }

    /// An open arrival: it queues at the front-end, or is refused when that queue is full.
    fn arrive(&mut self) -> Result<(), RunError<E>> {
        if let Some((time, _, request)) = self.upcoming.take() {
            let number = self.arrived;
            self.arrived += 1;
            if self.waiting.len() < self.config.max_waiting {
                self.waiting.push_back((time, number, request));
            } else {
                self.tally.rejected += 1;
            }
        }
        self.fetch()
    }

    /// Lets in as many requests as the admission limit has room for.
    fn admit(&mut self, observer: &mut dyn Observer) -> Result<(), RunError<E>> {
        while self.front_end.has_room() {
            if let Some((arrived, number, request)) = self.waiting.pop_front() {
                if !self.dispatch(arrived, number, request, observer) {
                    break;
                }
            } else if self.config.arrivals == Arrivals::Closed
                && let Some((_, _, request)) = self.upcoming.take()
            {
                let number = self.arrived;
                self.arrived += 1;
                let decided = self.dispatch(self.now, number, request, observer);
                self.fetch()?;
                if !decided {
                    break;
                }
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Asks the policy and starts the request; `false` when the policy wants it to wait for the next event.
    fn dispatch(
        &mut self,
        arrived: Time,
        number: u64,
        request: SimRequest,
        observer: &mut dyn Observer,
    ) -> bool {
        let target = self.config.targets.id[request.target as usize];
        let asked = Request {
            number,
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
            let answer = |&backend: &BackendId| PollAnswer {
                backend,
                load: view.load(backend),
            };
            let answers: Vec<PollAnswer> = candidates.iter().map(answer).collect();
            decision = self.front_end.answer_poll(&asked, &answers, self.now);
        }
        let b = match decision {
            Decision::Assign(b) => b,
            Decision::Wait => {
                self.waiting.push_front((arrived, number, request));
                return false;
            }
            Decision::Reject | Decision::Poll(_) => {
                self.tally.rejected += 1;
                return true;
            }
        };
        observer.decided(Decided {
            request: number,
            time: self.now,
            target: request.target,
            backend: b,
        });
        self.tally
            .loads
            .set(b.index(), self.front_end.view().load(b), self.now);
        let job = Job {
            target,
            backend: b,
            arrived,
            assigned: self.now,
            alone: Nanos::ZERO,
            size_bytes: request.size_bytes,
        };
        let id = self.jobs.insert(job);
        let mut context = Context {
            now: self.now,
            queue: &mut self.queue,
            done: &mut self.done,
        };
        self.jobs.get_mut(id).alone = self.model.start(b, id, &request, &mut context);
        true
    }

    /// Reports what the model has answered.
    #[inline]
    fn complete(&mut self) {
        while let Some(id) = self.done.pop() {
            let job = self.jobs.remove(id);
            self.end(&job, Ending::Completed);
            let response = self.now.since(job.arrived);
            self.tally.completed += 1;
            self.tally.ended = self.now;
            self.tally.per_backend[job.backend.index()] += 1;
            self.tally.response.record(response.as_nanos());
            let slowdown = response.as_nanos() as f64 / job.alone.as_nanos().max(1) as f64;
            self.tally.slowdown.record((slowdown * SLOWDOWN_SCALE) as u64);
            if !self.tally.measuring && self.tally.completed >= self.config.warmup {
                self.start_measuring();
            }
        }
    }

    fn end(&mut self, job: &Job, outcome: Ending) {
        let completion = Completion {
            target: job.target,
            backend: job.backend,
            outcome,
            size_bytes: Some(job.size_bytes),
            response_time: self.now.since(job.assigned),
        };
        self.front_end.complete(&completion, self.now);
        self.tally.loads.set(
            job.backend.index(),
            self.front_end.view().load(job.backend),
            self.now,
        );
    }

    fn start_measuring(&mut self) {
        let tally = &mut self.tally;
        tally.measuring = true;
        tally.first = tally.completed + tally.rejected + tally.lost;
        (tally.completed, tally.rejected, tally.lost) = (0, 0, 0);
        (tally.started, tally.ended) = (self.now, self.now);
        tally.per_backend.fill(0);
        tally.response.reset();
        tally.slowdown.reset();
        tally.loads.restart(self.now);
        self.model.restart_usage();
    }

    fn fault(&mut self, fault: Fault) {
        let b = fault.backend;
        match fault.action {
            FaultAction::Weight(weight) => self.front_end.set_weight(b, weight, self.now),
            FaultAction::Health(health) => {
                if health == Health::Down {
                    self.model.fail(b);
                    for job in self.jobs.take_of(b) {
                        self.end(&job, Ending::Failed);
                        self.tally.lost += 1;
                    }
                }
                self.front_end.set_health(b, health, self.now);
            }
        }
    }

    fn finish(mut self) -> Outcome {
        // What still waits when no back-end will come up any more has not been answered.
        self.tally.rejected += self.waiting.len() as u64;
        let mut unserved = u64::from(self.upcoming.is_some());
        unserved += self.source.by_ref().count() as u64;
        self.tally.rejected += unserved;
        let tally = self.tally;
        let span = tally.ended.since(tally.started);
        let (loads, load_series) = tally.loads.finish(tally.ended);
        let ids = self.front_end.view().ids();
        let backends = ids
            .zip(loads)
            .map(|(b, (mean_load, idle_ratio))| BackendOutcome {
                requests: tally.per_backend[b.index()],
                usage: self.model.usage(b),
                mean_load,
                idle_ratio,
            })
            .collect();
        Outcome {
            requests: self.arrived + unserved - tally.first,
            completed: tally.completed,
            rejected: tally.rejected,
            lost: tally.lost,
            simulated: span,
            response_ns: tally.response,
            slowdown_permille: tally.slowdown,
            backends,
            disks: self.model.disks(),
            load_series,
            policy_stats: self.front_end.policy().stats(),
        }
    }
}
