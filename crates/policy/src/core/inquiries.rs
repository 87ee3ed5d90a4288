//! Asking back-ends for their load: before a policy chooses that does not ask by itself, and ahead of requests.

use super::inquirer::{Heard, Inquirer, Inquiries};
use super::{Core, Witness};
use crate::cluster::BackendId;
use crate::decision::{Candidates, LoadReport, PollAnswer};
use crate::time::Time;

impl<W: Witness> Core<W> {
    /// From now on `size` back-ends are asked before each choice of a policy that does not poll by itself; `None` for nobody. Their
    /// answers go into the view, from which the policy chooses.
    ///
    /// # Panics
    /// When the size is not 1 to 8.
    pub fn set_inquiries(&mut self, inquiries: Option<Inquiries>) {
        let fits = |i: &Inquiries| (1..=Candidates::MOST).contains(&usize::from(i.size));
        assert!(inquiries.as_ref().is_none_or(fits), "1 to 8 back-ends are asked");
        self.inquirer = inquiries.map(|inquiries| Box::new(Inquirer::new(inquiries)));
        self.polls_for_policy = self.inquirer.is_some() && !self.policy.capabilities().can_poll();
    }

    /// How the core asks on behalf of policies that do not poll.
    #[must_use]
    pub fn inquiries(&self) -> Option<Inquiries> {
        self.inquirer.as_ref().map(|inquirer| inquirer.inquiries)
    }

    /// The back-ends that the policy wants to be asked since the last call: the runtime asks them, and passes the answers to
    /// [`Core::report`].
    #[must_use]
    #[inline]
    pub fn take_probes(&mut self) -> Candidates {
        std::mem::replace(&mut self.probes, Candidates::NONE)
    }

    #[inline(never)]
    pub(super) fn probe(&mut self, now: Time) {
        if let Some(probes) = self.policy.as_probes() {
            self.probes = probes.probe(&self.cluster, now);
        }
    }

    fn knows(&self, b: BackendId) -> bool {
        b.index() < self.cluster.len() && !self.cluster.has_left(b)
    }

    /// Takes loads into the view. A load below the front-end's own count is raised to it; where that, or an answer that is left
    /// out, makes other answers of these, they are in `raised`.
    #[inline]
    pub(super) fn heard<'a>(
        &mut self,
        answers: &'a [PollAnswer],
        raised: &'a mut Option<Heard>,
    ) -> &'a [PollAnswer] {
        let mut same = answers.len() <= Candidates::MOST;
        for answer in answers.iter().take(Candidates::MOST) {
            same &= self.knows(answer.backend) && {
                self.cluster.report(answer.backend, answer.load);
                answer.load >= self.cluster.own_load(answer.backend)
            };
        }
        if same { answers } else { self.raise(answers, raised.insert(Heard::NONE)) }
    }

    #[inline(never)]
    fn raise<'a>(&mut self, answers: &[PollAnswer], raised: &'a mut Heard) -> &'a [PollAnswer] {
        for &answer in answers {
            if self.knows(answer.backend) && raised.len < Candidates::MOST {
                self.cluster.report(answer.backend, answer.load);
                let load = answer.load.max(self.cluster.own_load(answer.backend));
                raised.answers[raised.len] = PollAnswer { load, ..answer };
                raised.len += 1;
            }
        }
        &raised.answers[..raised.len]
    }

    /// Like [`Cluster::count_reports_only`](crate::Cluster::count_reports_only).
    pub fn count_reports_only(&mut self) {
        self.cluster.count_reports_only();
    }

    /// Takes a load into the view alone, of which no back-end has reported: a policy that probes has its own picture. No effect for a
    /// back-end that has left.
    pub fn see(&mut self, b: BackendId, load: u32) {
        if self.knows(b) {
            self.cluster.report(b, load);
        }
    }

    /// Counts a back-end's load report ([`Cluster::report`](crate::Cluster::report)), and passes it to a policy that takes reports. No
    /// effect for a back-end that has left.
    pub fn report(&mut self, report: &LoadReport, now: Time) {
        let b = report.backend;
        if !self.knows(b) {
            return;
        }
        self.cluster.report(b, report.load);
        if let Some(takes) = self.policy.as_takes_reports() {
            let load = report.load.max(self.cluster.own_load(b));
            takes.on_report(&LoadReport { load, ..*report }, &self.cluster, now);
        }
        self.witness.reported(report, now);
    }
}
