//! The loop of the Apache model: connections arrive, a front-end chooses, back-ends serve.

use std::collections::VecDeque;

use plimsoll_policy::{BackendId, Core, Nanos, OfferOptions, Phase, Time};

use super::clients::WebClients;
use super::connections::{ConnectionId, WebConnections};
use super::node::ApacheNode;
use super::params::{ApacheCosts, ApacheParams};
use crate::arrivals::ArrivalTimes;
use crate::config::{RunConfig, RunError, RunObserver};
use crate::event_queue::{EventQueue, key};
use crate::hot_spot::HotSpots;
use crate::model::Usage;
use crate::model_spec::{RunResult, Simulation, SourceError};
use crate::outcome::{ConnectionOutcome, RunOutcome};
use crate::tally::RunTally;
use crate::workload::SimRequest;

mod arriving;
mod faults;
mod handing;
mod measuring;
mod sending;
mod serving;

/// Something that happens later.
#[derive(Debug, Clone, Copy)]
enum ApacheEvent {
    /// The request of a connection comes to the front-end.
    Request(ConnectionId, u32),
    /// Acknowledgements let more of a response be sent.
    Round(ConnectionId, u32),
    /// A client whose connection was refused tries again.
    Retry(ConnectionId, u32),
    /// A connection has been without a request for long.
    KeepAlive(ConnectionId, u32),
    /// The client's FIN comes to the front-end.
    Fin(ConnectionId, u32),
    /// The slice of this number ends.
    Slice(u16, u32),
    /// A read ends, unless the back-end has failed since it had failed so often.
    Read(u16, u32),
    /// The parent counts its idle processes.
    Maintain(u16),
    /// Back-ends are measured.
    Measure,
    /// The policy's tick.
    Tick,
    /// The fault of this number.
    Fault(u32),
}

/// Completions between two reports of progress.
const PROGRESS_EVERY: u64 = 65_536;

type Requests<'a> = &'a mut dyn Iterator<Item = Result<SimRequest, SourceError>>;

/// A run of the model.
pub(super) struct ApacheCluster<'a> {
    config: &'a RunConfig<'a>,
    params: ApacheParams,
    costs: ApacheCosts,
    options: OfferOptions,
    core: Core,
    /// Whether the front-end reads requests before it chooses.
    reads_requests: bool,
    /// Whether it chooses for each of them, on connections that stay, too.
    chooses_each: bool,
    /// Whether an idle process holds a connection as soon as the back-end has it.
    holds_at_once: bool,
    /// Whether the policy hears of requests.
    sniffs: bool,
    source: Requests<'a>,
    observer: &'a mut dyn RunObserver,
    times: ArrivalTimes,
    hot_spots: HotSpots<'a>,
    clients: WebClients,
    connections: WebConnections,
    /// The connection of each client that stays, by number of the client.
    kept: Vec<ConnectionId>,
    nodes: Vec<ApacheNode>,
    queue: EventQueue<ApacheEvent>,
    upcoming: Option<SimRequest>,
    /// The [`key`] of its arrival.
    arrives: u128,
    now: Time,
    arrived: u64,
    /// Number of the next offer to the core.
    offers: u64,
    /// Connections that wait in the core, with the numbers of their offers, in the same order.
    waiting: VecDeque<(u64, ConnectionId)>,
    faults_left: usize,
    /// What back-ends had used when the last request arrived: the measurement ends there, because the last long round trips would
    /// make up much of a run.
    used: Option<Vec<Usage>>,
    tally: RunTally,
    results: ConnectionOutcome,
    woken: Vec<u16>,
    evicted: Vec<u64>,
}

impl<'a> ApacheCluster<'a> {
    pub(super) fn new(params: ApacheParams, simulation: Simulation<'a>) -> Self {
        let Simulation { config, recording, core, cache, source, observer, .. } = simulation;
        let (costs, backends) = (ApacheCosts::new(&params), core.view().len());
        let reads_requests = params.front_end > 0;
        let begins =
            if params.counted_from_syn == 1 || reads_requests { Phase::Active } else { Phase::Connecting };
        Self {
            config,
            params,
            costs,
            options: OfferOptions { begins, ..OfferOptions::PLAIN },
            reads_requests,
            chooses_each: params.front_end > 1,
            holds_at_once: params.held_from_syn == 1 || reads_requests,
            sniffs: core.policy().capabilities().can_sniff(),
            core,
            source,
            observer,
            times: ArrivalTimes::new(config.arrivals, config.seed),
            hot_spots: HotSpots::new(config.hot_spots, config.targets, config.seed),
            clients: WebClients::new(&params, config.seed),
            connections: WebConnections::default(),
            kept: Vec::new(),
            nodes: (0..backends).map(|_| ApacheNode::new(&params, costs.context_switch, &cache)).collect(),
            queue: EventQueue::default(),
            upcoming: None,
            arrives: u128::MAX,
            now: Time::ZERO,
            arrived: 0,
            offers: 0,
            waiting: VecDeque::new(),
            faults_left: config.faults.len(),
            used: None,
            tally: RunTally::new(backends, 1, config.warmup, config.idle_below, recording),
            results: ConnectionOutcome::default(),
            woken: Vec::new(),
            evicted: Vec::new(),
        }
    }

    /// Runs to the end of the input and of all connections.
    ///
    /// # Errors
    /// When the source fails, or the observer stops the run, or nothing is measured.
    pub(super) fn run(mut self) -> RunResult {
        let mut reported = 0;
        self.begin();
        self.fetch()?;
        while self.has_more() {
            if !self.step()? {
                break;
            }
            if self.now == Time::MAX {
                return Err(RunError::TimeOverflow);
            }
            if self.arrived >= reported + PROGRESS_EVERY {
                reported = self.arrived;
                if !self.observer.progress(reported) {
                    return Err(RunError::Stopped);
                }
            }
        }
        self.finish()
    }

    /// Schedules what happens without requests.
    fn begin(&mut self) {
        let backends = self.nodes.len() as u64;
        let every = self.params.maintenance_s;
        for b in 0..self.nodes.len() as u16 {
            // Servers are not started at the same instant.
            let first = every.as_nanos() * (u64::from(b) + 1) / backends;
            self.queue.push(Time::ZERO + Nanos::new(first), ApacheEvent::Maintain(b));
        }
        for (number, fault) in self.config.faults.iter().enumerate() {
            if fault.at == Time::ZERO {
                self.fault(*fault);
            } else {
                self.queue.push(fault.at, ApacheEvent::Fault(number as u32));
            }
        }
        if let Some(every) = self.core.tick_interval() {
            self.queue.push(Time::ZERO + every, ApacheEvent::Tick);
        }
        self.begin_measuring();
    }

    /// Whether anything is left to do for clients.
    fn has_more(&self) -> bool {
        self.upcoming.is_some()
            || self.connections.live() > self.waiting.len()
            || (self.faults_left > 0 && !self.waiting.is_empty())
    }

    /// The next event. Returns whether there was one.
    #[inline]
    fn step(&mut self) -> Result<bool, RunError<SourceError>> {
        if self.arrives < self.queue.first_key() {
            self.now = Time::from_nanos((self.arrives >> 64) as u64);
            self.arrive()?;
            return Ok(true);
        }
        let Some((time, event)) = self.queue.pop() else { return Ok(false) };
        self.now = time;
        match event {
            ApacheEvent::Slice(b, turn) => self.slice(b, turn),
            ApacheEvent::Request(id, generation) => self.requested(id, generation),
            ApacheEvent::Round(id, generation) => self.round(id, generation),
            ApacheEvent::Read(b, epoch) => self.read(b, epoch),
            ApacheEvent::Retry(id, generation) => self.retry(id, generation),
            ApacheEvent::KeepAlive(id, generation) => self.timed_out(id, generation),
            ApacheEvent::Fin(id, generation) => self.fin(id, generation),
            ApacheEvent::Maintain(b) => self.maintain(b),
            ApacheEvent::Measure => self.measure(),
            ApacheEvent::Tick => self.tick(),
            ApacheEvent::Fault(number) => self.fault(self.config.faults[number as usize]),
        }
        Ok(true)
    }

    fn tick(&mut self) {
        self.core.tick(self.now);
        if let Some(every) = self.core.tick_interval() {
            self.queue.push(self.now + every, ApacheEvent::Tick);
        }
        self.start_waiting();
    }

    /// Gets the next request from the source and sets its arrival time.
    #[inline]
    fn fetch(&mut self) -> Result<(), RunError<SourceError>> {
        let Some(mut request) = self.source.next().transpose().map_err(RunError::Source)? else {
            (self.upcoming, self.arrives) = (None, u128::MAX);
            return Ok(());
        };
        let time = self.times.next(&request, self.now);
        if !self.config.hot_spots.is_empty() {
            self.hot_spots.redirect(&mut request, time);
        }
        self.arrives = key(time, self.queue.ticket());
        self.upcoming = Some(request);
        Ok(())
    }

    /// The last request has arrived: loads and use are counted up to here.
    #[inline(never)]
    pub(super) fn input_ends(&mut self) {
        for b in 0..self.nodes.len() as u16 {
            self.load_changed(b);
        }
        self.used = Some(self.nodes.iter().map(|node| node.usage(self.now)).collect());
    }

    /// The measurement starts.
    #[inline(never)]
    fn restart(&mut self) {
        self.tally.restart(self.now);
        self.results = ConnectionOutcome::default();
        for node in &mut self.nodes {
            node.restart_usage(self.now);
        }
        if self.used.is_some() {
            self.used = Some(vec![Usage::default(); self.nodes.len()]);
        }
    }

    fn finish(mut self) -> RunResult {
        if self.config.warmup > 0 && self.tally.measured().is_none_or(|measured| measured == 0) {
            return Err(RunError::OnlyWarmUp { warmup: self.config.warmup });
        }
        // Connections that still wait although no back-end will come up again.
        self.tally.rejected += self.waiting.len() as u64;
        self.results.forks = self.nodes.iter().map(|node| node.forks).sum();
        let used = self.used.unwrap_or_default();
        let usage = |b: BackendId, _: Time| used.get(b.index()).copied().unwrap_or_default();
        let outcome = self.tally.finish_with(self.arrived, self.core.policy(), 1, usage);
        Ok(RunOutcome { connections: Some(Box::new(self.results)), ..outcome })
    }
}
