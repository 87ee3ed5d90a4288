//! What becomes of a decision: a request starts, waits, or waits for loads.

use plimsoll_policy::{Assigned, Candidates, Health, LoadReport, Offered, PollAnswer, Time};

use super::super::inquiries::PolledFor;
use super::super::{FrontEndDecision, Quiet, hold};
use super::{Several, Source};
use crate::arrivals::Arrived;
use crate::load_information::LoadInformation;
use crate::model::Model;

impl Several<'_> {
    #[inline]
    pub(super) fn carry_out(
        &mut self,
        front_end: u16,
        arrived: &Arrived,
        offered: Offered,
        now: Time,
    ) -> FrontEndDecision {
        match offered {
            Offered::Assigned(assigned) => {
                let probes = self.cores[usize::from(front_end)].take_probes();
                if !probes.as_slice().is_empty() {
                    self.probe(front_end, probes, now);
                }
                self.start(front_end, arrived, assigned, now)
            }
            Offered::Waits => {
                hold(&mut self.waiting[usize::from(front_end)], *arrived);
                self.held += 1;
                FrontEndDecision::Held
            }
            Offered::Rejected(_) => {
                self.inside -= 1;
                FrontEndDecision::Rejected
            }
            Offered::Poll(candidates) => self.poll(front_end, arrived, candidates, now),
        }
    }

    #[inline]
    pub(super) fn start(
        &mut self,
        front_end: u16,
        arrived: &Arrived,
        assigned: Assigned,
        now: Time,
    ) -> FrontEndDecision {
        // Divisions, which take their time.
        let home = || usize::from(front_end) / self.setup.partitions.count() % self.backends.loads().len();
        if !self.setup.hop.is_zero() && assigned.backend.index() != home() {
            self.hopping.push_back((now + self.setup.hop, *arrived, front_end, assigned));
            return FrontEndDecision::Held;
        }
        self.backends.begin(assigned.backend);
        FrontEndDecision::Starts(front_end, assigned)
    }

    /// A request reaches the back-end to which it was on its way, or is lost because that has failed.
    pub(super) fn arrives(
        &mut self,
        arrived: Arrived,
        front_end: u16,
        assigned: Assigned,
    ) -> (Arrived, FrontEndDecision) {
        self.backends.begin(assigned.backend);
        (arrived, self.unless_lost(FrontEndDecision::Starts(front_end, assigned)))
    }

    pub(super) fn unless_lost(&self, decided: FrontEndDecision) -> FrontEndDecision {
        match decided {
            FrontEndDecision::Starts(front_end, assigned)
                if self.whole.health(assigned.backend) == Health::Down =>
            {
                FrontEndDecision::Lost(front_end, assigned)
            }
            decided => decided,
        }
    }

    pub(super) fn poll(
        &mut self,
        front_end: u16,
        arrived: &Arrived,
        candidates: Candidates,
        now: Time,
    ) -> FrontEndDecision {
        let asked = match &self.known {
            Some(known) => known.split(front_end, candidates, now).1,
            None => candidates,
        };
        if let Source::Poll(inquiries) = &mut self.source
            && !asked.as_slice().is_empty()
        {
            let polled_for = PolledFor::Request(*arrived);
            let place = inquiries.send(polled_for, front_end, &asked, &mut self.messages, now);
            if let Some(known) = &mut self.known {
                known.keep(place, candidates.without(asked));
            }
            return FrontEndDecision::Held;
        }
        // Nobody is asked: what the front-end knows is the answer.
        let core = &mut self.cores[usize::from(front_end)];
        let answers: Vec<PollAnswer> = core.view().answers(candidates).collect();
        match core.answer(arrived.number, &answers, now) {
            Some(offered) => self.carry_out(front_end, arrived, offered, now),
            None => FrontEndDecision::Held,
        }
    }

    /// Like [`Self::poll`]. What follows is carried out at once, as far as nothing else happens before.
    #[inline]
    pub(super) fn poll_ahead(
        &mut self,
        front_end: u16,
        arrived: &Arrived,
        candidates: &Candidates,
        model: &mut impl Model,
        quiet: &mut Quiet,
    ) -> FrontEndDecision {
        let (Source::Poll(inquiries), LoadInformation::Poll(how)) =
            (&mut self.source, self.setup.load_information)
        else {
            return self.poll(front_end, arrived, *candidates, quiet.now);
        };
        let mut asked = self.backends.asked(model, &self.whole, how.cpu_s, quiet.now + how.latency_s);
        let place =
            inquiries.send_ahead(arrived, front_end, candidates, &mut asked, &mut self.messages, quiet);
        let offered = place.and_then(|place| {
            let answers = inquiries.ended(place).answers();
            self.cores[usize::from(front_end)].answer(arrived.number, answers, quiet.now)
        });
        match offered {
            Some(offered) => self.carry_out(front_end, arrived, offered, quiet.now),
            None => FrontEndDecision::Held,
        }
    }

    pub(super) fn probe(&mut self, front_end: u16, candidates: Candidates, now: Time) {
        match &mut self.source {
            Source::Poll(inquiries) => {
                inquiries.send(PolledFor::Probe, front_end, &candidates, &mut self.messages, now);
            }
            // Loads come without being asked for.
            Source::Broadcast(_) => {}
            Source::Exact | Source::Own | Source::Central(_) => {
                let core = &mut self.cores[usize::from(front_end)];
                // Who knows its own requests alone has seen no more of the response times either.
                let all = matches!(self.source, Source::Exact);
                for &backend in candidates.as_slice() {
                    let load = core.view().load(backend);
                    let latency = self.backends.latency(backend, load, now).filter(|_| all);
                    core.report(&LoadReport { backend, load, latency }, now);
                }
            }
        }
    }

    /// A poll has ended: the front-end knows some loads.
    #[inline(always)]
    pub(super) fn polled(&mut self, place: u32, now: Time) -> Option<(Arrived, FrontEndDecision)> {
        let Source::Poll(inquiries) = &self.source else { return None };
        let poll = inquiries.ended(place);
        let front_end = poll.front_end;
        let core = &mut self.cores[usize::from(front_end)];
        match poll.polled_for {
            PolledFor::Probe => {
                for &PollAnswer { backend, load, latency } in poll.answers() {
                    core.report(&LoadReport { backend, load, latency }, now);
                }
                None
            }
            PolledFor::Request(arrived) => {
                let offered = match &mut self.known {
                    None => core.answer(arrived.number, poll.answers(), now)?,
                    Some(known) => {
                        let known = known.end(front_end, place, poll.answers(), now);
                        let all: Vec<PollAnswer> =
                            poll.answers().iter().copied().chain(core.view().answers(known)).collect();
                        core.answer(arrived.number, &all, now)?
                    }
                };
                Some((arrived, self.carry_out(front_end, &arrived, offered, now)))
            }
        }
    }
}
