//! Decides by a core of its own, in place of a front-end.

use std::time::Instant;

use plimsoll_datapath::switch::SwitchConn;
use plimsoll_policy::{
    AdmissionControl, Assigned, BackendId, BuildContext, BuildError, Cluster, Core, Ending, Kind, Outcome,
    Request, TargetId, Time, build,
};
use plimsoll_switch::Distributor;

/// See the module's documentation.
pub(crate) struct OwnCore {
    pub(crate) core: Core,
    numbers: u64,
    origin: Instant,
}

impl OwnCore {
    /// The policy of this name, for as many back-ends as join.
    pub(crate) fn new(policy: &str, backends: usize) -> Result<Self, BuildError> {
        let policy = build(policy, &BuildContext::default(), &[])?;
        let core = Core::new(policy, Cluster::new(backends), AdmissionControl::UNLIMITED);
        Ok(Self { core, numbers: 0, origin: Instant::now() })
    }

    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Distributor for OwnCore {
    type Assignment = Assigned;

    fn prepare(&mut self) -> Option<Assigned> {
        self.numbers += 1;
        self.core.prepare(self.numbers, self.now())
    }

    fn backend(&self, assignment: &Assigned) -> BackendId {
        assignment.backend
    }

    fn take(&mut self, assignment: &mut Assigned, _: &SwitchConn) {
        let request = Request { kind: Kind::Connection, ..Request::of(assignment.number, TargetId(0)) };
        self.core.take(assignment, &request, self.now());
    }

    fn withdraw(&mut self, assignment: Assigned) {
        self.core.withdraw(assignment, self.now());
    }

    fn stay(&mut self, backend: BackendId, _: &SwitchConn) -> Assigned {
        self.numbers += 1;
        self.core.stay(backend, self.numbers, TargetId(0), self.now())
    }

    fn complete(&mut self, assignment: Assigned, outcome: Outcome) {
        self.core.complete(&assignment, Ending::of(outcome), self.now());
    }
}
