//! Several front-ends, each with its own policy object and its own view of the loads.

use std::collections::VecDeque;

use plimsoll_policy::{
    AdmissionLimit, Assigned, BackendId, Cluster, ClusterView, Core, Ending, Health, Nanos, Offered, Policy,
    Rng, Time, Weight, mix,
};

use super::announcements::{Announcements, Receivers};
use super::backends::Backends;
use super::exchange::SumExchange;
use super::inquiries::InquiriesUnderWay;
use super::known::KnownLoads;
use super::manager::{Manager, ManagerEvent};
use super::{FrontEndDecision, FrontEnds, Quiet};
use crate::arrivals::Arrived;
use crate::load_information::{Dealing, FrontEndsSetup, LoadInformation};
use crate::model::Model;
use crate::outcome::LoadMessages;
use crate::workload::{Arrivals, Targets};

mod deciding;
mod knowing;

/// Stream of the run's seed from which requests are dealt.
const STREAM: u64 = 0x6465_616C;

/// Where loads come from, with what is under way.
enum Source {
    Exact,
    Own,
    Broadcast(Announcements),
    Poll(InquiriesUnderWay),
    Central(Manager),
}

/// See the module's documentation.
pub(crate) struct Several<'a> {
    /// One for each front-end and partition; of a load index manager its own alone.
    cores: Vec<Core>,
    /// Weights and health of all back-ends: a core takes those that do not host its partition to be down.
    whole: Cluster,
    /// The requests that wait in each core, in the same order.
    waiting: Vec<VecDeque<Arrived>>,
    /// How many wait.
    held: usize,
    /// The core that is asked first for requests that have waited.
    turn: usize,
    source: Source,
    /// Where loads that were told a moment ago are not asked for.
    known: Option<KnownLoads>,
    setup: FrontEndsSetup,
    exchange: Option<SumExchange>,
    /// Nothing but inquiries is ever under way: neither exchanges nor requests between back-ends.
    polls_alone: bool,
    /// Requests on their way from one back-end to another, in the order in which they arrive.
    hopping: VecDeque<(Time, Arrived, u16, Assigned)>,
    targets: &'a Targets,
    rng: Rng,
    backends: Backends,
    /// Requests that have arrived and have not ended.
    inside: u64,
    /// The admission limit of all front-ends together.
    limit: AdmissionLimit,
    /// Whether a back-end hosts several partitions.
    overlap: bool,
    closed: bool,
    messages: LoadMessages,
}

impl<'a> Several<'a> {
    /// Front-ends with these cores, of which a load index manager needs one for each partition. Their admission limits are shares
    /// of that of the first.
    pub(crate) fn new(
        cores: Vec<Core>,
        mut setup: FrontEndsSetup,
        arrivals: &Arrivals,
        targets: &'a Targets,
        seed: u64,
    ) -> Self {
        let (backends, limit) = (cores[0].view().len(), cores[0].admission().limit);
        let source = match setup.load_information {
            LoadInformation::Exact => Source::Exact,
            LoadInformation::Own => Source::Own,
            LoadInformation::Broadcast(how) => Source::Broadcast(Announcements::new(how, backends, seed)),
            LoadInformation::Poll(how) => Source::Poll(InquiriesUnderWay::new(how, seed)),
            LoadInformation::Central(how) => Source::Central(Manager::new(how.latency_s)),
        };
        if matches!(source, Source::Central(_)) {
            setup.hop = Nanos::ZERO;
        }
        let known = match setup.load_information {
            LoadInformation::Poll(how) if !how.max_age_s.is_zero() => {
                Some(KnownLoads::new(how.max_age_s, cores.len()))
            }
            _ => None,
        };
        let exchange = SumExchange::new(setup.exchange_interval, &cores);
        let mut several = Self {
            waiting: cores.iter().map(|_| VecDeque::new()).collect(),
            held: 0,
            turn: 0,
            polls_alone: exchange.is_none() && setup.hop.is_zero(),
            exchange,
            hopping: VecDeque::new(),
            source,
            known,
            targets,
            rng: Rng::new(seed, STREAM),
            backends: Backends::new(backends, cores[0].policy().capabilities().can_probe()),
            whole: Cluster::new(backends),
            inside: 0,
            limit,
            overlap: setup.partitions.overlap(),
            closed: *arrivals == Arrivals::Closed,
            messages: LoadMessages::default(),
            setup,
            cores,
        };
        several.partition();
        several.share_limit(Time::ZERO);
        several
    }

    /// The number of the core that decides about a request.
    fn deal(&mut self, arrived: &Arrived) -> u16 {
        let count = u64::from(self.setup.count);
        let front_end = match self.setup.dealing {
            _ if count == 1 => 0,
            Dealing::ByClient => (mix(u64::from(arrived.request.client) + 1) % count) as u16,
            Dealing::AtRandom => self.rng.below(count) as u16,
        };
        match self.setup.partitions.count() {
            1 => front_end,
            partitions => front_end * partitions as u16 + self.partition_of(arrived),
        }
    }

    fn managed(&mut self, event: ManagerEvent, now: Time) -> Option<(Arrived, FrontEndDecision)> {
        match event {
            ManagerEvent::Asked(arrived) => {
                let core = self.partition_of(&arrived);
                let offered = self.cores[usize::from(core)].offer(&arrived.asked(self.targets), now);
                let decided = self.carry_out(core, &arrived, offered, now);
                self.tell(arrived, decided, now);
                None
            }
            ManagerEvent::Told(arrived, decided) => Some((arrived, self.unless_lost(decided))),
            ManagerEvent::Ended(core, assigned, ending) => {
                self.cores[usize::from(core)].complete(&assigned, ending, now);
                None
            }
        }
    }

    /// The manager tells a front-end what it has decided.
    fn tell(&mut self, arrived: Arrived, decided: FrontEndDecision, now: Time) {
        if let Source::Central(manager) = &mut self.source
            && !matches!(decided, FrontEndDecision::Held)
        {
            self.messages.messages += 1;
            manager.tell(arrived, decided, now);
        }
    }

    /// The next request that waited in a core and has its turn.
    #[inline(never)]
    fn start_held(&mut self, now: Time) -> Option<(Arrived, FrontEndDecision)> {
        let count = self.cores.len();
        for offset in 0..count {
            let front_end = (self.turn + offset) % count;
            while !self.waiting[front_end].is_empty() {
                self.refresh(front_end);
                let Some(started) = self.cores[front_end].start_next(now) else { break };
                let arrived = self.waiting[front_end].pop_front()?;
                self.held -= 1;
                let decided = self.carry_out(front_end as u16, &arrived, started.offered, now);
                if matches!(self.source, Source::Central(_)) {
                    self.tell(arrived, decided, now);
                } else if !matches!(decided, FrontEndDecision::Held) {
                    self.turn = (front_end + 1) % count;
                    return Some((arrived, decided));
                }
            }
        }
        None
    }

    fn next_of_all(&self) -> Time {
        let announced = match &self.source {
            Source::Broadcast(announcements) => announcements.next(),
            _ => Time::MAX,
        };
        let exchanged = self.exchange.as_ref().map_or(Time::MAX, SumExchange::due);
        self.next_lasting_event().min(announced).min(exchanged)
    }

    /// A request that has arrived over from another back-end, or an exchange.
    fn handle_other(&mut self, now: Time) -> Option<Option<(Arrived, FrontEndDecision)>> {
        if self.hopping.front().is_some_and(|(time, ..)| *time <= now) {
            let (_, arrived, front_end, assigned) = self.hopping.pop_front()?;
            return Some(Some(self.arrives(arrived, front_end, assigned)));
        }
        let exchange = self.exchange.as_mut().filter(|exchange| exchange.due() <= now)?;
        exchange.carry_out(&mut self.cores, self.setup.partitions.count(), &mut self.messages, now);
        Some(None)
    }
}

impl FrontEnds for Several<'_> {
    fn view(&self) -> &ClusterView {
        self.cores[0].view()
    }

    fn policy(&self) -> &dyn Policy {
        self.cores[0].policy()
    }

    fn tick_interval(&self) -> Option<Nanos> {
        self.cores[0].tick_interval()
    }

    #[inline]
    fn load(&self, b: BackendId) -> u32 {
        self.backends.loads()[b.index()]
    }

    #[inline]
    fn holds_requests(&self) -> bool {
        let under_way = match &self.source {
            Source::Exact | Source::Own | Source::Broadcast(_) => false,
            Source::Poll(inquiries) => inquiries.holds_requests(),
            Source::Central(manager) => manager.holds_requests(),
        };
        under_way || self.held > 0 || !self.hopping.is_empty()
    }

    #[inline]
    fn next_event(&self) -> Time {
        match &self.source {
            Source::Poll(inquiries) if self.polls_alone => inquiries.next(),
            _ => self.next_of_all(),
        }
    }

    fn next_lasting_event(&self) -> Time {
        let own = match &self.source {
            Source::Exact | Source::Own | Source::Broadcast(_) => Time::MAX,
            Source::Poll(inquiries) => inquiries.next(),
            Source::Central(manager) => manager.next(),
        };
        own.min(self.hopping.front().map_or(Time::MAX, |(time, ..)| *time))
    }

    fn handle(&mut self, model: &mut impl Model, quiet: &mut Quiet) -> Option<(Arrived, FrontEndDecision)> {
        let now = quiet.now;
        if !self.polls_alone
            && let Some(handled) = self.handle_other(now)
        {
            return handled;
        }
        match &mut self.source {
            Source::Exact | Source::Own => None,
            Source::Broadcast(announcements) => {
                let (backends, front_ends) = (&self.backends, u64::from(self.setup.count));
                let load_of = |model: &_, b| Backends::queue_length(backends, model, b, now);
                let mut receivers = Receivers { cores: &mut self.cores, front_ends, whole: &self.whole };
                announcements.handle(&mut receivers, load_of, model, &mut self.messages, now);
                None
            }
            Source::Poll(inquiries) => {
                let LoadInformation::Poll(how) = self.setup.load_information else { return None };
                // What follows may have to do with requests that wait.
                let ends = if self.polls_alone && self.held == 0 { quiet.ends } else { Time::ZERO };
                loop {
                    let mut asked = self.backends.asked(model, &self.whole, how.cpu_s, quiet.now);
                    if let Some(place) = inquiries.handle(&mut asked, &mut self.messages, quiet.now) {
                        return self.polled(place, quiet.now);
                    }
                    if inquiries.next() >= ends {
                        return None;
                    }
                    quiet.now = inquiries.next();
                }
            }
            Source::Central(manager) => {
                let event = manager.take(now)?;
                self.managed(event, now)
            }
        }
    }

    fn offer(&mut self, arrived: &Arrived, model: &mut impl Model, quiet: &mut Quiet) -> FrontEndDecision {
        let now = quiet.now;
        self.inside += 1;
        if let Source::Central(manager) = &mut self.source {
            self.messages.messages += 1;
            manager.ask(*arrived, now);
            return FrontEndDecision::Held;
        }
        let front_end = self.deal(arrived);
        self.refresh(usize::from(front_end));
        let offered = self.cores[usize::from(front_end)].offer(&arrived.asked(self.targets), now);
        match offered {
            Offered::Poll(ref candidates) if self.polls_alone && self.held == 0 && self.known.is_none() => {
                self.poll_ahead(front_end, arrived, candidates, model, quiet)
            }
            _ => self.carry_out(front_end, arrived, offered, now),
        }
    }

    fn start_next(&mut self, now: Time) -> Option<(Arrived, FrontEndDecision)> {
        self.start_held(now)
    }

    fn has_room(&self) -> bool {
        // A partition without a back-end does not keep requests of others out.
        let waits = self.held > 0 && self.setup.partitions.count() == 1;
        !waits && self.inside < self.limit.requests(&self.whole)
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.held
    }

    fn complete(&mut self, front_end: u16, assigned: &Assigned, ending: Ending, now: Time) {
        self.inside -= 1;
        self.backends.end(assigned.backend);
        match &mut self.source {
            Source::Central(manager) => {
                self.messages.messages += 1;
                manager.end(front_end, *assigned, ending, now);
            }
            _ => self.cores[usize::from(front_end)].complete(assigned, ending, now),
        }
    }

    #[inline]
    fn answered(&mut self, b: BackendId, load: u32, response_time: Nanos, now: Time) {
        self.backends.answered(b, load, response_time, now);
    }

    fn tick(&mut self, now: Time) {
        self.cores.iter_mut().for_each(|core| core.tick(now));
    }

    fn set_weight(&mut self, b: BackendId, weight: Weight, now: Time) {
        self.whole.set_weight(b, weight);
        self.cores.iter_mut().for_each(|core| core.set_weight(b, weight, now));
        self.share_limit(now);
    }

    fn set_health(&mut self, b: BackendId, health: Health, now: Time) {
        self.whole.set_health(b, health);
        if health == Health::Down {
            self.backends.fail(b);
            if let Some(known) = &mut self.known {
                known.forget(b);
            }
        }
        let partitions = &self.setup.partitions;
        for (number, core) in self.cores.iter_mut().enumerate() {
            if partitions.hosts(number % partitions.count(), b) {
                core.set_health(b, health, now);
            }
        }
        self.share_limit(now);
    }

    fn restart(&mut self) {
        self.messages = LoadMessages::default();
    }

    fn messages(self) -> LoadMessages {
        self.messages
    }
}
