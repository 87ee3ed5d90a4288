//! A back-end that was chosen for an access.

use plimsoll_policy::BackendId;

use crate::attempt::AccessEnd;
use crate::endpoint::Endpoint;
use crate::group::HeldAssignment;

/// A back-end that was chosen for an access, which counts as its load until this is finished or dropped. Dropped, it is abandoned.
#[must_use = "dropping it abandons the access"]
pub struct ChosenBackend(HeldAssignment<Endpoint>);

impl ChosenBackend {
    pub(crate) fn new(held: HeldAssignment<Endpoint>) -> Self {
        Self(held)
    }

    pub(crate) fn backend(&self) -> BackendId {
        self.0.backend()
    }

    /// The replica.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        self.0.member()
    }

    /// The replica has told its load, such as in the response. Policies that use loads take it for what the replica has to do; never
    /// for less than this client has given it.
    pub fn tell_load(&self, load: u32) {
        self.0.tell_load(load);
    }

    /// The access has ended.
    pub fn finish(self, end: AccessEnd) {
        self.0.finish(end);
    }
}

impl std::fmt::Debug for ChosenBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ChosenBackend").field(self.endpoint()).finish()
    }
}
