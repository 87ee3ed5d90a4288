//! Compares the live policy of a log with other policies on the same requests.

use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_cache::CacheSpec;
use plimsoll_policy::{
    BackendId, BuildContext, Completion, Decision, Health, Nanos, Outcome, Phase, TargetId, Time,
    WaitingRequest, build,
};

use crate::counterfactual::Counterfactual;
use crate::event::{Event, RunHeader, What};
use crate::proof::{ListedDecision, known};
use crate::reader::{LogItem, LogReader};
use crate::replay::{ReplayError, inconsistent};
use crate::score::{Score, Scorer};

/// Options of a comparison.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// Other policies: name and settings.
    pub policies: Vec<(String, Vec<(String, String)>)>,
    /// Replacement policy of the modelled caches; `None` for what the log says.
    pub cache: Option<&'static CacheSpec>,
    /// Memory of one modelled cache in bytes; `None` for what the log says.
    pub cache_bytes: Option<u64>,
}

/// The live policy of a run compared with others.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The run, with its back-ends as they were at its start, or where the log goes on after a gap.
    pub header: RunHeader,
    /// Whether the log has the run from its start.
    pub whole: bool,
    /// Names of the back-ends, with those that joined later.
    pub names: Vec<String>,
    /// Replacement policy of the modelled caches.
    pub cache: &'static CacheSpec,
    /// Memory of one modelled cache in bytes.
    pub cache_bytes: u64,
    /// Score of the logged assignments.
    pub live: Score,
    /// Scores of the other policies, in the order of [`CompareOptions::policies`].
    pub others: Vec<Other>,
}

/// The result of another policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Other {
    /// Its name.
    pub policy: String,
    /// Its settings.
    pub settings: Vec<(String, String)>,
    /// Score of its assignments.
    pub score: Score,
    /// Requests that it would have sent to another back-end.
    pub moved: u64,
    /// Requests for which it found no back-end.
    pub refused: u64,
}

/// Plays a log to other policies. `sink` gets each assignment with the number of its policy.
///
/// # Errors
/// When the log cannot be read, or contradicts itself, or a policy cannot be built.
pub fn compare(
    reader: &mut LogReader,
    options: &CompareOptions,
    sink: &mut dyn FnMut(usize, ListedDecision),
) -> Result<Vec<Comparison>, ReplayError> {
    let mut done = Vec::new();
    let mut segment: Option<Segment> = None;
    while let Some(item) = reader.next_item()? {
        let (header, whole) = match item {
            LogItem::Event(Event { what: What::Run(header), .. }) => (Some(*header), true),
            LogItem::Resumed { run, .. } => (run.map(|run| *run), false),
            LogItem::Event(event) => {
                let Some(segment) = &mut segment else {
                    return Err(inconsistent(reader, "an event comes before the first run".into()));
                };
                segment.event(&event, sink).map_err(|what| inconsistent(reader, what))?;
                continue;
            }
            LogItem::Dropped { .. }
            | LogItem::Truncated { .. }
            | LogItem::NoEnd
            | LogItem::Full
            | LogItem::Ended => continue,
        };
        let next = header.map(|header| Segment::start(header, whole, options, reader)).transpose()?;
        done.extend(std::mem::replace(&mut segment, next).map(Segment::finish));
    }
    done.extend(segment.map(Segment::finish));
    Ok(done)
}

/// A run, or the rest of one after a gap.
struct Segment {
    header: RunHeader,
    whole: bool,
    names: Vec<String>,
    cache: &'static CacheSpec,
    cache_bytes: u64,
    backends: usize,
    live: Scorer,
    /// Where each request under way went. Looked up by key only, never iterated.
    under_way: HashMap<u64, (TargetId, BackendId), FixedState>,
    /// The requests that wait, or whose polls are under way. Looked up by key only, never iterated.
    undecided: HashMap<u64, WaitingRequest, FixedState>,
    others: Vec<ComparedPolicy>,
}

struct ComparedPolicy {
    policy: String,
    settings: Vec<(String, String)>,
    shadow: Counterfactual,
    moved: u64,
    refused: u64,
    clock: TickSource,
}

/// Where a policy's ticks come from.
enum TickSource {
    /// The log: the live policy has the same interval.
    Live,
    /// Its own interval, and its next tick.
    Own(Nanos, Option<Time>),
}

impl Segment {
    fn start(
        header: RunHeader,
        whole: bool,
        options: &CompareOptions,
        reader: &LogReader,
    ) -> Result<Self, ReplayError> {
        let failed = |error| ReplayError::Header { position: reader.place(), error };
        // The log may come from a program with other policies; their decisions are in it.
        let live_interval = header.build_policy().ok().and_then(|policy| policy.tick_interval());
        let cache = match options.cache {
            Some(cache) => cache,
            None => plimsoll_cache::find(&header.cache).map_err(|error| failed(error.into()))?,
        };
        let cache_bytes = options.cache_bytes.unwrap_or(header.cache_bytes);
        let class_costs = Arc::clone(&header.class_costs);
        let context =
            BuildContext { seed: header.seed, cache, cache_bytes, class_costs, ..BuildContext::default() };
        let cluster = header.cluster();
        let mut others = Vec::new();
        for (policy, settings) in &options.policies {
            let built = build(policy, &context, settings).map_err(|error| failed(error.into()))?;
            let clock = match built.tick_interval() {
                Some(interval) if live_interval != Some(interval) => TickSource::Own(interval, None),
                _ => TickSource::Live,
            };
            others.push(ComparedPolicy {
                policy: policy.clone(),
                settings: settings.clone(),
                shadow: Counterfactual::new(built, cluster.clone(), cache, cache_bytes),
                moved: 0,
                refused: 0,
                clock,
            });
        }
        let backends = cluster.len();
        let live = Scorer::new(backends, cache, cache_bytes);
        let names = header.backends.iter().map(|b| b.name.clone()).collect();
        let under_way = HashMap::with_hasher(FixedState::with_seed(1));
        let mut undecided = HashMap::with_hasher(FixedState::with_seed(1));
        let waiting = header.waiting.iter();
        undecided.extend(waiting.map(|w| (w.request.number, w.clone())));
        Ok(Self { header, whole, names, cache, cache_bytes, backends, live, under_way, undecided, others })
    }

    fn finish(self) -> Comparison {
        let finish = |beside: ComparedPolicy| Other {
            policy: beside.policy,
            settings: beside.settings,
            score: beside.shadow.score(),
            moved: beside.moved,
            refused: beside.refused,
        };
        let others = self.others.into_iter().map(finish).collect();
        Comparison {
            header: self.header,
            whole: self.whole,
            names: self.names,
            cache: self.cache,
            cache_bytes: self.cache_bytes,
            live: self.live.score(),
            others,
        }
    }

    fn event(&mut self, event: &Event, sink: &mut dyn FnMut(usize, ListedDecision)) -> Result<(), String> {
        let now = event.now;
        for other in &mut self.others {
            other.clock_is(now);
        }
        match &event.what {
            What::Offered { request, options, decision } => {
                let offer = WaitingRequest { request: request.clone(), options: *options };
                self.decided(offer, *decision, now, sink)?;
            }
            What::Answered { number, decision, .. } | What::Started { number, decision } => {
                if let Some(undecided) = self.undecided.remove(number) {
                    self.decided(undecided, *decision, now, sink)?;
                }
            }
            What::GaveUp { number } => {
                self.undecided.remove(number);
            }
            What::Completed { number, phase, completion } => {
                known(completion.backend, self.backends)?;
                self.completed(*number, *phase, completion, now);
            }
            What::Joined { backend, weight, key, name } => {
                self.joined(*backend, name, now)?;
                self.each(|shadow| shadow.joined(*weight, *key, now));
            }
            What::Ticked => {
                for other in self.others.iter_mut().filter(|other| matches!(other.clock, TickSource::Live)) {
                    other.shadow.ticked(now);
                }
            }
            what => self.passed_on(what, now)?,
        }
        Ok(())
    }

    /// Passes an input on to the other policies unchanged.
    fn passed_on(&mut self, what: &What, now: Time) -> Result<(), String> {
        match what {
            What::Moved { number, backend, from, to, .. } => {
                known(*backend, self.backends)?;
                self.each(|shadow| shadow.moved(*number, *backend, *from, *to, now));
            }
            What::Taken { number, request } => self.each(|shadow| shadow.taken(*number, request, now)),
            What::Stayed { backend } => {
                known(*backend, self.backends)?;
                self.each(|shadow| shadow.stayed(*backend, now));
            }
            What::CompletedForeign { backend, phase } => {
                self.each(|shadow| shadow.inherited_ended(*backend, *phase));
            }
            What::Reported(report) => {
                known(report.backend, self.backends)?;
                self.each(|shadow| shadow.reported(report, now));
            }
            What::Sniffed(sniffed) => {
                known(sniffed.backend, self.backends)?;
                self.each(|shadow| shadow.sniffed(sniffed, now));
            }
            What::HostMetrics(metrics) => {
                known(metrics.backend, self.backends)?;
                self.each(|shadow| shadow.host_metrics(metrics, now));
            }
            What::Shared(sum) => self.each(|shadow| shadow.shared(sum, now)),
            What::Health { backend, health } => {
                known(*backend, self.backends)?;
                if *health == Health::Down {
                    self.live.down(*backend);
                }
                self.each(|shadow| shadow.health(*backend, *health, now));
            }
            What::Weight { backend, weight } => self.each(|shadow| shadow.weight(*backend, *weight, now)),
            What::MostRequests { backend, most } => {
                self.each(|shadow| shadow.most_requests(*backend, *most, now));
            }
            What::Left { backend } => self.each(|shadow| shadow.left(*backend, now)),
            // The live admission limit applies.
            _ => {}
        }
        Ok(())
    }

    fn joined(&mut self, backend: BackendId, name: &str, now: Time) -> Result<(), String> {
        match self.names.get_mut(backend.index()) {
            // It reuses the index of one that left; requests of both are counted together.
            Some(names) => *names = format!("{names}, then {name}"),
            None if self.backends >= usize::from(u16::MAX) => {
                return Err("the log is damaged: more than 65,535 back-ends join".into());
            }
            None => {
                self.backends += 1;
                self.names.push(name.to_owned());
                self.live.joined(self.backends, now);
            }
        }
        Ok(())
    }

    fn decided(
        &mut self,
        offer: WaitingRequest,
        decision: Decision,
        now: Time,
        sink: &mut dyn FnMut(usize, ListedDecision),
    ) -> Result<(), String> {
        match decision {
            Decision::Assign(b) => {
                known(b, self.backends)?;
                self.assigned(&offer, b, now, sink);
            }
            Decision::Wait | Decision::Poll(_) => {
                self.undecided.insert(offer.request.number, offer);
            }
            // Nothing was assigned, so there is nothing to compare.
            Decision::Reject => {}
        }
        Ok(())
    }

    fn assigned(
        &mut self,
        WaitingRequest { request, options }: &WaitingRequest,
        live: BackendId,
        now: Time,
        sink: &mut dyn FnMut(usize, ListedDecision),
    ) {
        if let Some((target, backend)) = self.under_way.insert(request.number, (request.target, live)) {
            // The log lost the end of an earlier request of this number.
            self.live.completed(&lost(target, backend), now);
        }
        self.live.assigned(live, request, now);
        for (i, other) in self.others.iter_mut().enumerate() {
            let own = other.shadow.assigned(request, options, now);
            other.moved += u64::from(own.is_some_and(|own| own != live));
            other.refused += u64::from(own.is_none());
            if let Some(backend) = own {
                sink(i, ListedDecision { request: request.number, now, target: request.target, backend });
            }
        }
    }

    fn completed(&mut self, number: u64, phase: Phase, completion: &Completion, now: Time) {
        if self.under_way.remove(&number).is_some() {
            self.live.completed(completion, now);
        }
        self.each(|shadow| shadow.completed(number, completion, phase, now));
    }

    fn each(&mut self, mut tell: impl FnMut(&mut Counterfactual)) {
        for other in &mut self.others {
            tell(&mut other.shadow);
        }
    }
}

impl ComparedPolicy {
    /// Ticks if the policy's own interval has passed; once after a long pause.
    fn clock_is(&mut self, now: Time) {
        let TickSource::Own(interval, next) = &mut self.clock else { return };
        if next.is_some_and(|due| now >= due) {
            self.shadow.ticked(now);
            *next = None;
        }
        next.get_or_insert(now + *interval);
    }
}

fn lost(target: TargetId, backend: BackendId) -> Completion {
    Completion::of(target, backend, Outcome::Failed, Nanos::ZERO)
}
