//! Changes of back-ends, as a log has them.

use plimsoll_policy::{Core, Time, Witness};

use crate::event::What;

/// Plays a change of health, weight or limit.
pub(crate) fn set<W: Witness>(core: &mut Core<W>, what: &What, now: Time) {
    match what {
        What::Health { backend, health } => core.set_health(*backend, *health, now),
        What::Weight { backend, weight } => core.set_weight(*backend, *weight, now),
        What::MostRequests { backend, most } => core.set_most_requests(*backend, *most, now),
        _ => {}
    }
}
